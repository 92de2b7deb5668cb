import type { Client } from "./client.js";
import type { Completed, DeclaredPart, Initiated, Reservation, UploadStatus } from "./wire.js";
import { SourceChangedError } from "./error.js";
import { newDigest } from "#sha256";
import type { Source } from "./source.js";

/** How far an upload is: bytes of total are verified again (resume), accepted by the service, or all of them while it completes. */
export interface Progress {
  phase: "verify" | "send" | "complete";
  bytes: number;
  total: number;
}

export interface UploadOptions {
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /** Every change of the status while the gates run. */
  onStatus?: (status: UploadStatus) => void;
}

export interface NewUploadOptions extends UploadOptions {
  /** Awaited before the first part is sent. Note upload_id here: it and the source are all that Client.resume needs. */
  onReserved?: (reservation: Initiated) => void | Promise<void>;
  /** Of the reservation. Note one beforehand, and a reservation whose answer was lost is found again by uploading with it once more. */
  idempotencyKey?: string;
}

/** What is still to be sent of an upload. */
interface Rest {
  uploadId: string;
  partSize: number;
  next: number;
}

/** Reserves, sends, completes and follows. */
export async function uploadSource(client: Client, source: Source, request: Omit<Reservation, "size_bytes">, options: NewUploadOptions): Promise<UploadStatus> {
  const { idempotencyKey, signal } = options;
  const reserved = await client.initiateUpload({ ...request, size_bytes: source.size }, { ...(idempotencyKey && { idempotencyKey }), signal });
  await options.onReserved?.(reserved);
  // A repeated reservation may be one that parts were already sent to.
  return resumeSource(client, reserved.upload_id, source, options);
}

/** Sends what the service does not have yet, completes and follows. */
export async function resumeSource(client: Client, uploadId: string, source: Source, options: UploadOptions): Promise<UploadStatus> {
  const status = await client.status(uploadId, { signal: options.signal });
  if (status.size_bytes !== source.size) {
    throw new SourceChangedError(`upload ${uploadId} is of ${status.size_bytes} bytes, the source has ${source.size}: give the source that its upload began with`);
  }
  if (status.status === "INITIATED" || status.status === "RECEIVING") {
    await send(client, { uploadId, partSize: status.part_size_bytes, next: status.next_part_number }, source, options);
  }
  return client.follow(uploadId, options);
}

async function send(client: Client, rest: Rest, source: Source, { signal, onProgress }: UploadOptions): Promise<Completed> {
  const { uploadId, partSize } = rest;
  const total = source.size;
  const whole = newDigest();
  const parts: DeclaredPart[] = [];
  for (let number = 1; (number - 1) * partSize < total; number++) {
    const start = (number - 1) * partSize;
    const end = Math.min(start + partSize, total);
    signal?.throwIfAborted();
    const bytes = await source.read(start, end);
    if (bytes.byteLength !== end - start) throw new SourceChangedError(`the source ended at byte ${start + bytes.byteLength} of ${total}`);
    const part = newDigest();
    part.update(bytes);
    whole.update(bytes);
    const sha256 = part.hex();
    if (number >= rest.next) {
      // The keys are the upload's, so that another process that resumes repeats them.
      await client.putPart(uploadId, number, bytes, { sha256, idempotencyKey: `${uploadId}-part-${number}`, signal });
    }
    parts.push({ part_number: number, sha256, size_bytes: bytes.byteLength });
    onProgress?.({ phase: number >= rest.next ? "send" : "verify", bytes: end, total });
  }
  onProgress?.({ phase: "complete", bytes: total, total });
  return client.completeUpload(uploadId, parts, whole.hex(), { idempotencyKey: `${uploadId}-complete`, signal });
}
