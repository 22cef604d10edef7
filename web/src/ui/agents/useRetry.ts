import { useEffect } from "react";

const EVERY_MS = 5_000;

/** Asks again and again while the server does not answer: that it is back is known by asking alone. */
export function useRetry(isFailing: boolean, again: () => void): void {
  useEffect(() => {
    if (!isFailing) return undefined;
    const timer = setInterval(again, EVERY_MS);
    return () => clearInterval(timer);
  }, [isFailing, again]);
}
