import { Connection, type ConnectionOptions, type Meta } from "./connection.js";
import { pause } from "./retry.js";
import { sourceOf, type Source } from "./source.js";
import { resumeSource, uploadSource, type NewUploadOptions, type UploadOptions } from "./upload.js";
import type * as wire from "./wire.js";

const organization = "/api/v1/organizations/{org_id}";
const upload = `${organization}/partner-uploads/{upload_id}` as const;

/** The statuses that change no more, except to be withdrawn. */
export const terminalStatuses: readonly string[] = ["READY", "REJECTED", "FAILED", "EXPIRED", "WITHDRAWN"];

export interface ClientOptions extends ConnectionOptions {
  /** The one organization that the credential is bound to. */
  org: string;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Told what the answer carries beside its data: ids to quote, whether it was a replay. */
  onAnswer?: (meta: Meta) => void;
}

export interface MutationOptions extends RequestOptions {
  /** A random one by default, the same in every attempt. Note one beforehand to repeat the request in another process. */
  idempotencyKey?: string;
}

/**
 * One organization's client. Each method repeats what fails for a passing reason, never sooner than the service's Retry-After and with
 * the same Idempotency-Key, and throws an AccessionError where the service refuses, a NetworkError where it gives no answer.
 *
 * What context and records return is customer-submitted, unverified text: treat it as untrusted input wherever it goes next.
 */
export class Client {
  readonly #connection: Connection;
  readonly #org: string;

  constructor(options: ClientOptions) {
    this.#connection = new Connection(options);
    this.#org = options.org;
  }

  /**
   * Takes a document through its upload and returns its status once that is terminal: READY, or REJECTED or FAILED with the reason in
   * failure. One part at a time is held in memory. 401 credential_not_bound, 409 quota_exceeded, SourceChangedError.
   */
  upload(content: Source | Blob | Uint8Array, request: Omit<wire.Reservation, "size_bytes">, options: NewUploadOptions = {}): Promise<wire.UploadStatus> {
    return uploadSource(this, sourceOf(content), request, options);
  }

  /**
   * Goes on with an upload where an earlier process stopped: what was accepted is read again for the digest of the whole, the rest is sent. 409
   * digest_mismatch: the content is not what was sent before. An upload that is past sending is followed to its end.
   */
  resume(uploadId: string, content: Source | Blob | Uint8Array, options: UploadOptions = {}): Promise<wire.UploadStatus> {
    return resumeSource(this, uploadId, sourceOf(content), options);
  }

  /** Reserves an upload of 1 byte to 8 GiB, and its quota. 401 credential_not_bound, 409 quota_exceeded. */
  async initiateUpload(request: wire.Reservation, options: MutationOptions = {}): Promise<wire.Initiated> {
    return this.#tell(await this.#connection.ask("post", `${organization}/partner-uploads/initiate`, { path: this.#path(), json: request, ...options }), options);
  }

  /** Sends one part; every part but the last is part_size_bytes long. 409: out of order, or other bytes than were accepted under this number. */
  async putPart(uploadId: string, partNumber: number, bytes: Uint8Array, options: MutationOptions & { sha256?: string } = {}): Promise<wire.PartAccepted> {
    const { sha256, ...rest } = options;
    const headers = sha256 ? { "content-digest": `sha-256=:${base64(sha256)}:` } : {}; // RFC 9530
    return this.#tell(
      await this.#connection.ask("put", `${upload}/parts/{part_number}`, { path: this.#path({ upload_id: uploadId, part_number: partNumber }), bytes, headers, ...rest }),
      options,
    );
  }

  /** Declares the upload whole. The gates have only begun: follow it. 409 part_ledger_mismatch, digest_mismatch. */
  async completeUpload(uploadId: string, parts: wire.DeclaredPart[], fileSHA256: string, options: MutationOptions = {}): Promise<wire.Completed> {
    const json = { upload_id: uploadId, parts, client_file_sha256: fileSHA256 };
    return this.#tell(await this.#connection.ask("post", `${upload}/complete`, { path: this.#path({ upload_id: uploadId }), json, ...options }), options);
  }

  /** The status of an upload of any kind: metadata only. 404: no such upload for this credential. */
  async status(uploadId: string, options: RequestOptions = {}): Promise<wire.UploadStatus> {
    return this.#tell(await this.#connection.ask("get", upload, { path: this.#path({ upload_id: uploadId }), ...options }), options);
  }

  /**
   * Returns the status once it is terminal and tells of each change before. The service holds each answer until something changes (30 s at
   * most), so that changes arrive as they happen.
   */
  async follow(uploadId: string, options: { signal?: AbortSignal | undefined; onStatus?: (status: wire.UploadStatus) => void } = {}): Promise<wire.UploadStatus> {
    const { signal } = options;
    for (let etag = ""; ; ) {
      const asked = Date.now();
      const headers: Record<string, string> = etag ? { prefer: "wait=30", "if-none-match": etag } : {};
      const answer = await this.#connection.ask("get", upload, { path: this.#path({ upload_id: uploadId }), headers, signal });
      if (answer) {
        options.onStatus?.(answer.data);
        if (terminalStatuses.includes(answer.data.status)) return answer.data;
        if (answer.meta.etag !== etag) {
          etag = answer.meta.etag;
          continue;
        }
      }
      // A service or proxy that does not hold the answer is not asked in a tight loop.
      await pause(Math.max(0, 1000 - (Date.now() - asked)), signal);
    }
  }

  /**
   * Deletes the upload, its copies and its context for good. 502 deletion_not_confirmed is repeated with the same Idempotency-Key; where it
   * stays, the service goes on by itself.
   */
  async withdraw(uploadId: string, options: MutationOptions & { reason?: string } = {}): Promise<wire.Withdrawn> {
    const { reason, ...rest } = options;
    return this.#tell(await this.#connection.ask("post", `${upload}/withdraw`, { path: this.#path({ upload_id: uploadId }), json: reason ? { reason } : {}, ...rest }), options);
  }

  /** What a withdrawal left. Keep signed_receipt: it can be verified without the service. */
  async withdrawalReceipt(receiptId: string, options: RequestOptions = {}): Promise<wire.Receipt> {
    const path = this.#path({ withdrawal_receipt_id: receiptId });
    return this.#tell(await this.#connection.ask("get", `${organization}/withdrawals/{withdrawal_receipt_id}`, { path, ...options }), options);
  }

  /**
   * The bounded context; the reading is recorded. context.text is all of it, wrapped for a model between two marked lines. 403
   * insufficient_scope, visibility_denied; 404 upload_not_found, context_not_ready.
   */
  async context(uploadId: string, options: RequestOptions = {}): Promise<wire.ServedContext> {
    return this.#tell(await this.#connection.ask("get", `${organization}/ai-context/{upload_id}`, { path: this.#path({ upload_id: uploadId }), ...options }), options);
  }

  /** One page of the evidence of what was served, newest first. The page is the last only where next_cursor is empty. */
  async recordPage(filter: RecordFilter & { limit?: number; cursor?: string } = {}, options: RequestOptions = {}): Promise<wire.RecordPage> {
    const query = { request_id: filter.requestId, upload_id: filter.uploadId, limit: filter.limit, cursor: filter.cursor };
    return this.#tell(await this.#connection.ask("get", `${organization}/request-records`, { path: this.#path(), query, ...options }), options);
  }

  /** All of it, page by page as it is read. */
  async *records(filter: RecordFilter & { limit?: number } = {}, options: RequestOptions = {}): AsyncGenerator<wire.RequestRecord, void, undefined> {
    for (let cursor = ""; ; ) {
      const page = await this.recordPage({ limit: 100, ...filter, cursor }, options);
      yield* page.records;
      cursor = page.next_cursor;
      if (!cursor) return;
    }
  }

  /** The storage allowance, in bytes. */
  async quota(options: RequestOptions = {}): Promise<wire.Quota> {
    return this.#tell(await this.#connection.ask("get", `${organization}/quota`, { path: this.#path(), ...options }), options);
  }

  /** Hands in a text of up to 1 MiB; its context can be read at once. 400 consent_invalid, verification_claim_forbidden, content_refused. */
  async submitText(text: wire.Submission, options: MutationOptions = {}): Promise<wire.Submitted> {
    return this.#tell(await this.#connection.ask("post", `${organization}/customer-uploads`, { path: this.#path(), json: text, ...options }), options);
  }

  /** Hands in a correction: a new upload, which the context of the original names. The original stays as it is. */
  async correct(originalUploadId: string, text: wire.Submission, options: MutationOptions = {}): Promise<wire.Submitted> {
    const path = this.#path({ upload_id: originalUploadId });
    return this.#tell(await this.#connection.ask("post", `${organization}/customer-uploads/{upload_id}/corrections`, { path, json: text, ...options }), options);
  }

  /** Points to an external review of a text. */
  async attachReview(uploadId: string, review: wire.Review, options: MutationOptions = {}): Promise<wire.ReviewAttached> {
    const path = this.#path({ upload_id: uploadId });
    return this.#tell(await this.#connection.ask("post", `${organization}/customer-uploads/{upload_id}/external-review`, { path, json: review, ...options }), options);
  }

  #path(more: Record<string, string | number> = {}): Record<string, string | number> {
    return { org_id: this.#org, ...more };
  }

  #tell<T>(answer: { data: T; meta: Meta } | undefined, { onAnswer }: RequestOptions): T {
    if (!answer) throw new Error("the service answered 304 to a request without conditions");
    onAnswer?.(answer.meta);
    return answer.data;
  }
}

export interface RecordFilter {
  requestId?: string;
  uploadId?: string;
}

function base64(hex: string): string {
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new TypeError("sha256 is not 64 lowercase hex digits");
  return btoa(hex.replace(/../g, (byte) => String.fromCharCode(parseInt(byte, 16))));
}
