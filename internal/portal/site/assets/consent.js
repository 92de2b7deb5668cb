// The agreement, its digest, and an explicit consent: once on a page.
import { call } from './api.js';
import { el, fill, id, badge, notice, setError } from './dom.js';
import { textDigest } from './hash.js';

/**
 * Shows the agreement and asks for consent in place, inside a form. Answers {read, withdraw}: read() is the consent of the contract,
 * or null with the mistakes beside the fields; withdraw() unticks the box, for the next submission.
 */
export async function askConsent(place, { purpose }) {
  const { data } = await call('GET', '/portal/config');
  const a = data.agreement;
  if (!a) {
    fill(place, notice('bad', 'This service publishes no agreement.', 'Without its text nobody can consent to it, so nothing can be handed in here. Tell the operator.'));
    return { read: () => null, withdraw: () => {} };
  }
  const computed = textDigest(a.text);
  if (computed !== a.text_hash_sha256) {
    fill(place, notice('bad', 'The agreement is not the published one.', 'Its text and the digest that the service publishes do not fit together. Nothing can be handed in here. Tell the operator.',
      el('p', {}, 'Published: ', id(a.text_hash_sha256)), el('p', {}, 'Computed here: ', id(computed))));
    return { read: () => null, withdraw: () => {} };
  }
  const user = el('input', { id: 'consent-user', name: 'consenting_user_id', autocomplete: 'username', maxlength: '255', required: true, 'data-path': '/consent/consenting_user_id' });
  const email = el('input', { id: 'consent-email', name: 'consenting_user_email', type: 'email', autocomplete: 'email', maxlength: '254', required: true, 'data-path': '/consent/consenting_user_email' });
  const box = el('input', { id: 'consent-accepted', name: 'accepted', type: 'checkbox', required: true, 'data-path': '/consent/accepted' });
  let acceptedAt = '';
  const untick = () => {
    box.checked = false;
    acceptedAt = '';
  };
  box.addEventListener('change', () => {
    acceptedAt = box.checked ? new Date().toISOString() : '';
    setError(box, '');
  });
  // A consent is of the person who is named: another name, another consent.
  for (const input of [user, email]) {
    input.addEventListener('input', () => {
      setError(input, '');
      if (box.checked) untick();
    });
  }
  const error = (control) => el('span', { id: `${control.id}-error`, class: 'error' });
  fill(place,
    el('pre', { class: 'text agreement', tabindex: '0', role: 'region', 'aria-label': 'Text of the agreement' }, a.text),
    el('div', { class: 'stack tight small' },
      el('p', { class: 'row' }, badge('Text and digest fit together', 'good'), el('span', { class: 'muted' }, `Agreement ${a.beta_agreement_version}, AI-readable use ${a.ai_readable_use_consent_version}`)),
      el('p', { class: 'muted' }, 'SHA-256, computed in this browser and the same as published: ', el('span', { id: 'agreement-digest' }, id(computed)))),
    el('div', { class: 'row top' },
      el('div', { class: 'field' }, el('label', { for: user.id }, 'Your user id'), user, el('span', { class: 'hint' }, 'By which your organization knows you'), error(user)),
      el('div', { class: 'field' }, el('label', { for: email.id }, 'Your e-mail address'), email, el('span', { class: 'hint' }, 'Kept with the consent, shown to no AI reader'), error(email))),
    el('div', { class: 'stack tight' }, el('label', { class: 'check', for: box.id }, box, el('span', {}, `I have read the agreement and consent to it, for ${purpose}.`)), error(box)));

  function read() {
    const wrong = [
      [user, user.value.trim() ? '' : 'Give your user id.'],
      [email, /^[^\s@]+@[^\s@]+$/.test(email.value.trim()) ? '' : 'Give one e-mail address, such as ada@example.org.'],
      [box, box.checked ? '' : 'Without consent nothing can be handed in: read the agreement and tick the box.'],
    ];
    for (const [control, text] of wrong) setError(control, text);
    const first = wrong.find(([, text]) => text);
    if (first) {
      first[0].focus();
      return null;
    }
    return {
      accepted: true, beta_agreement_version: a.beta_agreement_version, ai_readable_use_consent_version: a.ai_readable_use_consent_version,
      text_hash_sha256: computed, consenting_user_id: user.value.trim(), consenting_user_email: email.value.trim(), accepted_at: acceptedAt,
    };
  }
  return { read, withdraw: untick };
}
