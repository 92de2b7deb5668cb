// Building pages from data. Text goes in as text; nothing here parses markup.

/** An element. Properties: class, on<event> functions, data-… and aria-… and other attributes; true is an empty attribute, null leaves it out. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'max') node[name] = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

export const $ = (selector, within = document) => within.querySelector(selector);

/** Replaces what is in node. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** 16777216 → "16 MiB". */
export function bytes(n) {
  let unit = 0;
  let v = Number(n);
  if (!Number.isFinite(v)) return '–';
  while (v >= 1024 && unit < units.length - 1) {
    v /= 1024;
    unit++;
  }
  return `${v.toLocaleString(undefined, { maximumFractionDigits: v < 10 && unit > 0 ? 1 : 0 })} ${units[unit]}`;
}

/** 5400 → "1 h 30 min". */
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 ? ` ${s % 60} s` : ''}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h${s % 3600 >= 60 ? ` ${Math.floor((s % 3600) / 60)} min` : ''}`;
  return `${Math.floor(s / 86400)} d${s % 86400 >= 3600 ? ` ${Math.floor((s % 86400) / 3600)} h` : ''}`;
}

/** A moment in the reader's own time, with the exact one on it. */
export function time(iso) {
  if (!iso) return '–';
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return String(iso);
  return el('time', { datetime: iso, title: iso }, at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' }));
}

/** A day, where the time of it does not matter; the exact moment is on it. */
export function day(iso) {
  const node = time(iso);
  if (node.textContent && node.tagName) node.textContent = new Date(iso).toLocaleDateString(undefined, { dateStyle: 'medium' });
  return node;
}

/** A list of names and values; pairs whose value is empty are left out. */
export function facts(...pairs) {
  const list = el('dl', { class: 'facts' });
  for (const [name, value] of pairs) {
    if (value === undefined || value === null || value === '' || value === false) continue;
    list.append(el('dt', {}, name), el('dd', {}, value));
  }
  return list;
}

export const id = (text) => el('span', { class: String(text ?? '').length > 40 ? 'id long' : 'id', dir: 'ltr' }, text ?? '');
export const badge = (text, tone) => el('span', { class: 'badge', 'data-tone': tone }, text);

/** A notice. tone: good, bad, warn, info. */
export function notice(tone, title, ...more) {
  return el('div', { class: 'notice', 'data-tone': tone }, el('strong', {}, title), more.map((m) => (typeof m === 'string' ? el('p', {}, m) : m)));
}

/** What an error says and what to do next, with its request_id. advice: what to do in the page's own words, instead of the usual. */
export function errorNotice(error, advice) {
  if (error?.name !== 'ApiError') {
    console.error(error);
    return notice('bad', 'This page met a mistake of its own.', 'Load it again. If it stays, tell whoever runs this service.');
  }
  const next = advice ?? {
    401: 'Your session has ended or the credential was revoked. Sign in again.',
    403: 'This credential may not do that.',
    429: error.retryAfter ? `Try again in ${duration(error.retryAfter)}.` : 'Wait a little and try again.',
    503: error.retryAfter ? `Try again in ${duration(error.retryAfter)}.` : 'Wait a little and try again.',
  }[error.status];
  return notice(
    'bad',
    sentence(error.message),
    error.fields.length ? el('ul', {}, error.fields.map((f) => el('li', {}, el('code', {}, f.path), ' ', f.reason))) : null,
    next ?? null,
    error.status === 401 ? el('p', {}, el('a', { href: `/portal?next=${encodeURIComponent(location.pathname)}` }, 'Sign in')) : null,
    error.requestId ? el('p', { class: 'small muted' }, 'Request ', id(error.requestId), error.code ? ` (${error.code})` : null) : null,
  );
}

/** "no such thing" → "No such thing." */
export function sentence(text) {
  const s = String(text ?? '').trim();
  return s && s[0].toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? '' : '.');
}

/**
 * Puts refused fields beside their controls: by data-path, else by the last part of the path as the control's name. The control needs
 * an element with id "<control id>-error". Moves the focus to the first one. Answers the fields that have no control.
 */
export function fieldErrors(form, error) {
  clearErrors(form);
  let first;
  const rest = [];
  for (const field of error?.fields ?? []) {
    const name = field.path.split('/').pop();
    const control = form.querySelector(`[data-path="${CSS.escape(field.path)}"]`) ?? form.querySelector(`[name="${CSS.escape(name)}"]`);
    if (!control || !setError(control, sentence(field.reason))) rest.push(field);
    else first ??= control;
  }
  first?.focus();
  return rest;
}

/** Marks one control; an empty text takes the mark away. Answers whether there is a place for the text. */
export function setError(control, text) {
  const place = document.getElementById(`${control.id}-error`);
  if (!place) return false;
  place.textContent = text;
  const described = new Set((control.getAttribute('aria-describedby') ?? '').split(' ').filter(Boolean));
  if (text) {
    described.add(place.id);
    control.setAttribute('aria-invalid', 'true');
  } else {
    described.delete(place.id);
    control.removeAttribute('aria-invalid');
  }
  if (described.size) control.setAttribute('aria-describedby', [...described].join(' '));
  else control.removeAttribute('aria-describedby');
  return true;
}

export function clearErrors(form) {
  for (const control of form.querySelectorAll('[aria-invalid]')) setError(control, '');
}

/** Runs work while button shows that it is busy; a second press does nothing. The focus stays where it was. */
export async function busy(button, work) {
  if (button.getAttribute('aria-busy') === 'true') return undefined;
  button.setAttribute('aria-busy', 'true');
  try {
    return await work();
  } finally {
    button.removeAttribute('aria-busy');
  }
}

/** A button that copies what text() gives, and says so. */
export function copyButton(label, text, properties = {}) {
  const said = el('span', { class: 'small muted', role: 'status' });
  const button = el('button', { type: 'button', class: 'small', ...properties }, label);
  button.addEventListener('click', async () => {
    const value = text();
    said.textContent = (await copy(value)) ? 'Copied.' : 'This browser refused. Select the text and copy it yourself.';
    setTimeout(() => (said.textContent = ''), 4000);
  });
  return el('span', { class: 'row' }, button, said);
}

async function copy(value) {
  try {
    await navigator.clipboard.writeText(value);
    return true;
  } catch { /* plain http, or not allowed: the old way */ }
  const area = el('textarea', { class: 'hidden-text', 'aria-hidden': 'true', tabindex: '-1' });
  area.value = value;
  const focused = document.activeElement;
  (focused?.closest('dialog') ?? document.body).append(area);
  area.select();
  let done = false;
  try {
    done = document.execCommand('copy');
  } catch { /* said by the caller */ }
  area.remove();
  focused?.focus();
  return done;
}

/**
 * Asks before something that cannot be taken back. Answers true for yes. word: what has to be typed first, if anything.
 */
export function confirm({ title, text, yes, danger = true, word = '' }) {
  return new Promise((resolve) => {
    const heading = `confirm-${freshNumber()}`;
    const typed = word && el('input', { id: `${heading}-word`, autocomplete: 'off', spellcheck: 'false' });
    const go = el('button', { type: 'submit', class: danger ? 'danger' : 'primary', value: 'yes', disabled: Boolean(word) }, yes);
    typed && typed.addEventListener('input', () => (go.disabled = typed.value !== word));
    const dialog = el('dialog', { class: danger ? 'danger' : '', 'aria-labelledby': heading },
      el('form', { method: 'dialog' },
        el('h2', { id: heading }, title),
        [].concat(text).map((t) => (typeof t === 'string' ? el('p', {}, t) : t)),
        word && el('div', { class: 'field' }, el('label', { for: `${heading}-word` }, 'Type ', id(word), ' to go on'), typed),
        el('div', { class: 'row' }, go, el('button', { type: 'submit', value: 'no', formnovalidate: true, autofocus: !word }, 'Cancel'))));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

let numbers = 0;
const freshNumber = () => ++numbers;

/** Gives a file to the person: name is only a proposal. */
export function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = el('a', { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}
