// Client of accession: documents into custody, bounded context out. See README.md.
export { Client, terminalStatuses, type ClientOptions, type MutationOptions, type RecordFilter, type RequestOptions } from "./client.js";
export { newIdempotencyKey, type Credential, type Meta } from "./connection.js";
export { AccessionError, NetworkError, SourceChangedError, type ErrorCode, type FieldError } from "./error.js";
export { retryable, type RetryOptions } from "./retry.js";
export type { Source } from "./source.js";
export type { NewUploadOptions, Progress, UploadOptions } from "./upload.js";
export { SignatureError, verifyWebhook, type WebhookEvent } from "./webhook.js";
export type * from "./wire.js";
