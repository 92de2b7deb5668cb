// Credentials: issued with a token that is shown once, rotated with an overlap, revoked at once.
import { call, freshKey } from './api.js';
import { $, el, fill, facts, id, badge, time, day, busy, confirm, errorNotice, fieldErrors, setError, clearErrors } from './dom.js';
import { ask, showOnce } from './dialog.js';
import { paged } from './table.js';

const admin = { seat: 'admin' };
const roles = {
  solution_company_upload: 'Hands in documents and texts, follows them, withdraws them.',
  ai_reader: 'Reads bounded contexts and the records of their serving, also over MCP.',
};
const tones = { active: 'good', revoked: 'bad', expired: 'warn' };
const stored = 'Put it into a secret store on the server side. The service keeps no copy; who lost it needs a new one.';

function issueForm(scopes, organization, issued) {
  const org = el('input', { id: 'issue-org', name: 'org_id', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', required: true, value: organization, maxlength: '128' });
  const expires = el('input', { id: 'issue-expires', name: 'expires_at', type: 'date' });
  const boxes = el('fieldset', {});
  const button = el('button', { type: 'submit', class: 'primary' }, 'Issue');
  const failed = el('div', { class: 'live', role: 'alert' });
  const offer = (role) => fill(boxes, el('legend', {}, 'Scopes'), (scopes[role] ?? []).map((scope) => el('label', { class: 'check' }, el('input', { type: 'checkbox', name: 'scopes', value: scope, checked: true }), id(scope))),
    el('span', { id: 'issue-scopes-error', class: 'error' }));
  const choice = el('fieldset', { class: 'choices' }, el('legend', {}, 'Role'), Object.entries(roles).map(([role, what], i) => el('label', { class: 'choice' },
    el('input', { type: 'radio', name: 'role', value: role, checked: i === 0, onchange: () => offer(role) }), el('span', {}, el('b', { class: 'id' }, role), what))));
  offer('solution_company_upload');
  const form = el('form', { class: 'card', novalidate: true, 'aria-labelledby': 'issue-title' },
    el('h3', { id: 'issue-title' }, 'Issue a credential'),
    el('div', { class: 'row end' },
      el('div', { class: 'field' }, el('label', { for: 'issue-org' }, 'Organization'), org, el('span', { id: 'issue-org-error', class: 'error' })),
      el('div', { class: 'field' }, el('label', { for: 'issue-expires' }, 'Expires (left empty: in 180 days)'), expires, el('span', { id: 'issue-expires-error', class: 'error' }))),
    el('div', { class: 'grid' }, choice, boxes), failed, el('div', {}, button));
  let key = freshKey();
  form.addEventListener('input', () => (key = freshKey())); // the same request keeps its key, so a repeat issues nothing twice
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    fill(failed);
    clearErrors(form);
    const chosen = [...boxes.querySelectorAll('input:checked')].map((box) => box.value);
    if (!org.value.trim()) {
      setError(org, 'Give the id of the organization.');
      org.focus();
      return;
    }
    if (!chosen.length) {
      $('#issue-scopes-error').textContent = 'Choose at least one.';
      $('input', boxes).focus();
      return;
    }
    const json = { org_id: org.value.trim(), role: $('input[name=role]:checked', form).value, scope: chosen.join(' ') };
    if (expires.value) json.expires_at = `${expires.value}T23:59:59Z`;
    busy(button, async () => {
      try {
        const { data } = await call('POST', '/admin/tenant-keys/issue', { ...admin, json, idempotent: key });
        key = freshKey();
        await showOnce({ title: 'The credential was issued', text: stored, secret: data.token,
          more: [facts(['Credential', id(data.credential_id)], ['Organization', id(data.org_id)], ['Role', id(data.role)], ['Expires', time(data.expires_at)])] });
        await issued(data);
      } catch (error) {
        const rest = fieldErrors(form, error);
        if (!error.fields?.length || rest.length) fill(failed, errorNotice(error));
      }
    });
  });
  return form;
}

async function rotate(credential) {
  const overlap = el('select', { id: 'rotate-overlap', name: 'overlap_seconds' },
    [['86400', 'for one more day'], ['3600', 'for one more hour'], ['604800', 'for seven more days'], ['0', 'no longer: it ends at once']].map(([value, name]) => el('option', { value }, name)));
  const key = freshKey();
  const data = await ask({
    title: 'Rotate this credential?', yes: 'Rotate',
    body: [
      el('p', {}, 'A successor with the same organization, role and scopes is issued.'), facts(['Credential', id(credential.credential_id)], ['Organization', id(credential.org_id)]),
      el('div', { class: 'field' }, el('label', { for: 'rotate-overlap' }, 'The old one is accepted'), overlap, el('span', { id: 'rotate-overlap-error', class: 'error' })),
    ],
    send: async () => (await call('POST', `/admin/tenant-keys/credentials/${encodeURIComponent(credential.credential_id)}/rotate`, { ...admin, json: { overlap_seconds: Number(overlap.value) }, idempotent: `${key}-${overlap.value}` })).data,
  });
  if (!data) return null;
  await showOnce({ title: 'The successor was issued', text: stored, secret: data.token, more: [facts(['Credential', id(data.credential_id)], ['Replaces', id(data.replaces.credential_id)], ['Which ends', time(data.replaces.expires_at)])] });
  return ['The credential was rotated.', el('p', {}, id(data.credential_id), ' replaces ', id(data.replaces.credential_id), '.')];
}

async function revoke(credential) {
  const sure = await confirm({
    title: 'Revoke this credential?', yes: 'Revoke',
    text: [facts(['Credential', id(credential.credential_id)], ['Organization', id(credential.org_id)], ['Role', id(credential.role)]), 'It and every token and session made with it end at once. That cannot be taken back.'],
  });
  if (!sure) return null;
  const { data } = await call('POST', `/admin/tenant-keys/credentials/${encodeURIComponent(credential.credential_id)}/revoke`, { ...admin, json: {}, idempotent: true });
  return ['The credential was revoked.', el('p', {}, id(data.credential_id), ' is no longer accepted.')];
}

export async function show(panel, { argument, said }) {
  const { data: policy } = await call('GET', '/admin/tenant-keys/policy');
  const list = el('div', { class: 'stack' });
  const heading = el('h2', { id: 'credentials-title', tabindex: '-1' }, 'Credentials');
  const org = el('input', { id: 'list-org', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', value: argument });
  const ended = el('input', { type: 'checkbox', id: 'list-ended' });
  const act = (work) => (event) => busy(event.currentTarget, async () => {
    try {
      const done = await work();
      if (!done) return;
      await read();
      heading.focus();
      said('good', ...done);
    } catch (error) {
      said(errorNotice(error));
    }
  });
  const row = (c) => [
    id(c.credential_id), id(c.org_id), [id(c.role), el('br'), el('span', { class: 'small muted' }, c.scope)], badge(c.state, tones[c.state]), day(c.created_at), c.revoked_at ? ['revoked ', day(c.revoked_at)] : day(c.expires_at),
    c.state === 'active' ? el('div', { class: 'row two' },
      el('button', { type: 'button', class: 'small', 'aria-label': `Rotate ${c.credential_id}`, onclick: act(() => rotate(c)) }, 'Rotate'),
      el('button', { type: 'button', class: 'small danger', 'aria-label': `Revoke ${c.credential_id}`, onclick: act(() => revoke(c)) }, 'Revoke')) : '',
  ];
  const read = () => paged(list, {
    label: 'Credentials', said, empty: org.value ? 'This organization has no such credential.' : 'No credential was issued yet.',
    columns: ['Credential', 'Organization', 'Role and scopes', 'State', 'Issued', 'Ends', { name: 'Actions', quiet: true }],
    load: async (cursor) => {
      const query = new URLSearchParams({ limit: '20' });
      if (org.value.trim()) query.set('org_id', org.value.trim());
      if (ended.checked) query.set('include_ended', 'true');
      if (cursor) query.set('cursor', cursor);
      const { data } = await call('GET', `/admin/tenant-keys/credentials?${query}`, admin);
      return { rows: data.credentials.map(row), next: data.next_cursor };
    },
  });
  const filter = el('form', { class: 'row end', role: 'search', 'aria-label': 'Credentials', onsubmit: (event) => {
    event.preventDefault();
    busy(event.submitter ?? $('button', filter), async () => {
      try {
        const n = await read();
        said('info', n ? `${n === 1 ? '1 credential is' : `${n} credentials are`} shown.` : 'There is none.');
      } catch (error) {
        said(errorNotice(error));
      }
    });
  } },
  el('div', { class: 'field' }, el('label', { for: 'list-org' }, 'Of the organization'), org),
  el('label', { class: 'check' }, ended, el('span', {}, 'Revoked and expired ones too')),
  el('button', { type: 'submit' }, 'Show'));
  await read();
  fill(panel, heading, filter, list, issueForm(policy.roles ?? {}, argument, async (data) => {
    if (org.value && org.value !== data.org_id) org.value = data.org_id;
    await read();
    heading.focus();
    said('good', 'A credential was issued.', el('p', {}, id(data.credential_id), ' of ', id(data.org_id), '.'));
  }));
}
