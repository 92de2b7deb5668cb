// What fails for a passing reason is asked again, with delays that double, never sooner than the service says.
const passing = [408, 429, 500, 502, 503, 504, 507];

/** Whether the same request with the same Idempotency-Key may succeed later. */
export function isPassing(error) {
  if (error?.name !== 'ApiError') return false;
  if (error.code === 'deletion_not_confirmed') return false; // an answer of its own
  return error.code === 'network' || error.code === 'idempotency_in_progress' || passing.includes(error.status);
}

/**
 * Runs attempt until it succeeds, fails for good, signal aborts, or it failed attempts times in a row. notify(error, ms) is told
 * of each wait; notify() of its end.
 */
export async function retrying(attempt, { attempts = 10, signal, notify } = {}) {
  for (let failed = 1; ; failed++) {
    try {
      return await attempt();
    } catch (error) {
      const asked = (error.retryAfter ?? 0) * 1000;
      if (signal?.aborted || failed >= attempts || !isPassing(error) || asked > 120_000) throw error;
      const whole = Math.min(500 * 2 ** (failed - 1), 30_000);
      const wait = Math.max(asked, whole / 2 + (Math.random() * whole) / 2);
      notify?.(error, wait);
      await pause(wait, signal);
      notify?.();
    }
  }
}

/** Waits, or throws what signal was aborted with. */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
