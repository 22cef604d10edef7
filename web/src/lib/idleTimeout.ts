/**
 * Timeouts for requests that stop making progress, for instance behind a captive portal. A slow request may take any
 * time.
 */

/** Default idle timeout. Requests during which the server may be silent for longer pass a longer timeout. */
export const IDLE_TIMEOUT_MS = 30_000;
/** Idle timeout of event streams, in which the server sends a comment every 15 s. */
export const STREAM_IDLE_TIMEOUT_MS = 40_000;

/**
 * Run `work` with a signal that aborts after `timeoutMs` without progress, or when `signal` aborts. `work` calls
 * `resetTimer` at each sign of progress, optionally with another timeout for the next step.
 */
export async function withIdleTimeout<T>(
  timeoutMs: number,
  signal: AbortSignal | null | undefined,
  work: (signal: AbortSignal, resetTimer: (timeoutMs?: number) => void) => Promise<T>,
): Promise<T> {
  const idle = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const resetTimer = (nextMs = timeoutMs) => {
    clearTimeout(timer);
    timer = setTimeout(() => idle.abort(new DOMException("", "TimeoutError")), nextMs);
  };
  resetTimer();
  try {
    return await work(signal ? AbortSignal.any([signal, idle.signal]) : idle.signal, resetTimer);
  } finally {
    clearTimeout(timer);
  }
}
