import { useEffect } from "react";

const RETRY_MS = 5_000;

/** Call `retry` every 5 seconds while `isFailing` is true. */
export function useRetry(isFailing: boolean, retry: () => void): void {
  useEffect(() => {
    if (!isFailing) return undefined;
    const timer = setInterval(retry, RETRY_MS);
    return () => clearInterval(timer);
  }, [isFailing, retry]);
}
