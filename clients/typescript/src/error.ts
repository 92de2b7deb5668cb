import type { components } from "./openapi.js";

/** The codes of the service, as its document lists them. A newer service may send others. */
export type ErrorCode = components["schemas"]["Problem"]["code"] | (string & {});

/** What the service said about one field; path is a JSON Pointer. */
export interface FieldError {
  path: string;
  reason: string;
}

/**
 * A refusal by the service (contract 2.2). code is stable, message is for people; neither ever holds the credential or what was sent.
 * code is empty where the answer did not come from the service itself: a proxy's 502, a redirect.
 */
export class AccessionError extends Error {
  override readonly name = "AccessionError";
  readonly status: number;
  readonly code: ErrorCode;
  readonly requestId: string;
  readonly traceId: string;
  /** Free-form: "fields" for a 400, the figures for quota_exceeded. */
  readonly details: Record<string, unknown>;
  /** How long the service asks to wait; undefined where it did not say. */
  readonly retryAfterMs: number | undefined;

  constructor(answer: { status: number; headers: Headers }, body: unknown) {
    const problem = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
    const text = (name: string) => (typeof problem[name] === "string" ? (problem[name] as string) : "");
    // The token endpoint answers in the words of RFC 6749.
    const code = text("code") || text("error");
    const about = [code, `HTTP ${answer.status}`, text("request_id")].filter(Boolean).join(", ");
    super(`${text("message") || text("error_description") || "the service refused the request"} (${about})`);
    this.status = answer.status;
    this.code = code;
    this.requestId = text("request_id") || (answer.headers.get("x-request-id") ?? "");
    this.traceId = text("trace_id");
    this.details = typeof problem["details"] === "object" && problem["details"] !== null ? (problem["details"] as Record<string, unknown>) : {};
    this.retryAfterMs = retryAfter(answer.headers.get("retry-after"));
  }

  /** What the service said about single fields; empty where it said nothing. */
  get fields(): FieldError[] {
    return Array.isArray(this.details["fields"]) ? (this.details["fields"] as FieldError[]) : [];
  }
}

/** No whole answer came: the request may or may not have been carried out. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";

  constructor(host: string, cause: unknown) {
    const why = cause instanceof Error ? (cause.cause instanceof Error ? cause.cause.message : cause.message) : String(cause);
    super(`no answer from ${host}: ${why}`, { cause });
  }
}

/** The source is not the one whose upload began: nothing of it was sent. */
export class SourceChangedError extends Error {
  override readonly name = "SourceChangedError";
}

/** Retry-After in either of its forms, in milliseconds. */
function retryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds > 0 ? Math.min(seconds, 86_400) * 1000 : undefined;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}
