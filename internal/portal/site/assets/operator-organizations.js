// Organizations, what they use, and what they may use.
import { call, freshKey } from './api.js';
import { el, fill, id, day, bytes, busy, errorNotice, setError, sentence } from './dom.js';
import { ask } from './dialog.js';
import { paged } from './table.js';

const units = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['TiB', 2 ** 40], ['bytes', 1]];
const path = (org, what) => `/admin/organizations/${encodeURIComponent(org)}/${what}`;

async function setQuota(org) {
  const { data } = await call('GET', path(org.org_id, 'quota'), { seat: 'admin' });
  const unit = units.find(([, size]) => data.allowance_bytes % size === 0 && data.allowance_bytes >= size) ?? units[3];
  const amount = el('input', { id: 'quota-amount', name: 'allowance_bytes', type: 'number', min: '0', step: 'any', inputmode: 'decimal', value: String(data.allowance_bytes / unit[1]) });
  const chosen = el('select', { id: 'quota-unit' }, units.map(([name, size]) => el('option', { value: String(size), selected: name === unit[0] }, name)));
  const usual = el('input', { type: 'checkbox', id: 'quota-default' });
  usual.addEventListener('change', () => (amount.disabled = chosen.disabled = usual.checked));
  const key = freshKey();
  return ask({
    title: `Quota of ${org.org_id}`, yes: 'Set the quota',
    body: [
      el('p', {}, `It stores ${bytes(data.used_bytes)} and has reserved ${bytes(data.reserved_bytes)}. An allowance below that deletes nothing; nothing further is accepted.`),
      el('div', { class: 'row end' }, el('div', { class: 'field' }, el('label', { for: 'quota-amount' }, 'Allowance'), amount), el('div', { class: 'field' }, el('label', { for: 'quota-unit' }, 'Unit'), chosen)),
      el('span', { id: 'quota-amount-error', class: 'error' }),
      el('label', { class: 'check' }, usual, el('span', {}, `The service's default, ${bytes(data.default_allowance_bytes)}`)),
    ],
    send: async () => {
      setError(amount, '');
      const allowance = usual.checked ? null : Math.round(Number(amount.value) * Number(chosen.value));
      if (allowance !== null && (amount.value === '' || !Number.isSafeInteger(allowance) || allowance < 0)) {
        setError(amount, 'Give a number of 0 or more.');
        amount.focus();
        return undefined;
      }
      const { data: set } = await call('PUT', path(org.org_id, 'quota'), { seat: 'admin', json: { allowance_bytes: allowance }, idempotent: `${key}-${allowance}` });
      return `${org.org_id} may now store ${bytes(set.allowance_bytes)}; ${bytes(set.available_bytes)} are free.`;
    },
  });
}

async function setRetention(org) {
  const days = el('input', { id: 'retention-days', name: 'retention_days', type: 'number', min: '0', step: '1', inputmode: 'numeric', value: String(org.retention_days) });
  const key = freshKey();
  return ask({
    title: `Retention of ${org.org_id}`, yes: 'Set the retention', danger: true,
    body: [
      el('p', {}, 'Uploads that are older are withdrawn for good, from the next minute on. 0 keeps them without end.'),
      el('div', { class: 'field' }, el('label', { for: 'retention-days' }, 'Days'), days, el('span', { id: 'retention-days-error', class: 'error' })),
    ],
    send: async () => {
      setError(days, '');
      const n = Number(days.value);
      if (days.value === '' || !Number.isInteger(n) || n < 0) {
        setError(days, 'Give a whole number of days, or 0.');
        days.focus();
        return undefined;
      }
      await call('PUT', path(org.org_id, 'retention'), { seat: 'admin', json: { retention_days: n }, idempotent: `${key}-${n}` });
      return n ? `Uploads of ${org.org_id} are withdrawn after ${n} days.` : `Uploads of ${org.org_id} are kept without end.`;
    },
  });
}

export async function show(panel, { go, said }) {
  const heading = el('h2', { id: 'organizations-title', tabindex: '-1' }, 'Organizations');
  const list = el('div', { class: 'stack' });
  const change = (work) => async (event) => busy(event.currentTarget, async () => {
    try {
      const done = await work();
      if (!done) return;
      await read();
      heading.focus();
      said('good', sentence(done));
    } catch (error) {
      said(errorNotice(error));
    }
  });
  const row = (o) => [
    id(o.org_id),
    el('div', { class: 'stack tight' }, el('progress', { max: Math.max(1, o.allowance_bytes), value: o.used_bytes + o.reserved_bytes, 'data-tone': o.available_bytes === 0 ? 'bad' : null, 'aria-label': `Storage of ${o.org_id}` }),
      el('span', { class: 'small' }, `${bytes(o.used_bytes)} of ${bytes(o.allowance_bytes)}`, o.reserved_bytes ? `, ${bytes(o.reserved_bytes)} reserved` : '')),
    String(o.upload_count), String(o.active_credentials), o.retention_days ? `${o.retention_days} days` : 'without end', day(o.created_at),
    el('div', { class: 'row' },
      el('button', { type: 'button', class: 'small', 'aria-label': `Quota of ${o.org_id}`, onclick: change(() => setQuota(o)) }, 'Quota'),
      el('button', { type: 'button', class: 'small', 'aria-label': `Retention of ${o.org_id}`, onclick: change(() => setRetention(o)) }, 'Retention'),
      el('button', { type: 'button', class: 'small', 'aria-label': `Credentials of ${o.org_id}`, onclick: () => go('credentials', o.org_id, { focus: true }) }, 'Credentials')),
  ];
  const read = () => paged(list, {
    label: 'Organizations', said, empty: 'No organization is known yet. It becomes known with its first credential.',
    columns: ['Organization', 'Storage', { name: 'Uploads', num: true }, { name: 'Credentials', num: true }, 'Retention', 'Since', { name: 'Actions', quiet: true }],
    load: async (cursor) => {
      const { data } = await call('GET', `/admin/organizations?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { seat: 'admin' });
      return { rows: data.organizations.map(row), next: data.next_cursor };
    },
  });
  await read();
  fill(panel, heading, list);
}
