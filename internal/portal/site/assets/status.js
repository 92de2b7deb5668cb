// Where an upload stands: its six gates in plain words, live.
import { call } from './api.js';
import { retrying, pause } from './retry.js';
import { el, fill, duration, sentence } from './dom.js';

export const uploadsPath = (org) => `/api/v1/organizations/${encodeURIComponent(org)}/partner-uploads`;
export const statusPath = (org, uploadId) => `${uploadsPath(org)}/${encodeURIComponent(uploadId)}`;

const terminal = ['READY', 'REJECTED', 'FAILED', 'EXPIRED', 'WITHDRAWN'];
export const isTerminal = (status) => terminal.includes(status);

// A browser opens six connections to one service. Parts need theirs, so no more than two answers are waited for.
let held = 0;

/**
 * Tells changed(status) of every change until the status is terminal, or signal aborts (AbortError). The service holds the
 * answer until something happens; where many uploads are followed, some ask every few seconds instead.
 */
export async function follow(org, uploadId, { seat, signal, changed, notify }) {
  let etag = '';
  for (;;) {
    const asked = Date.now();
    const answer = await retrying(async () => {
      const hold = Boolean(etag) && held < 2;
      if (hold) held++;
      try {
        return await call('GET', statusPath(org, uploadId), {
          seat, signal, headers: { ...(etag && { 'If-None-Match': etag }), ...(hold && { Prefer: 'wait=25' }) },
        });
      } finally {
        if (hold) held--;
      }
    }, { signal, notify });
    etag = answer.headers.get('ETag') ?? '';
    if (answer.status !== 304) {
      changed(answer.data);
      if (isTerminal(answer.data.status)) return answer.data;
    }
    const rest = (held >= 2 ? 3000 : 500) - (Date.now() - asked);
    if (rest > 0) await pause(rest, signal);
  }
}

export const gateNames = {
  integrity: ['Integrity', 'The stored bytes are exactly the ones that were sent.'],
  quarantine: ['Quarantine copy', 'A second copy is confirmed in quarantine storage.'],
  malware_scan: ['Malware scan', 'A scan engine looked at everything and found nothing.'],
  extraction: ['Text extraction', 'The text is taken out, from pictures of pages too.'],
  controlled_summary: ['Controlled summary', 'A bounded summary is made of the text.'],
  ai_context: ['AI context', 'The bounded, labelled context is there for AI readers.'],
};

const states = { pending: 'waits', running: 'runs now', passed: 'passed', rejected: 'refused', failed: 'no result' };

const statuses = {
  INITIATED: ['Reserved', 'wait', 'Room is reserved. Nothing was sent yet.'],
  RECEIVING: ['Receiving', 'wait', 'The service has a part of the file and waits for the rest.'],
  PROCESSING: ['In the gates', 'info', 'The file is here whole. The gates run.'],
  READY: ['Ready', 'good', 'All six gates passed. AI readers get what the visibility allows, labelled as unverified.'],
  REJECTED: ['Refused', 'bad', 'A gate refused the content. No AI reader gets any of it.'],
  FAILED: ['Not finished', 'warn', 'A gate had no result. No AI reader gets any of it.'],
  EXPIRED: ['Expired', 'warn', 'The reservation ended before the file was whole. What had been sent is gone.'],
  WITHDRAWING: ['Being deleted', 'warn', 'It is unreadable already. The service deletes every copy and confirms each one.'],
  WITHDRAWN: ['Withdrawn', '', 'Deleted for good. The receipt remains.'],
};

/** [name, tone, meaning] of a status. */
export const statusWords = (status) => statuses[status] ?? [status, '', ''];

/** What a person can do after a status that is no success. */
export function whatNext(status) {
  if (status.status === 'FAILED') return 'An operator of the service can let the gate run again; you need not send the file again. You can also withdraw it.';
  if (status.status === 'EXPIRED') return 'Upload the file again.';
  if (status.status !== 'REJECTED') return '';
  const byCode = {
    malware_found: 'Look at the computer that the file came from. Withdraw the upload; send the file again once it is clean.',
    content_unscannable: 'What nobody can look into is never passed. Send the files in it one by one, without a password.',
    stored_bytes_differ: 'Withdraw the upload and send the file again. If it happens again, tell the operator: the storage is at fault.',
  };
  return byCode[status.failure?.code] ?? 'Withdraw this upload, change the file as said, and upload it as a new one.';
}

function took(gate) {
  if (!gate.started_at || !gate.finished_at) return '';
  const s = (Date.parse(gate.finished_at) - Date.parse(gate.started_at)) / 1000;
  return s < 1 ? 'under 1 s' : duration(s);
}

/** The six gates of a status as a list; place is filled anew. failure belongs to the gate that it names. */
export function showGates(place, { gates = [], failure } = {}) {
  return fill(place, gates.map((gate) => {
    const [name, meaning] = gateNames[gate.name] ?? [gate.name, ''];
    const stopped = failure?.gate === gate.name && ['rejected', 'failed'].includes(gate.state);
    const again = gate.detail?.last_message ? `${sentence(gate.detail.last_message)} It is tried again.` : '';
    return el('li', { 'data-state': gate.state },
      el('b', {}, name),
      el('span', { class: 'state' }, [states[gate.state] ?? gate.state, took(gate)].filter(Boolean).join(', ')),
      el('span', { class: 'why' }, stopped ? sentence(failure.message) : again || meaning));
  }));
}
