// Webhooks: where events go, what became of them, and sending them again.
import { call, freshKey } from './api.js';
import { $, el, fill, id, badge, time, busy, confirm, errorNotice, fieldErrors, setError, sentence } from './dom.js';
import { ask, showOnce } from './dialog.js';
import { paged } from './table.js';

const admin = { seat: 'admin' };
const at = (org, what = '') => `/admin/organizations/${encodeURIComponent(org)}/webhook${what}`;
const send = (org, what, json = {}) => call('POST', at(org, what), { ...admin, json, idempotent: true });
const outcomes = {
  accepted: 'accepted', duplicate: 'known already', refused: 'refused it', gone: 'says that it is gone', unexpected: 'answered something else', timeout: 'did not answer in time',
  no_connection: 'could not be reached', untrusted: 'has no valid certificate', address_refused: 'leads to an address that is not allowed',
};
const stored = 'The receiver checks signatures with it. Hand it over through a secure channel.';

const attempt = (a) => `${sentence(`The receiver ${outcomes[a.outcome] ?? a.outcome}`).replace('The receiver accepted', 'The receiver accepted it').replace('The receiver known already', 'The receiver knew it already')}${a.status ? ` Status ${a.status}.` : ''} ${a.latency_ms} ms.`;

const attempts = (list) => (list.length
  ? el('details', {}, el('summary', {}, list.length === 1 ? '1 attempt' : `${list.length} attempts`), el('ol', { class: 'small' }, list.map((a) => el('li', {}, time(a.at), ': ', attempt(a)))))
  : 'none yet');

async function test(hook) {
  const { data } = await send(hook.org_id, '/test');
  const good = data.outcome === 'accepted' || data.outcome === 'duplicate';
  return [good ? 'good' : 'warn', good ? 'The test event was accepted.' : 'The test event was not accepted.', attempt(data)];
}

async function replay(hook, json, what) {
  const { data } = await send(hook.org_id, '/replay', json);
  return ['good', data.queued === 1 ? 'One delivery is queued again.' : `${data.queued} deliveries are queued again.`, what];
}

async function rotate(hook) {
  const overlap = el('select', { id: 'secret-overlap', name: 'overlap_seconds' }, [['86400', 'one more day'], ['3600', 'one more hour'], ['604800', 'seven more days'], ['0', 'not at all: the old one ends at once']].map(([value, name]) => el('option', { value }, name)));
  const key = freshKey();
  const data = await ask({
    title: `New secret for ${hook.org_id}?`, yes: 'Make a new secret',
    body: el('div', { class: 'field' }, el('label', { for: 'secret-overlap' }, 'Deliveries are signed with the old one too, for'), overlap, el('span', { id: 'secret-overlap-error', class: 'error' })),
    send: async () => (await call('POST', at(hook.org_id, '/rotate'), { ...admin, json: { overlap_seconds: Number(overlap.value) }, idempotent: `${key}-${overlap.value}` })).data,
  });
  if (!data) return null;
  await showOnce({ title: 'The new signing secret', text: stored, secret: data.secret });
  return ['good', 'The secret was replaced.'];
}

async function remove(hook) {
  const sure = await confirm({ title: `Delete the webhook of ${hook.org_id}?`, yes: 'Delete', word: hook.org_id,
    text: ['Its secrets are destroyed. What it has not delivered and its delivery log are forgotten.', id(hook.url)] });
  if (!sure) return null;
  const { data } = await send(hook.org_id, '/delete');
  return ['good', 'The webhook was deleted.', data.discarded ? `Deliveries that were still waiting and are gone: ${data.discarded}.` : 'No delivery was waiting.'];
}

function setForm(organization, done) {
  const org = el('input', { id: 'hook-org', name: 'org_id', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', value: organization });
  const url = el('input', { id: 'hook-url', name: 'url', type: 'url', autocomplete: 'off', spellcheck: 'false', placeholder: 'https://' });
  const button = el('button', { type: 'submit', class: 'primary' }, 'Set');
  const failed = el('div', { class: 'live', role: 'alert' });
  const form = el('form', { class: 'card', novalidate: true, 'aria-labelledby': 'hook-title' },
    el('h3', { id: 'hook-title' }, 'Set a webhook'),
    el('p', { class: 'small muted' }, 'One for each organization. A new one gets a secret, shown once; an existing one gets the address and is active again.'),
    el('div', { class: 'row end' },
      el('div', { class: 'field' }, el('label', { for: 'hook-org' }, 'Organization'), org, el('span', { id: 'hook-org-error', class: 'error' })),
      el('div', { class: 'field' }, el('label', { for: 'hook-url' }, 'Address'), url, el('span', { id: 'hook-url-error', class: 'error' }))),
    failed, el('div', {}, button));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    fill(failed);
    for (const [control, text] of [[org, 'Give the id of the organization.'], [url, 'Give the https address of the receiver.']]) {
      setError(control, control.value.trim() ? '' : text);
    }
    const wrong = $('[aria-invalid]', form);
    if (wrong) {
      wrong.focus();
      return;
    }
    busy(button, async () => {
      try {
        const { data } = await call('PUT', at(org.value.trim()), { ...admin, json: { url: url.value.trim() }, idempotent: true });
        if (data.secret) await showOnce({ title: 'The signing secret', text: stored, secret: data.secret });
        url.value = '';
        await done(data);
      } catch (error) {
        const rest = fieldErrors(form, error);
        if (!error.fields?.length || rest.length) fill(failed, errorNotice(error));
      }
    });
  });
  return form;
}

async function deliveries(place, hook, said, changed) {
  const list = el('div', { class: 'stack' });
  const state = el('select', { id: 'delivery-state' }, [['', 'all'], ['dead', 'given up'], ['pending', 'waiting'], ['delivered', 'delivered']].map(([value, name]) => el('option', { value }, name)));
  const heading = el('h2', { id: 'deliveries-title', tabindex: '-1' }, 'Deliveries of ', id(hook.org_id));
  const tones = { dead: ['given up', 'bad'], pending: ['waiting', 'wait'], delivered: ['delivered', 'good'] };
  const again = (delivery) => (event) => busy(event.currentTarget, async () => {
    try {
      const done = await replay(hook, { event_id: delivery.event_id }, 'It carries the same event_id: a receiver that knows it answers 409.');
      await Promise.all([read(), changed()]);
      heading.focus();
      said(...done);
    } catch (error) {
      said(errorNotice(error));
    }
  });
  const row = (d) => [
    [d.event === 'contextRecalled' ? 'Recall' : d.status, d.sequence ? el('span', { class: 'small muted' }, ` no. ${d.sequence}`) : null, el('br'), id(d.event_id)], id(d.upload_id), badge(...(tones[d.state] ?? [d.state])),
    time(d.queued_at), attempts(d.attempts),
    el('button', { type: 'button', class: 'small', 'aria-label': `Replay ${d.event_id}`, onclick: again(d) }, 'Replay'),
  ];
  const read = () => paged(list, {
    label: `Deliveries of ${hook.org_id}`, said, empty: 'No such delivery.',
    columns: ['Event', 'Upload', 'State', 'Queued', 'Attempts', { name: 'Action', quiet: true }],
    load: async (cursor) => {
      const query = new URLSearchParams({ limit: '20' });
      if (state.value) query.set('state', state.value);
      if (cursor) query.set('cursor', cursor);
      const { data } = await call('GET', `${at(hook.org_id, '/deliveries')}?${query}`, admin);
      return { rows: data.deliveries.map(row), next: data.next_cursor };
    },
  });
  state.addEventListener('change', () => read().catch((error) => said(errorNotice(error))));
  await read();
  fill(place, el('div', { class: 'row apart end' }, heading, el('div', { class: 'field slim' }, el('label', { for: 'delivery-state' }, 'Show'), state)), list);
  heading.focus();
}

export async function show(panel, { argument, said }) {
  const heading = el('h2', { id: 'webhooks-title', tabindex: '-1' }, 'Webhooks');
  const list = el('div', { class: 'stack' });
  const log = el('section', { class: 'stack', 'aria-labelledby': 'deliveries-title' });
  const act = (work, { reread = true } = {}) => ({ currentTarget: button }) => busy(button, async () => {
    try {
      const done = await work();
      if (!done) return;
      if (reread) {
        await read();
        if (!button.isConnected) heading.focus();
      }
      said(...done);
    } catch (error) {
      said(errorNotice(error));
    }
  });
  const row = (h) => [
    id(h.org_id), id(h.url),
    [h.state === 'active' ? (h.paused_until ? badge('paused', 'warn') : badge('active', 'good')) : badge(h.state, 'bad'),
      h.paused_until ? el('span', { class: 'small muted' }, ' until ', time(h.paused_until)) : null, h.failures ? el('span', { class: 'small muted' }, ` ${h.failures} failures in a row`) : null],
    String(h.pending), String(h.dead), time(h.updated_at),
    el('div', { class: 'row' },
      el('button', { type: 'button', class: 'small', 'aria-label': `Deliveries of ${h.org_id}`, onclick: act(async () => void (await deliveries(log, h, said, read))) }, 'Deliveries'),
      el('button', { type: 'button', class: 'small', 'aria-label': `Test the webhook of ${h.org_id}`, onclick: act(() => test(h), { reread: false }) }, 'Test'),
      h.dead ? el('button', { type: 'button', class: 'small', 'aria-label': `Replay given up deliveries of ${h.org_id}`, onclick: act(() => replay(h, {}, 'Every delivery that was given up is sent again, in order.')) }, 'Replay given up') : null,
      el('button', { type: 'button', class: 'small', 'aria-label': `New secret for ${h.org_id}`, onclick: act(() => rotate(h)) }, 'New secret'),
      el('button', { type: 'button', class: 'small danger', 'aria-label': `Delete the webhook of ${h.org_id}`, onclick: act(async () => {
        const done = await remove(h);
        if (done) fill(log);
        return done;
      }) }, 'Delete')),
  ];
  const read = () => paged(list, {
    label: 'Webhooks', said, empty: 'No organization has a webhook yet.',
    columns: ['Organization', 'Address', 'State', { name: 'Waiting', num: true }, { name: 'Given up', num: true }, 'Changed', { name: 'Actions', quiet: true }],
    load: async (cursor) => {
      const { data } = await call('GET', `/admin/webhooks?limit=20${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, admin);
      return { rows: data.webhooks.map(row), next: data.next_cursor };
    },
  });
  await read();
  fill(panel, heading, list, log, setForm(argument, async (data) => {
    await read();
    heading.focus();
    said('good', `The webhook of ${data.org_id} is set.`, id(data.url));
  }));
}
