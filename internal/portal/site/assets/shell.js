// Header of every page: which page this is, the theme, and the session on the portal's pages.
import { session, signOut, seatFor } from './api.js';
import { $, el, fill, errorNotice } from './dom.js';

const roleNames = { solution_company_upload: 'Uploads', ai_reader: 'AI reader', admin: 'Operator' };

/** What a role is called in the portal. */
export const roleName = (role) => roleNames[role] ?? role;

const tools = $('.site .tools');
const themes = { '': 'auto', light: 'light', dark: 'dark' };

function themeButton() {
  const button = el('button', { type: 'button', class: 'quiet small' });
  const show = () => fill(button, el('span', { 'aria-hidden': 'true' }, '◐'), el('span', { class: 'brief' }, `Theme: ${themes[document.documentElement.dataset.theme ?? '']}`));
  button.addEventListener('click', () => {
    const order = ['', 'light', 'dark'];
    const next = order[(order.indexOf(document.documentElement.dataset.theme ?? '') + 1) % order.length];
    if (next) document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
    try {
      if (next) localStorage.setItem('accession-theme', next);
      else localStorage.removeItem('accession-theme');
    } catch { /* storage is off: for this page only */ }
    show();
  });
  show();
  return button;
}

function sessionTools(held) {
  const place = $('#session-tools', tools) ?? tools.appendChild(el('span', { id: 'session-tools', class: 'row' }));
  if (!held) {
    fill(place, location.pathname === '/portal' ? null : el('a', { class: 'button small', href: `/portal?next=${encodeURIComponent(location.pathname)}` }, 'Sign in'));
    return;
  }
  const out = el('button', { type: 'button', class: 'small' }, 'Sign out');
  out.addEventListener('click', async () => {
    try {
      await signOut();
      location.assign('/portal');
    } catch (error) {
      $('main').prepend(errorNotice(error));
    }
  });
  fill(place, out);
}

function start() {
  if (!tools) return;
  tools.append(themeButton());
  for (const link of document.querySelectorAll('.site nav a')) {
    const path = new URL(link.href).pathname;
    if (path === location.pathname || (path !== '/' && location.pathname.startsWith(`${path}/`))) link.setAttribute('aria-current', 'page');
  }
  if (!location.pathname.startsWith('/portal')) return;
  // Going back after a sign-out must not show what was fetched before it.
  window.addEventListener('pageshow', (event) => event.persisted && location.reload());
  document.addEventListener('accession-session', (event) => sessionTools(event.detail));
  session().then(sessionTools, () => sessionTools(null));
}

start();

/**
 * The seat of a role, or a form in place that asks for it: fill(place) shows the form until the credential is given.
 * Answers the seat once it is held. why: a sentence that says what the credential is for.
 */
export async function needSeat(role, place, why) {
  const held = seatFor(await session(), role);
  if (held) return held;
  const { signInForm } = await import('./signin.js');
  return new Promise((resolve) => {
    fill(place, signInForm({
      role,
      why,
      done: (now) => {
        const seat = seatFor(now, role);
        fill(place);
        resolve(seat);
      },
    }));
  });
}
