// Signing in, the seats that are held, and where to go with them.
import { session, signOut } from './api.js';
import { $, el, fill, facts, id, time, badge, busy, errorNotice, notice } from './dom.js';
import { roleName } from './shell.js';
import { signInForm } from './signin.js';

const doors = {
  solution_company_upload: [['/portal/company', 'Send files'], ['/portal/customer', 'Hand in a text']],
  ai_reader: [['/portal/reader', 'Read a context']],
  admin: [['/portal/operator', 'Run the service']],
};

// Only the portal's own pages: an address from elsewhere must not decide where one lands.
const asked = new URLSearchParams(location.search).get('next');
const next = ['/portal/customer', '/portal/company', '/portal/reader', '/portal/operator'].find((page) => page === asked);

const said = $('#said');
const place = $('#sign-in');

function seatCard(seat) {
  return el('article', { class: 'card' },
    el('div', { class: 'row apart' }, el('h3', {}, roleName(seat.role)), badge('Signed in', 'good')),
    facts(
      ['Organization', seat.org_id ? id(seat.org_id) : 'All of this installation'],
      ['Credential', id(seat.credential_id)],
      ['Scopes', seat.scopes?.length ? id(seat.scopes.join(' ')) : null],
    ),
    el('div', { class: 'row' }, (doors[seat.role] ?? []).map(([path, name], i) => el('a', { class: i ? 'button' : 'button primary', href: path }, name))));
}

function show(held) {
  const seats = $('#seats');
  seats.hidden = !held;
  if (held) {
    const out = el('button', { type: 'button' }, 'Sign out of all of them');
    out.addEventListener('click', () => busy(out, async () => {
      try {
        await signOut();
        show(null);
        fill(said, notice('good', 'You are signed out.', 'The session was deleted on the server.'));
        $('input', place).focus();
      } catch (error) {
        fill(said, errorNotice(error));
      }
    }));
    fill(seats, el('h2', { id: 'seats-title', tabindex: '-1' }, 'You are signed in'), held.seats.map(seatCard),
      el('p', { class: 'muted small' }, 'The session ends ', time(held.expires_at), ', or when you sign out. A seat ends at once when its credential is revoked.'), el('div', {}, out));
  }
  fill(place, signInForm({ done: signedIn, title: held ? 'Add or change a seat' : 'Sign in' }));
}

function signedIn(held) {
  if (next) {
    location.assign(next);
    return;
  }
  fill(said);
  show(held);
  $('#seats-title').focus();
}

document.addEventListener('accession-session', (event) => event.detail || show(null));

session().then(show, (error) => {
  show(null);
  fill(said, errorNotice(error));
});
