// The customer's page: a text into custody, read back as an AI reader gets it, and corrected.
import { call } from './api.js';
import { retrying } from './retry.js';
import { $, el, fill, id, badge, bytes, time, notice, errorNotice, fieldErrors, busy, setError, clearErrors, sentence, copyButton } from './dom.js';
import { needSeat } from './shell.js';
import { contextView, visibilityMeaning } from './context.js';
import { askConsent } from './consent.js';
import { textDigest } from './hash.js';
import { gateNames, showGates, statusPath, statusWords, whatNext } from './status.js';
import { noted, note, forget, noteWithdrawn } from './uploads.js';
import { withdraw, openReceipt } from './withdraw.js';
import { nameOf, visible } from './names.js';

const role = 'solution_company_upload';
const most = 1 << 20; // bytes of UTF-8
const perPage = 20;
const kinds = ['customer', 'correction'];
const form = $('#submit-text');
const area = $('#text');
const said = $('#said');
const result = $('#result');
let seat;
let consent;
let corrects = null; // {upload_id, filename}: the upload that the form corrects
let dropped = null; // {shown, exact}: a text area changes line ends, what is handed in keeps them
const texts = new Map(); // upload id to text, of this visit alone, so that a correction begins with it

const announce = (text) => (said.textContent = text);
const customerPath = (org) => `/api/v1/organizations/${encodeURIComponent(org)}/customer-uploads`;

// ---- the text

const payload = () => (dropped && dropped.shown === area.value ? dropped.exact : area.value);

function measure() {
  const size = new TextEncoder().encode(payload()).length;
  $('#text-bar').value = size;
  $('#text-size').textContent = `${bytes(size)} of 1 MiB`;
  const wrong = size > most ? `It is ${bytes(size - most)} too large. Shorten it, or hand it in as a file on the solution company's page.` : '';
  if (wrong || area.getAttribute('aria-invalid')) setError(area, wrong);
  return wrong;
}

async function read(file) {
  if (file.size > most) {
    setError(area, `${bytes(file.size)} are more than 1 MiB. Hand it in as a file on the solution company's page.`);
    return;
  }
  let exact;
  try {
    exact = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
  } catch {
    setError(area, 'This file is no UTF-8 text. Documents of other kinds are handed in on the solution company\'s page.');
    return;
  }
  area.value = exact;
  dropped = { shown: area.value, exact };
  form.elements.filename.value = file.name;
  const type = { md: 'text/markdown', csv: 'text/csv', htm: 'text/html', html: 'text/html' }[file.name.split('.').pop().toLowerCase()];
  form.elements.content_type.value = type ?? 'text/plain';
  setError(area, '');
  setError(form.elements.filename, '');
  measure();
  announce('The text of the file is shown.');
  area.focus();
}

function takeFiles() {
  area.addEventListener('input', measure);
  $('#choose').addEventListener('click', () => $('#file').click());
  $('#file').addEventListener('change', (event) => {
    const [file] = event.target.files;
    event.target.value = '';
    if (file) void read(file);
  });
  const files = (event) => [...(event.dataTransfer?.types ?? [])].includes('Files');
  area.addEventListener('dragover', (event) => {
    if (!files(event)) return; // text may be dragged about as ever
    event.preventDefault();
    area.dataset.over = '';
  });
  area.addEventListener('dragleave', () => delete area.dataset.over);
  area.addEventListener('drop', (event) => {
    delete area.dataset.over;
    if (!files(event)) return;
    event.preventDefault();
    const [file, more] = event.dataTransfer.files;
    if (more) setError(area, 'One text at a time: only the first file was taken.');
    if (file) void read(file);
  });
  for (const kind of ['dragover', 'drop']) window.addEventListener(kind, (event) => files(event) && event.preventDefault());
}

// ---- handing in

function body(agreed) {
  const f = form.elements;
  const b = { filename: f.filename.value.trim(), payload: payload(), visibility: f.visibility.value, content_type: f.content_type.value, uploader_organization_type: f.uploader_organization_type.value, consent: agreed };
  for (const name of ['uploader_organization_id', 'asserted_subject_org_id', 'customer_workspace_access']) {
    if (f[name].value.trim()) b[name] = f[name].value.trim();
  }
  return b;
}

function ready() {
  clearErrors(form);
  const f = form.elements;
  const wrong = [
    [area, area.value ? measure() : 'Write a text first.'],
    [f.filename, !f.filename.value.trim() ? 'Give it a name.' : /[/\\]/.test(f.filename.value) ? 'A name, not a path: leave out / and \\.' : ''],
  ];
  for (const [control, text] of wrong) setError(control, text);
  const first = wrong.find(([, text]) => text);
  first?.[0].focus();
  const agreed = first ? null : consent.read();
  return agreed && body(agreed);
}

function refusal(error) {
  const rest = fieldErrors(form, error);
  if (form.querySelector('details [aria-invalid]')) {
    form.querySelector('details').open = true;
    form.querySelector('details [aria-invalid]').focus();
  }
  if (error.code === 'content_refused') {
    const [name] = gateNames[error.details?.gate] ?? [error.details?.gate];
    const gates = Object.keys(gateNames);
    const at = gates.indexOf(error.details?.gate);
    const shown = el('ol', { class: 'gates' });
    showGates(shown, {
      gates: gates.map((g, i) => ({ name: g, state: i < at ? 'passed' : i === at ? 'rejected' : 'pending' })),
      failure: { gate: error.details?.gate, message: error.message.replace(/^the \S+ gate refused the content: /, '') },
    });
    return [notice('bad', `The gate “${name}” refused the text.`, 'Nothing of it is kept. Change the text and hand it in again.'), shown];
  }
  if (error.code === 'workspace_access_required') {
    form.querySelector('details').open = true;
    return [errorNotice(error), el('p', { class: 'small' }, 'Look at “On whose behalf”.')];
  }
  // What is said beside a field need not be said twice.
  if (error.fields?.length && !rest.length) {
    return [notice('bad', error.code === 'verification_claim_forbidden' ? sentence(error.message) : 'Not handed in yet.', error.code === 'verification_claim_forbidden' ? 'What an organization says of itself is fine; that this service checked or ranked it is not.' : 'The marked fields have to change.')];
  }
  return [errorNotice(error)];
}

async function submit() {
  const place = $('#form-error');
  fill(place);
  const json = ready();
  if (!json) return;
  const path = corrects ? `${customerPath(seat.org_id)}/${encodeURIComponent(corrects.upload_id)}/corrections` : customerPath(seat.org_id);
  $('#waiting').hidden = false;
  fill(result);
  $('#context').hidden = true;
  try {
    // The same content has the same key: pressed twice, or sent again after a lost answer, it is one upload.
    const { data } = await retrying(() => call('POST', path, { seat: role, json, idempotent: textDigest(path + JSON.stringify(json)) }), {
      attempts: 6, notify: (error) => fill(place, error ? notice('warn', sentence(error.message), 'It is sent again by itself; whatever happens, it is handed in once.') : null),
    });
    fill(place);
    note(seat.org_id, data.upload_id, {
      kind: corrects ? 'correction' : 'customer', filename: data.filename, size: new TextEncoder().encode(json.payload).length, at: new Date().toISOString(), visibility: json.visibility,
      ...(corrects && { corrects: corrects.upload_id }),
    });
    texts.set(data.upload_id, { text: area.value, dropped });
    await handedIn(data, json);
  } catch (error) {
    fill(place, refusal(error));
  } finally {
    $('#waiting').hidden = true;
  }
}

async function handedIn(data, json) {
  const was = corrects;
  const gates = el('ol', { class: 'gates' });
  const title = el('h2', { tabindex: '-1' }, was ? 'The correction is handed in' : 'Handed in');
  const c = data.consent_capture ?? {};
  fill(result, el('section', { class: 'card' },
    el('div', { class: 'row apart' }, title, badge(statusWords(data.status)[0], statusWords(data.status)[1])),
    el('p', {}, nameOf(data.filename), ' ', el('span', { class: 'muted' }, `is kept. ${visibilityMeaning(json.visibility)}. Nobody has judged whether it is true.`)),
    el('div', { class: 'row' }, id(data.upload_id), copyButton('Copy the upload id', () => data.upload_id)),
    was ? el('p', { class: 'small' }, 'Corrects ', id(was.upload_id), ', which stays as it is and names this correction.') : null,
    el('details', { open: true }, el('summary', {}, 'The six gates'), gates),
    el('p', { class: 'small muted' }, `Consent ${c.status ?? ''} `, c.accepted_at ? time(c.accepted_at) : null, '.'),
    el('div', { class: 'row' }, actions({ upload_id: data.upload_id, filename: data.filename, visibility: json.visibility }))));
  clearForm();
  drawMine();
  announce(`${visible(data.filename)}: handed in, ${statusWords(data.status)[0]}.`);
  title.focus();
  try {
    const { data: status } = await retrying(() => call('GET', statusPath(seat.org_id, data.upload_id), { seat: role }));
    showGates(gates, status);
  } catch (error) {
    fill(gates, el('li', { 'data-state': 'pending' }, el('span', { class: 'why' }, error.message)));
  }
}

function clearForm() {
  area.value = '';
  dropped = null;
  form.elements.filename.value = '';
  consent.withdraw();
  correct(null);
  measure();
}

/** Turns the form to a correction of an upload, or back. */
function correct(upload) {
  corrects = upload;
  $('#form-title').textContent = upload ? 'Hand in a correction' : 'Hand in a text';
  $('#send').textContent = upload ? 'Hand in the correction' : 'Hand in';
  const place = $('#corrects');
  place.hidden = !upload;
  if (!upload) {
    fill(place);
    return;
  }
  fill(place, el('span', {}, 'Of ', upload.filename ? [nameOf(upload.filename), ' '] : null, id(upload.upload_id)), el('button', { type: 'button', class: 'small', onclick: () => {
    correct(null);
    $('#form-title').focus();
  } }, 'Hand in a new text instead'));
  const known = texts.get(upload.upload_id);
  if (known && !area.value) {
    area.value = known.text;
    dropped = known.dropped;
  }
  form.elements.filename.value ||= upload.filename;
  const choice = upload.visibility && form.querySelector(`[name="visibility"][value="${CSS.escape(upload.visibility)}"]`);
  if (choice) choice.checked = true;
  measure();
  announce('The form is for a correction now.');
  area.focus();
}

// ---- reading back

async function readBack(upload) {
  const place = $('#context');
  place.hidden = false;
  const title = el('h2', { id: 'context-title', tabindex: '-1' }, 'As an AI reader gets it');
  const content = el('div', { class: 'stack' });
  fill(place, title, el('p', { class: 'small muted' }, upload.filename ? [nameOf(upload.filename), ' · '] : null, id(upload.upload_id)), content);
  const asking = el('div');
  fill(content, asking);
  title.focus();
  try {
    const reader = await needSeat('ai_reader', asking, 'An upload credential cannot read contexts. Paste an AI reader’s credential of the same organization to see exactly what it gets. This reading leaves a record, like every other.');
    if (reader.org_id !== seat.org_id) {
      fill(content, notice('warn', 'That reader is of another organization.', 'It gets nothing of this one. Sign out and sign in with a reader’s credential of the organization that the text was handed in for.'));
      return;
    }
    fill(content, el('p', { class: 'muted' }, 'Reading …'));
    const { data } = await retrying(() => call('GET', `/api/v1/organizations/${encodeURIComponent(reader.org_id)}/ai-context/${encodeURIComponent(upload.upload_id)}`, { seat: 'ai_reader' }));
    fill(content, contextView(data, { fetchOther: (other) => readBack({ upload_id: other, filename: '' }) }));
    announce(`The context is shown: ${data.context.boundary_label}.`);
  } catch (error) {
    if (error.code === 'visibility_denied') fill(content, notice('info', 'An AI reader gets nothing of it.', 'That is what the chosen visibility means: it is kept, and not served.'));
    else if (error.status === 404) fill(content, notice('info', 'An AI reader gets nothing of it.', 'It was withdrawn, refused by a gate, or never became ready.'));
    else fill(content, errorNotice(error));
  }
  title.focus();
}

// ---- what was handed in before

function actions(upload) {
  const name = el('span', { class: 'hidden-text' }, ` ${visible(upload.filename) || upload.upload_id}`);
  const button = (text, does, kind = '') => el('button', { type: 'button', class: `small ${kind}`.trim(), onclick: (e) => busy(e.currentTarget, () => does()) }, text, name.cloneNode(true));
  return [button('Read it back', () => readBack(upload)), button('Add a correction', () => correct(upload)), button('Withdraw', () => takeBack(upload), 'danger')];
}

async function takeBack(upload) {
  await withdraw({
    org: seat.org_id, seat: role, uploadId: upload.upload_id, filename: upload.filename,
    begun: () => noteWithdrawn(seat.org_id, upload.upload_id),
    done: (answer) => {
      noteWithdrawn(seat.org_id, upload.upload_id, answer.withdrawal_receipt_id);
      texts.delete(upload.upload_id);
      if (corrects?.upload_id === upload.upload_id) correct(null);
      fill(result);
      $('#context').hidden = true;
      drawMine();
      announce('Withdrawn. The receipt is shown.');
    },
  });
  $('#mine-title').focus();
}

let shown = perPage;

function drawMine() {
  const notes = noted(seat.org_id, kinds);
  $('#none').hidden = notes.length > 0;
  $('#more').hidden = notes.length <= shown;
  fill($('#mine'), notes.slice(0, shown).map((n) => {
    const off = el('button', { type: 'button', class: 'small quiet', onclick: () => {
      forget(seat.org_id, n.upload_id);
      drawMine();
      $('#mine-title').focus();
    } }, 'Take off this list', el('span', { class: 'hidden-text' }, ` ${n.upload_id}`));
    const receipt = n.receipt_id ? el('button', { type: 'button', class: 'small', onclick: () => openReceipt({ org: seat.org_id, seat: role, receiptId: n.receipt_id }) }, 'Receipt', el('span', { class: 'hidden-text' }, ` ${n.upload_id}`)) : null;
    return el('li', { class: 'card upload' },
      el('div', { class: 'row apart' }, el('h3', {}, n.filename ? nameOf(n.filename) : 'Withdrawn text'), n.withdrawn ? badge('Withdrawn') : n.kind === 'correction' ? badge('Correction', 'info') : null),
      el('p', { class: 'small muted' }, id(n.upload_id), n.size ? ` · ${bytes(n.size)}` : null, ' · ', time(n.at), n.corrects ? [' · corrects ', id(n.corrects)] : null, n.visibility && !n.withdrawn ? ` · ${visibilityMeaning(n.visibility)}` : null),
      el('div', { class: 'row' }, n.withdrawn ? [receipt, off] : [actions(n), el('button', { type: 'button', class: 'small', onclick: (e) => busy(e.currentTarget, () => where(n, e.currentTarget)) }, 'Status', el('span', { class: 'hidden-text' }, ` ${visible(n.filename)}`)), off]));
  }));
}

/** Where an upload stands, below its entry. */
async function where(n, button) {
  const card = button.closest('li');
  const place = $('.where', card) ?? card.appendChild(el('div', { class: 'where stack tight', role: 'status' }));
  try {
    const { data } = await retrying(() => call('GET', statusPath(seat.org_id, n.upload_id), { seat: role }));
    if (data.status === 'WITHDRAWN') {
      noteWithdrawn(seat.org_id, n.upload_id);
      drawMine();
      $('#mine-title').focus();
      return;
    }
    const [name, tone, meaning] = statusWords(data.status);
    const gates = el('ol', { class: 'gates' });
    showGates(gates, data);
    const next = whatNext(data);
    fill(place, el('p', {}, badge(name, tone), ' ', meaning), data.failure ? notice('bad', sentence(data.failure.message), next || null) : null, gates);
  } catch (error) {
    fill(place, errorNotice(error));
  }
}

// ---- begin

async function begin() {
  seat = await needSeat(role, $('#seat'), 'Texts are handed in with the upload credential of your organization.');
  fill($('#seat'), el('p', { class: 'small muted' }, 'Organization ', id(seat.org_id), ', credential ', id(seat.credential_id)));
  $('#work').hidden = false;
  consent = await askConsent($('#consent'), { purpose: 'this text' });
  takeFiles();
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void busy($('#send'), submit);
  });
  $('#more').addEventListener('click', () => {
    shown += perPage;
    drawMine();
  });
  measure();
  drawMine();
}

begin().catch((error) => fill($('#seat'), errorNotice(error)));
