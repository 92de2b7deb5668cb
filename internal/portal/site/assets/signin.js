// The sign-in form, on its own page and wherever a page needs a further seat.
import { signIn, seatFor } from './api.js';
import { el, fill, setError, sentence, busy, errorNotice } from './dom.js';

const needs = {
  solution_company_upload: 'a credential with the role solution_company_upload',
  ai_reader: 'a credential with the role ai_reader',
  admin: "the operator's admin token",
};

let forms = 0;

/** A form that exchanges a credential for a seat. role: the one that is needed, if any; done(session) is called once it is held. */
export function signInForm({ role, why, done, title = 'Sign in' }) {
  const name = `credential-${++forms}`;
  const input = el('input', {
    id: name, name: 'credential', type: 'password', required: true, autocomplete: 'off', spellcheck: 'false', autocapitalize: 'none', maxlength: '4096',
    'aria-describedby': `${name}-hint`,
  });
  const said = el('div', { class: 'live', role: 'alert' });
  const button = el('button', { type: 'submit', class: 'primary' }, 'Sign in');
  const form = el('form', { class: 'card', novalidate: true, 'aria-labelledby': `${name}-title` },
    el('h2', { id: `${name}-title` }, title),
    why ? el('p', {}, why) : null,
    el('div', { class: 'field' },
      el('label', { for: name }, role === 'admin' ? 'Admin token' : 'Credential'),
      input,
      el('span', { id: `${name}-hint`, class: 'hint' }, role ? `Paste ${needs[role]}.` : 'Paste a credential of your organization, or the admin token.',
        ' It is exchanged for a session of at most 8 hours and not kept in this browser.'),
      el('span', { id: `${name}-error`, class: 'error' })),
    el('div', {}, button),
    said);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    fill(said);
    setError(input, '');
    const credential = input.value.trim();
    if (!credential) {
      setError(input, 'Paste the credential first.');
      input.focus();
      return;
    }
    busy(button, async () => {
      try {
        const session = await signIn(credential);
        input.value = '';
        if (role && !seatFor(session, role)) {
          setError(input, `That credential was accepted, but it is of another role. Here you need ${needs[role]}.`);
          input.focus();
          return;
        }
        done?.(session);
      } catch (error) {
        if (error.status === 401) {
          setError(input, 'The service does not accept this credential. Check that all of it was copied, that it was not revoked and has not expired; else ask your operator for a new one.');
        } else if (error.fields?.length) {
          setError(input, sentence(error.fields[0].reason));
        } else {
          fill(said, errorNotice(error));
        }
        input.select();
        input.focus();
      }
    });
  });
  return form;
}
