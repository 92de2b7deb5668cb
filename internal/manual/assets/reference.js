// The API reference: what the service's own document says, by subject. An operation is written out when it is opened.
import { call, ApiError } from '/assets/api.js';
import { $, el, fill } from '/assets/dom.js';

const address = '/api/v1/ai/openapi.json';
const methods = ['get', 'put', 'post', 'patch', 'delete'];

let contract; // the document

/** The object that a $ref names; anything else as it is. */
function follow(part) {
  if (!part?.$ref) return part;
  return part.$ref.slice(2).split('/').reduce((at, name) => at?.[name.replaceAll('~1', '/').replaceAll('~0', '~')], contract);
}

const nameOf = (part) => part?.$ref?.split('/').pop();

/** Text in which `…` is code. */
function prose(text) {
  return String(text ?? '').split('`').map((piece, i) => (i % 2 ? el('code', {}, piece) : piece));
}

const paragraphs = (text) => String(text ?? '').split('\n').filter(Boolean).map((line) => el('p', {}, ...prose(line)));

function code(text, label) {
  return el('div', { class: 'code' }, el('pre', { tabindex: '0', role: 'group', 'aria-label': label }, el('code', {}, text)));
}

const pretty = (value) => JSON.stringify(value, null, 2);

/** What a value must be, in words: "string, 8 to 128 characters". */
function typeOf(schema) {
  const s = follow(schema) ?? {};
  if (s.const !== undefined) return `always ${JSON.stringify(s.const)}`;
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(' or ');
  const types = Array.isArray(s.type) ? s.type : [s.type ?? (s.properties ? 'object' : 'any value')];
  const words = [types.join(' or ')];
  if (types.includes('array')) words[0] = `list of ${nameOf(s.items) ?? typeOf(s.items)}`;
  if (s.format) words.push(s.format);
  const range = (least, most, unit) => {
    if (least !== undefined && most !== undefined) words.push(`${least} to ${most}${unit}`);
    else if (most !== undefined) words.push(`at most ${most}${unit}`);
    else if (least !== undefined) words.push(`at least ${least}${unit}`);
  };
  range(s.minLength, s.maxLength, ' characters');
  range(s.minimum, s.maximum, '');
  range(s.minItems, s.maxItems, ' items');
  if (s.default !== undefined) words.push(`default ${JSON.stringify(s.default)}`);
  return words.join(', ');
}

const deepest = 6; // levels of a schema that are written out

/** The members of an object, or of what a list holds. */
function members(schema, level = 0) {
  let s = follow(schema) ?? {};
  if (s.type === 'array' || s.type?.includes?.('array')) s = follow(s.items) ?? {};
  const all = Object.entries(s.properties ?? {}).filter(([name]) => name !== '$schema');
  if (!all.length || level >= deepest) return null;
  return el('ul', { class: 'schema' }, ...all.map(([name, member]) => {
    const full = follow(member) ?? {};
    const about = member.description ?? full.description;
    return el('li', {},
      el('code', {}, name), ' ', el('span', { class: 'type' }, typeOf(member)),
      s.required?.includes(name) ? el('span', { class: 'needed' }, ' required') : null,
      full.deprecated ? el('span', { class: 'needed' }, ' deprecated') : null,
      about ? el('p', {}, ...prose(about)) : null,
      members(member, level + 1));
  }));
}

function content(part, what) {
  return Object.entries(part?.content ?? {}).flatMap(([type, media]) => {
    const tree = members(media.schema);
    return [
      el('p', { class: 'small muted' }, type, tree ? null : `, ${typeOf(media.schema)}`),
      tree ? el('details', {}, el('summary', {}, `Fields of the ${what}`), tree) : null,
      media.example === undefined ? null : code(typeof media.example === 'string' ? media.example : pretty(media.example), `Example of the ${what}`),
    ];
  });
}

const schemes = {
  apiKey: 'a tenant credential in x-api-key', bearer: 'the same, or an OAuth access token, as Bearer', adminToken: 'the admin token, as Bearer',
  oauth2: 'an OAuth access token', clientBasic: 'an OAuth client, by Basic', portalSession: 'a session of the portal',
};

function whoMay(operation) {
  const needs = operation.security ?? contract.security ?? [];
  if (!needs.length || needs.some((need) => !Object.keys(need).length)) return 'Public: no credential is needed.';
  const scopes = new Set(needs.flatMap((need) => Object.values(need).flat()));
  const words = [...new Set(needs.flatMap((need) => Object.keys(need)))].map((name) => schemes[name] ?? name);
  return `Needs ${words.join('; or ')}.${scopes.size ? ` Scope: ${[...scopes].join(', ')}.` : ''}`;
}

function parameters(operation, shared) {
  const all = [...(shared ?? []), ...(operation.parameters ?? [])].map(follow);
  if (!all.length) return [];
  return [
    el('h3', {}, 'Parameters'),
    el('div', { class: 'scroll', role: 'group', 'aria-label': 'Parameters', tabindex: '0' }, el('table', {},
      el('thead', {}, el('tr', {}, ...['Name', 'Where', 'What'].map((name) => el('th', { scope: 'col' }, name)))),
      el('tbody', {}, ...all.map((p) => el('tr', {},
        el('td', {}, el('code', {}, p.name), p.required ? el('span', { class: 'small muted' }, ' required') : null),
        el('td', {}, p.in),
        el('td', {}, ...prose(p.description ?? ''), el('div', { class: 'small muted' }, typeOf(p.schema)))))))),
  ];
}

function answers(operation) {
  const shown = [];
  const refused = [];
  for (const [status, named] of Object.entries(operation.responses ?? {})) {
    const answer = follow(named);
    if (status < 400) {
      shown.push(el('h3', {}, `Answer ${status}`), ...(answer.description && !/^[A-Z][A-Za-z ]*$/.test(answer.description) ? paragraphs(answer.description) : []), ...content(answer, `answer ${status}`));
    } else {
      refused.push(...String(answer.description ?? '').split('\n').filter(Boolean).map((line) => el('li', {}, el('b', {}, `${status} `), ...prose(line))));
    }
  }
  if (refused.length) shown.push(el('details', {}, el('summary', {}, `Refusals (${refused.length})`), el('ul', {}, ...refused), el('p', {}, el('a', { href: '/docs/errors' }, 'Every error code'))));
  return shown;
}

function details({ method, path, operation, shared }) {
  return [
    ...paragraphs(operation.description),
    el('p', { class: 'small' }, whoMay(operation)),
    ...parameters(operation, shared),
    ...(operation.requestBody ? [el('h3', {}, 'Body'), ...content(follow(operation.requestBody), 'body')] : []),
    ...answers(operation),
    path ? el('p', { class: 'small muted' }, 'Its name in the document: ', el('code', {}, operation.operationId ?? `${method} ${path}`)) : null,
  ];
}

const tones = { get: 'info', post: 'good', put: 'warn', patch: 'warn', delete: 'bad' };

function entry(item) {
  const { method, path, operation } = item;
  const body = el('div', { class: 'body' });
  const node = el('details', { class: 'operation', id: `op-${operation.operationId}` },
    el('summary', {},
      el('span', { class: 'badge method', 'data-tone': tones[method] }, path ? method.toUpperCase() : 'EVENT'),
      el('code', { class: 'path' }, path ?? item.name),
      el('span', { class: 'sentence' }, operation.summary ?? '', operation.deprecated ? ' (deprecated)' : '')),
    body);
  node.addEventListener('toggle', () => {
    if (node.open && !body.hasChildNodes()) fill(body, ...details(item));
  });
  return node;
}

function subjects() {
  const items = [];
  for (const [path, all] of Object.entries(contract.paths)) {
    for (const method of methods) if (all[method]) items.push({ method, path, operation: all[method], shared: all.parameters });
  }
  for (const [name, all] of Object.entries(contract.webhooks ?? {})) {
    for (const method of methods) if (all[method]) items.push({ method, name, operation: { ...all[method], operationId: all[method].operationId ?? name } });
  }
  const bySubject = new Map((contract.tags ?? []).map((tag) => [tag.name, { about: tag.description, items: [] }]));
  for (const item of items) {
    const name = item.operation.tags?.[0] ?? 'other';
    if (!bySubject.has(name)) bySubject.set(name, { about: '', items: [] });
    bySubject.get(name).items.push(item);
  }
  return [...bySubject].filter(([, subject]) => subject.items.length);
}

const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

function show(place) {
  const said = el('p', { class: 'small muted', role: 'status' });
  const input = el('input', { id: 'operations', type: 'search', autocomplete: 'off', spellcheck: 'false' });
  const sections = subjects().map(([name, { about, items }]) => ({
    node: el('section', { 'aria-labelledby': `tag-${name.replaceAll(' ', '-')}` }),
    heading: el('h2', { id: `tag-${name.replaceAll(' ', '-')}` }, capital(name)),
    about,
    entries: items.map((item) => ({ node: entry(item), text: [item.method, item.path, item.name, item.operation.summary, item.operation.operationId, name].join(' ').toLowerCase() })),
  }));
  for (const { node, heading, about, entries } of sections) fill(node, heading, about ? el('p', { class: 'muted' }, about) : null, ...entries.map((e) => e.node));
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { node, entries } of sections) {
      let left = 0;
      for (const e of entries) {
        e.node.hidden = !words.every((word) => e.text.includes(word));
        if (!e.node.hidden) left++;
      }
      node.hidden = !left;
      count += left;
    }
    said.textContent = words.length ? `${count} ${count === 1 ? 'operation' : 'operations'}` : '';
  };
  input.addEventListener('input', filter);
  fill(place,
    el('h2', { id: 'operations-heading' }, 'Operations'),
    el('div', { class: 'field' }, el('label', { for: 'operations' }, 'Find an operation'), input, said),
    ...sections.map(({ node }) => node));
  const named = () => {
    const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    if (target?.matches('.operation')) target.open = true;
    if (target && place.contains(target)) target.scrollIntoView();
  };
  addEventListener('hashchange', named);
  named();
}

// The sandbox: an account of nobody, nothing kept, no data of anybody.

const trials = [
  { name: 'Echo an input', method: 'POST', path: '/api/v1/sandbox/echo', keyed: true, body: { input: 'hello' } },
  { name: 'Echo several inputs', method: 'POST', path: '/api/v1/sandbox/batch', keyed: true, body: { operations: [{ input: 'one' }, { input: 'two' }] } },
  { name: 'What the sandbox is', method: 'GET', path: '/api/v1/sandbox' },
  { name: 'How to get a sandbox credential', method: 'GET', path: '/api/v1/sandbox/keys' },
];

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

function tryOut(place) {
  const key = el('input', { id: 'sandbox-key', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', class: 'id', 'aria-describedby': 'sandbox-key-hint' });
  const get = el('button', { type: 'button' }, 'Get a credential');
  const choice = el('select', { id: 'sandbox-operation' }, ...trials.map((trial, i) => el('option', { value: String(i) }, `${trial.method} ${trial.path}`)));
  const body = el('textarea', { id: 'sandbox-body', spellcheck: 'false', class: 'id', rows: '4' });
  const bodyField = el('div', { class: 'field' }, el('label', { for: 'sandbox-body' }, 'Body (JSON)'), body);
  const send = el('button', { type: 'submit', class: 'primary' }, 'Send');
  const curl = el('div');
  const said = el('div', { role: 'status', class: 'live' });
  const chosen = () => trials[Number(choice.value)];

  const showCurl = () => {
    const trial = chosen();
    const words = ['curl', '-s', location.origin + trial.path];
    if (trial.keyed) words.push('-H', quoted(`x-api-key: ${key.value.trim() || 'sbx_…'}`), '-H', quoted('Content-Type: application/json'), '-d', quoted(body.value));
    fill(curl, code(words.join(' '), 'The same with curl'));
  };
  const choose = () => {
    const { body: example } = chosen();
    bodyField.hidden = !example;
    body.value = example ? JSON.stringify(example) : '';
    showCurl();
  };
  const answered = (status, value) => fill(said, el('p', {}, el('span', { class: 'badge', 'data-tone': status >= 200 && status < 400 ? 'good' : 'bad' }, String(status || 'Not sent'))), code(pretty(value), 'The answer'));
  const refused = (error) => {
    if (!(error instanceof ApiError)) throw error;
    answered(error.status || 'No answer', { code: error.code, message: error.message, request_id: error.requestId || undefined, details: error.details });
  };

  get.addEventListener('click', async () => {
    get.setAttribute('aria-busy', 'true');
    try {
      const { status, body: answer } = await call('POST', '/api/v1/sandbox/keys');
      key.value = answer.data.token;
      showCurl();
      answered(status, answer);
    } catch (error) {
      refused(error);
    } finally {
      get.removeAttribute('aria-busy');
    }
  });
  choice.addEventListener('change', choose);
  key.addEventListener('input', showCurl);
  body.addEventListener('input', showCurl);

  const form = el('form', { class: 'card', 'aria-labelledby': 'sandbox-heading' },
    el('div', { class: 'row end' },
      el('div', { class: 'field' }, el('label', { for: 'sandbox-key' }, 'Sandbox credential'), key), get),
    el('span', { id: 'sandbox-key-hint', class: 'hint' }, 'Free, without an account; it ends after an hour. Put no other credential here.'),
    el('div', { class: 'field' }, el('label', { for: 'sandbox-operation' }, 'Operation'), choice),
    bodyField, el('div', { class: 'row' }, send), curl, said);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const trial = chosen();
    const token = key.value.trim();
    if (trial.keyed && token && !token.startsWith('sbx_')) {
      answered(0, { message: 'This is not a sandbox credential, so it was not sent. Get one with the button above.' });
      return;
    }
    send.setAttribute('aria-busy', 'true');
    try {
      const { status, body: answer } = await call(trial.method, trial.path, {
        headers: { ...(trial.keyed && token ? { 'x-api-key': token } : {}), ...(trial.body ? { 'Content-Type': 'application/json' } : {}) },
        body: trial.body ? body.value : undefined,
      });
      answered(status, answer);
    } catch (error) {
      refused(error);
    } finally {
      send.removeAttribute('aria-busy');
    }
  });
  choose();
  fill(place, el('h2', { id: 'sandbox-heading' }, 'Try it'), el('p', {}, 'The sandbox answers like the service and keeps nothing. It has no data of anybody, and no way to any.'), form);
}

async function start() {
  tryOut($('#sandbox'));
  const place = $('#reference');
  fill(place, el('p', { class: 'muted', role: 'status' }, 'The document is being read…'));
  try {
    ({ body: contract } = await call('GET', address));
    show(place);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    fill(place, el('p', { class: 'notice', 'data-tone': 'bad', role: 'alert' }, error.message));
  }
}

start();
