// Dialogs that ask for something, and the one that shows a secret once.
import { el, fill, busy, errorNotice, fieldErrors, copyButton } from './dom.js';

/** A dialog with a form. send(form) does the work and answers the result, undefined to stay open, or throws. Answers the result, null where it was cancelled. */
export function ask({ title, body, yes, danger = false, send }) {
  return new Promise((resolve) => {
    const failed = el('div', { class: 'live', role: 'alert' });
    const go = el('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, yes);
    const heading = el('h2', { id: 'dialog-title' }, title);
    const form = el('form', { novalidate: true }, heading, body, failed, el('div', { class: 'row' }, go, el('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel')));
    const dialog = el('dialog', { class: danger ? 'danger' : '', 'aria-labelledby': 'dialog-title' }, form);
    let result = null;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      fill(failed);
      busy(go, async () => {
        try {
          result = await send(form);
          if (result !== undefined) dialog.close();
          else result = null;
        } catch (error) {
          const rest = fieldErrors(form, error);
          if (!error.fields?.length || rest.length) fill(failed, errorNotice(error));
        }
      });
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Shows a secret that is never shown again. It closes only when the person says that it is stored. */
export function showOnce({ title, text, secret, more = [] }) {
  return new Promise((resolve) => {
    const value = el('input', { id: 'secret-once', class: 'id', readonly: true, value: secret, autocomplete: 'off', spellcheck: 'false', onfocus: (e) => e.currentTarget.select() });
    const dialog = el('dialog', { 'aria-labelledby': 'secret-title' },
      el('form', { method: 'dialog' }, el('h2', { id: 'secret-title' }, title), el('p', {}, text), more,
        el('div', { class: 'field' }, el('label', { for: 'secret-once' }, 'Shown once'), value),
        copyButton('Copy', () => secret, { autofocus: true }),
        el('div', { class: 'row' }, el('button', { type: 'submit', class: 'primary' }, 'I have stored it'))));
    dialog.addEventListener('cancel', (event) => event.preventDefault()); // Escape must not lose it
    dialog.addEventListener('close', () => {
      value.value = '';
      dialog.remove();
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
