// The operator's page: one section at a time, each a module of its own that is loaded when it is first opened.
import { $, el, fill, errorNotice, notice } from './dom.js';
import { needSeat } from './shell.js';

const sections = [
  ['state', 'State'],
  ['organizations', 'Organizations'],
  ['credentials', 'Credentials'],
  ['webhooks', 'Webhooks'],
  ['audit', 'Audit'],
];

const told = el('div', { class: 'toast', role: 'status', 'aria-live': 'polite' });

/**
 * Says what happened: said(tone, title, …) or said(node). It stays until the next thing happens or it is dismissed. What can be seen
 * anyway (tone info) is only said to screen readers.
 */
function said(first, ...rest) {
  if (first === 'info') {
    fill(told, el('p', { class: 'hidden-text' }, rest[0]));
    return;
  }
  const node = typeof first === 'string' ? notice(first, ...rest) : first;
  node.append(el('button', { type: 'button', class: 'quiet small', onclick: () => fill(told) }, 'Dismiss'));
  fill(told, node);
}

const tabs = new Map();
const panels = new Map();
let current = '';

/** Opens a section; argument is handed to it, such as the organization to show. */
async function go(name, argument = '', { focus = false } = {}) {
  if (current !== name) fill(told);
  current = name;
  for (const [other, tab] of tabs) {
    const chosen = other === name;
    tab.setAttribute('aria-selected', String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    panels.get(other).hidden = !chosen;
  }
  const address = `#${name}${argument ? `/${encodeURIComponent(argument)}` : ''}`;
  if (location.hash !== address) history.replaceState(null, '', address);
  if (focus) tabs.get(name).focus();
  const panel = panels.get(name);
  panel.setAttribute('aria-busy', 'true');
  try {
    const section = await import(`./operator-${name}.js`);
    await section.show(panel, { argument, go, said });
  } catch (error) {
    fill(panel, errorNotice(error), el('div', {}, el('button', { type: 'button', onclick: () => go(name, argument) }, 'Try again')));
  } finally {
    panel.removeAttribute('aria-busy');
  }
}

function fromAddress() {
  const [name, argument = ''] = location.hash.slice(1).split('/');
  if (!tabs.has(name)) return ['state', ''];
  try {
    return [name, decodeURIComponent(argument)];
  } catch {
    return [name, ''];
  }
}

function keys(event) {
  const names = [...tabs.keys()];
  const at = names.indexOf(current);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  go(names[(to + names.length) % names.length], '', { focus: true });
}

async function start() {
  await needSeat('admin', $('#seat'), 'The operator signs in with the admin token that the service was started with.');
  const list = el('div', { role: 'tablist', 'aria-label': 'Sections', onkeydown: keys });
  for (const [name, title] of sections) {
    const tab = el('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `panel-${name}`, onclick: () => go(name) }, title);
    tabs.set(name, tab);
    panels.set(name, el('section', { role: 'tabpanel', id: `panel-${name}`, 'aria-labelledby': `tab-${name}`, tabindex: '0', hidden: true }));
    list.append(tab);
  }
  const place = $('#sections');
  fill(place, list, [...panels.values()]);
  document.body.append(told);
  place.hidden = false;
  window.addEventListener('hashchange', () => go(...fromAddress()));
  await go(...fromAddress());
}

start().catch((error) => fill($('#seat'), errorNotice(error)));
