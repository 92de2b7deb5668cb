// An AI reader's page: one context, and the evidence that it was served.
import { call } from './api.js';
import { $, el, fill, id, badge, time, bytes, facts, busy, setError, errorNotice, fieldErrors } from './dom.js';
import { needSeat } from './shell.js';
import { contextView } from './context.js';
import { paged } from './table.js';

const form = $('#fetch');
const input = $('#upload-id');
const said = $('#said');
const place = $('#context');
const org = (seat) => `/api/v1/organizations/${encodeURIComponent(seat.org_id)}`;
const ask = { seat: 'ai_reader' };

/** Whether a record's hash is over what the record says: null where this browser cannot compute it (plain http). */
async function hashHolds(record) {
  if (!crypto.subtle) return null;
  const covered = { ...record, record_hash: '' };
  delete covered.recalled_at; // learnt later, no part of the hash
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(covered)));
  return Array.from(new Uint8Array(digest), (b) => b.toString(16).padStart(2, '0')).join('') === record.record_hash;
}

const verdict = (holds) => (holds === null ? null : holds ? badge('Hash recomputed here: it holds', 'good') : badge('Hash recomputed here: it does NOT hold', 'bad'));

async function recordCard(record) {
  return el('section', { class: 'card', 'aria-labelledby': 'record-title' },
    el('div', { class: 'row apart' }, el('h3', { id: 'record-title' }, 'The record of this serving'), verdict(await hashHolds(record))),
    facts(['Record', id(record.record_id)], ['Served', time(record.served_at)], ['To the credential', id(record.credential_id)], ['Over', record.surface === 'mcp' ? 'MCP' : 'REST'], ['Outcome', record.outcome],
      ['Size', bytes(record.bytes)], ['Context SHA-256', id(record.context_sha256)], ['Request', id(record.request_id)], ['Trace', id(record.trace_id)],
      ['Record hash', id(record.record_hash)], ['Previous hash', record.previous_hash ? id(record.previous_hash) : 'none: the first of the chain'],
      ['Recalled', record.recalled_at ? time(record.recalled_at) : null]));
}

const row = (record, own) => [
  [time(record.served_at), record.record_id === own ? [' ', badge('this one', 'info')] : null, record.recalled_at ? [' ', badge('recalled', 'bad')] : null],
  id(record.credential_id), record.surface === 'mcp' ? 'MCP' : 'REST', bytes(record.bytes), [id(record.record_hash.slice(0, 16)), '…'],
];

async function evidence(seat, uploadId, own) {
  const list = el('div', { class: 'stack' });
  let mine;
  let disclaimer;
  await paged(list, {
    label: 'Servings of this upload, newest first', empty: 'There is no record yet.', said: (...what) => fill(said, what.length > 1 ? el('p', {}, what[1]) : what[0]),
    columns: ['Served', 'Credential', 'Over', { name: 'Size', num: true }, 'Record hash'],
    load: async (cursor) => {
      const { data } = await call('GET', `${org(seat)}/request-records?upload_id=${encodeURIComponent(uploadId)}&limit=20${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, ask);
      mine ??= data.records.find((r) => r.record_id === own);
      disclaimer = data.schema_disclaimer;
      return { rows: data.records.map((r) => row(r, own)), next: data.next_cursor };
    },
  });
  return el('section', { class: 'stack', 'aria-labelledby': 'evidence-title' },
    el('h2', { id: 'evidence-title' }, 'Evidence'),
    el('p', { class: 'muted' }, 'Before a context goes out its record is durable. Each record holds the hash of the one before it, so that none can be changed, removed or moved unnoticed.'),
    mine ? await recordCard(mine) : null,
    el('div', { class: 'stack tight' }, el('h3', {}, 'Servings of this upload, newest first'), list, disclaimer ? el('p', { class: 'small muted' }, disclaimer) : null));
}

const explanations = {
  upload_not_found: 'Check the id with whoever handed it in. An upload of another organization is none for you.',
  context_not_ready: 'Its gates are not through, it was refused by one, or it was withdrawn. If you were served it before, look for a recall and drop it.',
  visibility_denied: 'Whoever handed it in chose a visibility under which no AI reader gets anything.',
};

async function fetchContext(seat, uploadId) {
  setError(input, '');
  fill(said, el('p', { class: 'muted' }, 'Fetching …'));
  fill(place);
  try {
    const { data } = await call('GET', `${org(seat)}/ai-context/${encodeURIComponent(uploadId)}`, ask);
    const title = el('h2', { tabindex: '-1' }, 'Context of ', el('bdi', {}, data.context.source?.filename || uploadId));
    fill(place, title, contextView(data, { fetchOther: (other) => fetchOther(seat, other) }));
    title.focus();
    fill(said, el('p', { class: 'hidden-text' }, `The context is shown. It is ${data.context.boundary_label}.`));
    place.append(await evidence(seat, uploadId, data.record_id));
  } catch (error) {
    const rest = fieldErrors(form, error);
    if (error.fields?.length && !rest.length) fill(said);
    else fill(said, errorNotice(error, explanations[error.code]));
  }
}

function fetchOther(seat, uploadId) {
  input.value = uploadId;
  return fetchContext(seat, uploadId);
}

async function start() {
  const seat = await needSeat('ai_reader', $('#seat'), 'Only an AI reader of the same organization can fetch its contexts.');
  fill($('#seat'), el('p', { class: 'small muted' }, 'Organization ', id(seat.org_id), ', credential ', id(seat.credential_id)));
  form.hidden = false;
  const button = $('button', form);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const uploadId = input.value.trim();
    if (!uploadId) {
      setError(input, 'Give the id of an upload.');
      input.focus();
      return;
    }
    busy(button, () => fetchContext(seat, uploadId));
  });
}

start().catch((error) => fill(said, errorNotice(error)));
