import { AccessionError, NetworkError } from "./error.js";

/** How passing failures are repeated. */
export interface RetryOptions {
  /** In all, the first included; 8 by default, 1 means no retry. */
  attempts?: number;
  /** First delay and the longest one, before they are spread at random; 500 ms and 30 s by default. */
  firstMs?: number;
  longestMs?: number;
  /** The longest Retry-After to sit out; a longer one ends the work with the service's error. 2 minutes by default. */
  patienceMs?: number;
  /** Told of each failure before the wait. */
  notify?: (error: unknown, waitMs: number) => void;
}

/**
 * Whether the same request with the same Idempotency-Key may succeed later: a dropped connection, 408, 429, most 5xx, and 409
 * idempotency_in_progress. Every other refusal is final.
 */
export function retryable(error: unknown): boolean {
  if (error instanceof NetworkError) return true;
  if (!(error instanceof AccessionError)) return false;
  if (error.status === 409) return error.code === "idempotency_in_progress";
  return [408, 429].includes(error.status) || (error.status >= 500 && ![501, 505].includes(error.status));
}

/** Runs attempt until it succeeds, fails for good, the attempts are used up or signal aborts. */
export async function retrying<T>(attempt: () => Promise<T>, options: RetryOptions = {}, signal?: AbortSignal): Promise<T> {
  const { attempts = 8, firstMs = 500, longestMs = 30_000, patienceMs = 120_000 } = options;
  for (let failed = 1; ; failed++) {
    signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      const asked = error instanceof AccessionError ? (error.retryAfterMs ?? 0) : 0;
      if (failed >= attempts || !retryable(error) || asked > patienceMs) throw error;
      const whole = Math.min(firstMs * 2 ** (failed - 1), longestMs);
      const wait = Math.max(asked, whole / 2 + (Math.random() * whole) / 2);
      options.notify?.(error, wait);
      await pause(wait, signal);
    }
  }
}

/** Waits, or throws the signal's reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
