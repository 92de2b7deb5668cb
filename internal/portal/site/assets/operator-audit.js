// The audit log, searched; and the serving that a canary came from.
import { call } from './api.js';
import { el, fill, facts, id, badge, time, bytes, busy, errorNotice, fieldErrors, clearErrors, setError } from './dom.js';
import { paged } from './table.js';

const admin = { seat: 'admin' };
const actions = [
  'reserved', 'part_accepted', 'completed', 'external_review_attached', 'gates_passed', 'content_rejected', 'gate_exhausted', 'resumed', 'rescan_requested', 'rescan_refused', 'reservation_lapsed', 'withdrawal_accepted', 'deletion_confirmed',
  'credential_issued', 'credential_rotated', 'credential_revoked', 'quota_set', 'retention_set', 'webhook_set', 'webhook_secret_rotated', 'webhook_replayed', 'webhook_deleted',
  'signing_key_added', 'signing_key_retired', 'key_encryption_key_rotated', 'storage_repaired',
];

const line = ({ position, audit: a }) => ({ cells: [
  time(a.at), [badge(a.action.replaceAll('_', ' ')), a.status ? [' ', el('span', { class: 'small muted' }, a.status)] : null], a.org_id ? id(a.org_id) : el('span', { class: 'muted' }, 'installation'),
  a.upload_id ? id(a.upload_id) : '–', id(a.credential_id),
], more: () => facts(['Detail', a.detail && el('bdi', {}, a.detail)], ['Line', `${position} of its chain`], ['Audit id', id(a.audit_id)], ['Request', id(a.request_id)], ['Trace', id(a.trace_id)], ['At', id(a.at)],
    ['Line hash', id(a.line_hash)], ['Previous hash', id(a.previous_hash)]) });

function field(name, label, properties = {}) {
  const control = el('input', { id: `audit-${name}`, name, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', ...properties });
  return el('div', { class: 'field' }, el('label', { for: control.id }, label), control, el('span', { id: `audit-${name}-error`, class: 'error' }));
}

function canaryForm() {
  const input = el('input', { id: 'canary', name: 'canary', class: 'id', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', placeholder: 'accession-canary-rec_…' });
  const button = el('button', { type: 'submit' }, 'Find');
  const found = el('div', { class: 'stack', role: 'status' });
  const form = el('form', { class: 'card', novalidate: true, 'aria-labelledby': 'canary-title' },
    el('h3', { id: 'canary-title' }, 'Where did this text come from?'),
    el('p', { class: 'small muted' }, 'A canary stands in one serving alone. Paste one that turned up somewhere.'),
    el('div', { class: 'row end' }, el('div', { class: 'field' }, el('label', { for: 'canary' }, 'Canary'), input, el('span', { id: 'canary-error', class: 'error' })), button), found);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    fill(found);
    setError(input, input.value.trim() ? '' : 'Paste the canary first.');
    if (!input.value.trim()) {
      input.focus();
      return;
    }
    busy(button, async () => {
      try {
        const { data } = await call('GET', `/admin/canaries/${encodeURIComponent(input.value.trim().toLowerCase())}`, admin);
        fill(found, facts(['Served', time(data.served_at)], ['To the credential', id(data.credential_id)], ['Organization', id(data.org_id)], ['Upload', id(data.upload_id)], ['Over', data.surface], ['Size', bytes(data.bytes)],
          ['Record', id(data.record_id)], ['Request', id(data.request_id)], ['Recalled', data.recalled_at ? time(data.recalled_at) : null]));
      } catch (error) {
        if (error.code === 'canary_not_found') setError(input, 'No serving of this service carried that canary.');
        else fill(found, errorNotice(error));
      }
    });
  });
  return form;
}

export async function show(panel, { said }) {
  const list = el('div', { class: 'stack' });
  const button = el('button', { type: 'submit', class: 'primary' }, 'Search');
  const failed = el('div', { class: 'live', role: 'alert' });
  const form = el('form', { class: 'card', role: 'search', novalidate: true, 'aria-label': 'Audit log' },
    el('div', { class: 'grid' },
      field('org_id', 'Organization'), field('upload_id', 'Upload'), field('credential_id', 'Credential'), field('action', 'Action', { list: 'audit-actions' }),
      field('since', 'From', { type: 'datetime-local' }), field('until', 'Before', { type: 'datetime-local' })),
    el('datalist', { id: 'audit-actions' }, actions.map((a) => el('option', { value: a }))),
    failed, el('div', { class: 'row' }, button, el('button', { type: 'reset' }, 'Clear')));
  const read = () => {
    const asked = new URLSearchParams({ limit: '50' });
    for (const [name, value] of new FormData(form)) {
      if (!value.trim()) continue;
      asked.set(name, name === 'since' || name === 'until' ? new Date(value).toISOString() : value.trim());
    }
    return paged(list, {
      label: 'Audit lines, newest first', said, empty: 'No line fits.',
      columns: ['When', 'Action', 'Organization', 'Upload', 'Who', { name: 'Details', quiet: true }],
      load: async (cursor) => {
        const query = new URLSearchParams(asked);
        if (cursor) query.set('cursor', cursor);
        const { data } = await call('GET', `/admin/audit?${query}`, admin);
        return { rows: data.lines.map(line), next: data.next_cursor };
      },
    });
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    fill(failed);
    clearErrors(form);
    busy(button, async () => {
      try {
        const n = await read();
        said('info', n ? `${n === 1 ? '1 line is' : `${n} lines are`} shown, newest first.` : 'No line fits.');
      } catch (error) {
        const rest = fieldErrors(form, error);
        if (!error.fields?.length || rest.length) fill(failed, errorNotice(error));
      }
    });
  });
  await read();
  fill(panel, el('h2', {}, 'Audit log'), el('p', { class: 'muted' }, 'Every change, who made it and when; append-only, each line with the hash of the one before it. Times are your own.'), form, list, canaryForm());
}
