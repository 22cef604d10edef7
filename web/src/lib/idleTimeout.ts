/** Ends what waits for a server that takes a request and says nothing, as networks do that want a sign-in first. */

/** As long as this a server that is there does not keep silent. */
export const IDLE_TIMEOUT_MS = 30_000;
/** A stream has a comment every 15 s. */
export const STREAM_IDLE_TIMEOUT_MS = 40_000;

/**
 * The outcome of `work`, which calls `heard` at every sign of life: what is slow may last, and what is silent for `ms`,
 * or for the time that `heard` was given, rejects. Its signal ends with `signal`, too.
 */
export async function withIdleTimeout<T>(
  ms: number,
  signal: AbortSignal | null | undefined,
  work: (signal: AbortSignal, heard: (ms?: number) => void) => Promise<T>,
): Promise<T> {
  const idle = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = (next = ms) => {
    clearTimeout(timer);
    timer = setTimeout(() => idle.abort(new DOMException("", "TimeoutError")), next);
  };
  heard();
  try {
    return await work(signal ? AbortSignal.any([signal, idle.signal]) : idle.signal, heard);
  } finally {
    clearTimeout(timer);
  }
}
