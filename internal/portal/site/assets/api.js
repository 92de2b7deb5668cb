// The service as a page calls it: same origin, the session's cookie, and the seat that the call is made from.
// A credential passes through signIn and is kept nowhere.

/** What went wrong, as the service said it. code is "network" where no answer came. */
export class ApiError extends Error {
  constructor({ status = 0, code, message, requestId = '', details = {}, retryAfter = 0 }) {
    super(message);
    this.name = 'ApiError';
    Object.assign(this, { status, code, requestId, details, retryAfter });
  }

  /** [{path, reason}] of the fields that were refused. */
  get fields() {
    return Array.isArray(this.details?.fields) ? this.details.fields : [];
  }
}

/** A fresh Idempotency-Key: keep it for repeats of the same request. Works on plain http too, where crypto.randomUUID does not. */
export function freshKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
}

/**
 * Calls one operation. Answers {status, headers, data, body}; data is the envelope's. 304 is an answer, not an error.
 * seat: the role whose credential asks. json: the body. idempotent: true for a fresh key, or the key.
 */
export async function call(method, path, { seat, json, body, headers = {}, signal, idempotent } = {}) {
  const sent = new Headers(headers);
  if (seat) sent.set('X-Accession-Seat', seat);
  if (json !== undefined) {
    body = JSON.stringify(json);
    sent.set('Content-Type', 'application/json');
  }
  if (idempotent) sent.set('Idempotency-Key', idempotent === true ? freshKey() : idempotent);
  let answer;
  let text;
  try {
    answer = await fetch(path, { method, headers: sent, body, signal, credentials: 'same-origin', cache: 'no-store', redirect: 'error' });
    text = await answer.text();
  } catch (cause) {
    if (cause.name === 'AbortError') throw cause;
    throw new ApiError({ code: 'network', message: 'The service did not answer. Look at your connection and try again.' });
  }
  let parsed = null;
  try {
    if (text) parsed = JSON.parse(text);
  } catch { /* not the service's own answer: said below */ }
  if (answer.ok || answer.status === 304) {
    return { status: answer.status, headers: answer.headers, data: parsed?.data, body: parsed ?? text };
  }
  throw new ApiError({
    status: answer.status,
    code: parsed?.code ?? 'unexpected_answer',
    message: parsed?.message ?? `Something between this page and the service answered with status ${answer.status}.`,
    requestId: parsed?.request_id ?? answer.headers.get('X-Request-Id') ?? '',
    details: parsed?.details,
    retryAfter: Number(answer.headers.get('Retry-After')) || 0,
  });
}

let asked; // the session is asked for once a page

/** The session {seats, expires_at}, or null where nobody is signed in. */
export function session() {
  asked ??= call('GET', '/portal/session').then(
    ({ data }) => (data?.seats?.length ? data : null),
    (error) => {
      if (error.status === 401) return null;
      asked = undefined;
      throw error;
    },
  );
  return asked;
}

/** Exchanges a credential for a seat; the seats held before stay. Answers the session. */
export async function signIn(credential) {
  const { data } = await call('POST', '/portal/session', { json: { credential } });
  asked = Promise.resolve(data);
  document.dispatchEvent(new CustomEvent('accession-session', { detail: data }));
  return data;
}

/** Ends the session, with every seat of it. */
export async function signOut() {
  await call('DELETE', '/portal/session');
  asked = Promise.resolve(null);
  document.dispatchEvent(new CustomEvent('accession-session', { detail: null }));
}

/** The session's seat of a role ("solution_company_upload", "ai_reader", "admin"), or undefined. */
export function seatFor(session, role) {
  return session?.seats?.find((seat) => seat.role === role);
}
