// Tables of data: rows become cards where the window is narrow, and keep their roles for screen readers.
import { el, fill, busy, errorNotice } from './dom.js';

/**
 * columns: names, or {name, num, quiet} where quiet hides the name from sight. rows: lists of cells, the first of which names
 * the row; or {cells, more}, where more() makes what a button of the row opens below it. */
export function table(label, columns, rows = []) {
  const named = columns.map((c) => (typeof c === 'string' ? { name: c } : c));
  const body = el('tbody', { role: 'rowgroup' });
  let count = 0;
  const line = (cells) => el('tr', { role: 'row' }, cells.map((cell, i) => el(i ? 'td' : 'th', {
    role: i ? 'cell' : 'rowheader', scope: i ? null : 'row', class: named[i].num ? 'num' : null, 'data-name': named[i].quiet ? null : named[i].name,
  }, el('div', {}, cell))));
  const add = (more) => {
    count += more.length;
    for (const row of more) body.append(...(Array.isArray(row) ? [line(row)] : opening(row, line, named.length)));
  };
  add(rows);
  const whole = el('table', { class: 'cards', role: 'table', 'aria-label': label },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, named.map((c) => el('th', { role: 'columnheader', scope: 'col', class: c.num ? 'num' : null }, c.quiet ? el('span', { class: 'hidden-text' }, c.name) : c.name)))),
    body);
  return { node: el('div', { class: 'scroll' }, whole), add, rows: () => count };
}

function opening({ cells, more }, line, width) {
  const below = el('tr', { role: 'row', class: 'more', hidden: true });
  const button = el('button', { type: 'button', class: 'small quiet', 'aria-expanded': 'false' }, 'Details');
  button.addEventListener('click', () => {
    if (!below.firstChild) below.append(el('td', { role: 'cell', colspan: String(width) }, more()));
    below.hidden = !below.hidden;
    button.setAttribute('aria-expanded', String(!below.hidden));
  });
  return [line([...cells, button]), below];
}

/**
 * A list that is read page by page into place. load(cursor) answers {rows, next}; empty is the text where there is nothing.
 * Answers once the first page is there.
 */
export async function paged(place, { label, columns, load, empty, said }) {
  const shown = table(label, columns);
  const more = el('button', { type: 'button', class: 'small' }, 'Show more');
  let next = '';
  const read = async () => {
    const page = await load(next);
    const first = shown.rows();
    shown.add(page.rows);
    next = page.next;
    more.hidden = !next;
    return first;
  };
  more.addEventListener('click', () => busy(more, async () => {
    try {
      const first = await read();
      said?.('info', `${shown.rows() - first} more are shown, ${shown.rows()} in all.`);
    } catch (error) {
      said?.(errorNotice(error));
    }
  }));
  await read();
  if (shown.rows() === 0) fill(place, el('p', { class: 'empty' }, empty));
  else fill(place, shown.node, el('div', {}, more));
  return shown.rows();
}
