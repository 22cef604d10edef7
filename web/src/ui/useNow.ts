import { useEffect, useState } from "react";

const UPDATE_MS = 30_000;

/** Return the current time in milliseconds, updated every 30 seconds. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), UPDATE_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}
