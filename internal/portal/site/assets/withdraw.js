// Withdrawal: asked for once more, done, and its receipt.
import { call, freshKey } from './api.js';
import { retrying, pause } from './retry.js';
import { $, el, fill, id, time, bytes, facts, notice, errorNotice, busy, download, setError } from './dom.js';
import { statusPath } from './status.js';
import { noteWithdrawn } from './uploads.js';
import { nameOf } from './names.js';

const receiptPath = (org, receiptId) => `/api/v1/organizations/${encodeURIComponent(org)}/withdrawals/${encodeURIComponent(receiptId)}`;
let dialogs = 0;

/**
 * Asks, withdraws, shows the receipt, all in one dialog. done(answer) is told once the withdrawal is confirmed; begun() once the
 * upload is being deleted. Answers when the dialog is closed.
 */
export function withdraw({ org, seat, uploadId, filename, title = 'Withdraw this upload?', begun, done }) {
  const key = freshKey();
  const name = `withdraw-${++dialogs}`;
  const reason = el('textarea', { id: `${name}-reason`, name: 'reason', maxlength: '500', rows: '3' });
  const said = el('div', { class: 'stack', role: 'status' });
  const go = el('button', { type: 'submit', class: 'danger' }, 'Withdraw for good');
  const close = el('button', { type: 'button', autofocus: true }, 'Keep it');
  const form = el('form', { novalidate: true },
    el('h2', { id: `${name}-title` }, title),
    filename ? el('p', {}, nameOf(filename)) : null,
    el('p', { class: 'small muted' }, id(uploadId)),
    el('p', {}, 'The file, its copies and its AI context are deleted for good, and no AI reader gets it again. Nobody can undo this. A receipt and the least audit data remain.'),
    el('div', { class: 'field' }, el('label', { for: reason.id }, 'Reason (optional)'), reason, el('span', { class: 'hint' }, 'Kept with the receipt. Write no personal data here.'), el('span', { id: `${reason.id}-error`, class: 'error' })),
    said,
    el('div', { class: 'row' }, go, close));
  const dialog = el('dialog', { class: 'danger', 'aria-labelledby': `${name}-title` }, form);
  const over = new AbortController();
  close.addEventListener('click', () => dialog.close());
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    busy(go, async () => {
      setError(reason, '');
      fill(said, el('p', {}, 'Deleting …'));
      try {
        const data = await confirmed({ org, seat, uploadId, key, reason: reason.value.trim(), signal: over.signal, said, close, begun });
        noteWithdrawn(org, uploadId, data.withdrawal_receipt_id);
        done?.(data);
        dialog.classList.remove('danger');
        await showReceipt(dialog, { org, seat, receiptId: data.withdrawal_receipt_id });
      } catch (error) {
        if (over.signal.aborted) return;
        if (error.fields?.length) setError(reason, error.fields[0].reason);
        fill(said, errorNotice(error));
      }
    });
  });
  return shown(dialog, over);
}

function shown(dialog, over) {
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => {
      over?.abort(new DOMException('closed', 'AbortError'));
      dialog.remove();
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Withdraws and waits until every copy is confirmed deleted, however long that takes. */
async function confirmed({ org, seat, uploadId, key, reason, signal, said, close, begun }) {
  for (;;) {
    try {
      const { data } = await retrying(() => call('POST', `${statusPath(org, uploadId)}/withdraw`, {
        seat, signal, idempotent: key, json: reason ? { reason } : {},
      }), { signal });
      return data;
    } catch (error) {
      if (error.code !== 'deletion_not_confirmed') throw error;
      begun?.();
      close.textContent = 'Close';
      fill(said, notice('warn', 'It is unreadable already, and not yet confirmed deleted everywhere.', 'The service tries again by itself, without end. You may close this; the list shows when it is done.'));
      await pause(5000, signal);
    }
  }
}

/** Opens a dialog with a receipt that is there already. */
export async function openReceipt({ org, seat, receiptId }) {
  const dialog = el('dialog', { 'aria-label': 'Withdrawal receipt' });
  const end = shown(dialog);
  try {
    await showReceipt(dialog, { org, seat, receiptId });
  } catch (error) {
    fill(dialog, el('div', { class: 'stack' }, errorNotice(error), el('div', {}, el('button', { type: 'button', onclick: () => dialog.close() }, 'Close'))));
  }
  return end;
}

async function showReceipt(dialog, { org, seat, receiptId }) {
  const { data } = await retrying(() => call('GET', receiptPath(org, receiptId), { seat }));
  const heading = el('h2', { id: 'receipt-title', tabindex: '-1' }, 'Withdrawal receipt');
  const said = el('div', { class: 'live', role: 'status' });
  const { signed_receipt: signed, ...rest } = data;
  const keys = el('button', { type: 'button', class: 'small' }, 'Public keys');
  keys.addEventListener('click', () => busy(keys, async () => {
    try {
      download('accession-keys.json', 'application/json', JSON.stringify((await call('GET', '/oauth/jwks')).body, null, 2));
    } catch (error) {
      fill(said, errorNotice(error));
    }
  }));
  dialog.setAttribute('aria-labelledby', heading.id);
  dialog.removeAttribute('aria-label');
  fill(dialog, el('div', { class: 'stack' },
    heading,
    notice('good', 'Deleted, and every copy confirmed gone.', `${bytes(data.quota_bytes)} of the storage allowance are free again.`),
    facts(['Receipt', id(data.withdrawal_receipt_id)], ['Upload', id(data.upload_id)], ['Asked for', time(data.requested_at)], ['Confirmed', time(data.withdrawn_at)],
      ['By', id(data.requested_by)], ['Reason', data.reason ? nameOf(data.reason) : null], ['SHA-256 of the file', data.sha256 ? id(data.sha256) : null],
      ['Key destroyed', time(data.key_destroyed_at)]),
    el('h3', { id: 'deletions-title' }, 'What was deleted'),
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-labelledby': 'deletions-title' }, el('table', {},
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Where'), el('th', { scope: 'col', class: 'num' }, 'Objects'), el('th', { scope: 'col' }, 'Confirmed by'))),
      el('tbody', {}, data.deletions.map((d) => el('tr', {}, el('th', { scope: 'row' }, d.backend.replaceAll('_', ' ')), el('td', { class: 'num' }, String(d.objects)), el('td', {}, d.confirmation)))))),
    data.recalled.length ? el('p', {}, `${data.recalled.length === 1 ? 'One credential had' : `${data.recalled.length} credentials had`} been served the context before. What they read is to be dropped: `, data.recalled.map((r) => [id(r.credential_id), ' '])) : el('p', {}, 'No AI reader had been served its context.'),
    el('details', {}, el('summary', {}, 'What remains'), el('ul', {}, data.remains.map((r) => el('li', {}, r.what, r.until ? [' (until ', time(r.until), ')'] : null)))),
    el('div', { class: 'row' },
      el('button', { type: 'button', class: 'small primary', onclick: () => download(`receipt-${data.withdrawal_receipt_id}.json`, 'application/json', JSON.stringify(rest, null, 2)) }, 'Download as JSON'),
      el('button', { type: 'button', class: 'small', onclick: () => download(`receipt-${data.withdrawal_receipt_id}.jws`, 'application/jose', signed) }, 'Download signed'), keys),
    el('p', { class: 'small muted' }, 'The signed receipt can be verified without this service: ', el('code', {}, 'accession receipt verify RECEIPT.jws --keys accession-keys.json')),
    said,
    el('div', {}, el('button', { type: 'button', onclick: () => dialog.close() }, 'Close'))));
  $('h2', dialog).focus();
}
