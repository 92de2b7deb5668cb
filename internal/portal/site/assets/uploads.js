// The uploads that were made with this browser: ids and what is needed to go on after a reload. No credential, no content.
const key = 'accession-uploads';
const most = 200; // notes; the oldest go first

function all() {
  try {
    const notes = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(notes) ? notes.filter((n) => n && typeof n.upload_id === 'string') : [];
  } catch {
    return [];
  }
}

function keep(notes) {
  try {
    localStorage.setItem(key, JSON.stringify(notes.slice(0, most)));
    return true;
  } catch {
    return false; // storage is off or full: uploads work, and are not found again after a reload
  }
}

/** The notes of an organization's uploads, newest first. kinds: "partner", "customer", "correction". */
export const noted = (org, kinds) => all().filter((n) => n.org === org && kinds.includes(n.kind));

/**
 * Adds a note {org, upload_id, kind, filename, size, modified, at}, or changes the fields of one. Answers whether it is kept.
 * sent: {parts, sha256} is how much the service has and the digest of that much of the file.
 */
export function note(org, uploadId, fields) {
  const notes = all();
  const found = notes.find((n) => n.org === org && n.upload_id === uploadId);
  if (found) Object.assign(found, fields);
  else notes.unshift({ org, upload_id: uploadId, ...fields });
  return keep(notes);
}

/** Takes the note away; the upload stays as it is. */
export const forget = (org, uploadId) => keep(all().filter((n) => n.org !== org || n.upload_id !== uploadId));

/** Withdrawn: the name goes here as it does at the service. */
export const noteWithdrawn = (org, uploadId, receiptId) =>
  note(org, uploadId, { filename: '', sent: undefined, withdrawn: true, ...(receiptId && { receipt_id: receiptId }) });
