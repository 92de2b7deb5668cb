import { randomBytes } from "@noble/hashes/utils";
import { AccessionError, NetworkError } from "./error.js";
import type { paths } from "./openapi.js";
import { retrying, type RetryOptions } from "./retry.js";

/**
 * What an organization's credential is used as: sent itself as x-api-key, or exchanged for access tokens of ten minutes (OAuth 2.0
 * client credentials). Keep either on the server side.
 */
export type Credential = { apiKey: string } | { clientId: string; clientSecret: string; scope?: string };

export interface ConnectionOptions {
  /** For example https://custody.example. */
  baseURL: string;
  credential: Credential;
  retry?: RetryOptions;
  /** How long one attempt may take: 2 minutes, and 10 for a part. */
  timeoutMs?: number;
  partTimeoutMs?: number;
  /** Instead of the global fetch. */
  fetch?: typeof fetch;
}

type Method = "get" | "post" | "put";
type PathOf<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];
type Answers<P extends keyof paths, M extends Method> = paths[P] extends Record<M, { responses: infer R }> ? R[keyof R] : never;
type DataOf<A> = A extends { content: { "application/json": { data: infer D } } } ? D : never;

/** The data of an operation's successful answer. */
export type Data<P extends keyof paths, M extends Method> = DataOf<Answers<P, M>>;

/** What a successful answer carries beside its data. */
export interface Meta {
  requestId: string;
  traceId: string;
  status: number;
  etag: string;
  /** The service repeated its answer to an earlier request with the same Idempotency-Key. */
  replayed: boolean;
}

export interface Call {
  path?: Record<string, string | number>;
  query?: Record<string, string | number | undefined>;
  headers?: Record<string, string>;
  json?: unknown;
  bytes?: Uint8Array;
  idempotencyKey?: string;
  signal?: AbortSignal | undefined;
}

/** One service, one credential: requests, retries and tokens. */
export class Connection {
  readonly #base: string;
  readonly #host: string;
  readonly #credential: Credential; // private names are not printed
  readonly #options: ConnectionOptions;
  readonly #fetch: typeof fetch;
  #token: { value: string; refreshAt: number } | undefined;
  #fetching: Promise<string> | undefined;

  constructor(options: ConnectionOptions) {
    const url = new URL(options.baseURL);
    if (!/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
      throw new TypeError("baseURL is no address like https://custody.example: leave scheme, host and path only");
    }
    const secret = "apiKey" in options.credential ? options.credential.apiKey : options.credential.clientSecret;
    if (!/^[!-~]+$/.test(secret)) throw new TypeError("the credential is empty, or holds spaces or line ends: copy it again, nothing around it");
    this.#base = options.baseURL.replace(/\/+$/, "");
    this.#host = url.host;
    this.#credential = { ...options.credential };
    this.#options = options;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  get retry(): RetryOptions {
    return this.#options.retry ?? {};
  }

  /** Asks until there is an answer; undefined for 304. The Idempotency-Key of a mutation is the same in every attempt. */
  async ask<M extends Method, P extends PathOf<M>>(method: M, path: P, call: Call): Promise<{ data: Data<P, M>; meta: Meta } | undefined> {
    const idempotencyKey = method === "get" ? undefined : (call.idempotencyKey ?? newIdempotencyKey());
    return retrying(() => this.#attempt(method, path, { ...call, ...(idempotencyKey && { idempotencyKey }) }), this.retry, call.signal);
  }

  async #attempt<T>(method: Method, path: string, call: Call): Promise<{ data: T; meta: Meta } | undefined> {
    let token = await this.#authorization(call.signal);
    let answer = await this.#send(method, path, call, token);
    if (answer.status === 401 && "clientId" in this.#credential && (answer.body as { code?: string })?.code !== "credential_not_bound") {
      // The token was ended early. One more of the same credential, never another credential.
      if (this.#token && token["authorization"] === `Bearer ${this.#token.value}`) this.#token = undefined;
      token = await this.#authorization(call.signal);
      answer = await this.#send(method, path, call, token);
    }
    if (answer.status === 304) return undefined;
    if (answer.status < 200 || answer.status > 299) throw new AccessionError(answer, answer.body);
    const envelope = answer.body as { request_id?: string; trace_id?: string; data?: T } | undefined;
    if (envelope?.data === undefined) throw new Error(`the answer of ${this.#host} is not this service's: check baseURL`);
    const meta = {
      requestId: envelope.request_id ?? "",
      traceId: envelope.trace_id ?? "",
      status: answer.status,
      etag: answer.headers.get("etag") ?? "",
      replayed: answer.headers.get("idempotent-replayed") === "true",
    };
    return { data: envelope.data, meta };
  }

  async #send(method: Method, path: string, call: Call, headers: Record<string, string>) {
    const address = new URL(this.#base + path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, call.path?.[name])));
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined && value !== "") address.searchParams.set(name, String(value));
    }
    const init: RequestInit = { method: method.toUpperCase(), headers: { accept: "application/json", ...call.headers, ...headers } };
    const set = init.headers as Record<string, string>;
    if (call.idempotencyKey) set["idempotency-key"] = call.idempotencyKey;
    if (call.bytes) {
      set["content-type"] = "application/octet-stream";
      init.body = call.bytes as Uint8Array<ArrayBuffer>;
    } else if (call.json !== undefined) {
      set["content-type"] = "application/json";
      init.body = JSON.stringify(call.json);
    }
    return this.#exchange(address, init, call.signal, call.bytes ? (this.#options.partTimeoutMs ?? 600_000) : (this.#options.timeoutMs ?? 120_000));
  }

  async #exchange(address: URL, init: RequestInit, signal: AbortSignal | undefined, timeoutMs: number) {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      // Redirects are not followed: the credential stays with the host it was meant for.
      const answer = await this.#fetch(address, { ...init, redirect: "manual", signal: signal ? AbortSignal.any([signal, timeout]) : timeout });
      const text = await answer.text();
      let body: unknown;
      try {
        body = JSON.parse(text);
      } catch {
        body = undefined; // not the service's; AccessionError says so by its empty code
      }
      return { status: answer.status, headers: answer.headers, body };
    } catch (error) {
      signal?.throwIfAborted();
      throw new NetworkError(this.#host, error);
    }
  }

  async #authorization(signal: AbortSignal | undefined): Promise<Record<string, string>> {
    if ("apiKey" in this.#credential) return { "x-api-key": this.#credential.apiKey };
    if (this.#token && Date.now() < this.#token.refreshAt) return { authorization: `Bearer ${this.#token.value}` };
    // Requests at the same time share one exchange, which none of their signals ends.
    this.#fetching ??= this.#exchangeToken(this.#credential).finally(() => (this.#fetching = undefined));
    return { authorization: `Bearer ${await until(this.#fetching, signal)}` };
  }

  async #exchangeToken(credential: { clientId: string; clientSecret: string; scope?: string }): Promise<string> {
    const form = new URLSearchParams({ grant_type: "client_credentials", client_id: credential.clientId, client_secret: credential.clientSecret });
    if (credential.scope) form.set("scope", credential.scope);
    const asked = Date.now();
    const init = { method: "POST", headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" }, body: form.toString() };
    const answer = await this.#exchange(new URL(this.#base + "/oauth/token"), init, undefined, this.#options.timeoutMs ?? 120_000);
    const { access_token: value, expires_in: seconds } = (answer.body ?? {}) as { access_token?: string; expires_in?: number };
    if (answer.status !== 200 || !value) throw new AccessionError(answer, answer.body);
    // A minute early, so that no request is under way with a token that ends.
    const lifeMs = (seconds ?? 0) * 1000;
    this.#token = { value, refreshAt: asked + lifeMs - Math.min(60_000, lifeMs / 5) };
    return value;
  }
}

/** A random Idempotency-Key of 26 characters. Send the same key when you repeat the same mutation. */
export function newIdempotencyKey(): string {
  return Array.from(randomBytes(26), (byte) => "abcdefghijklmnopqrstuvwxyz234567"[byte & 31]).join("");
}

function segment(name: string, value: string | number | undefined): string {
  const text = String(value ?? "");
  if (text === "" || text === "." || text === "..") throw new TypeError(`${name} "${text}" cannot be used: give the id the service knows`);
  return encodeURIComponent(text);
}

function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
