import { useEffect, useState } from "react";

const HALF_MINUTE = 30_000;

/** The time, anew every half minute: ages are drawn from it. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), HALF_MINUTE);
    return () => clearInterval(timer);
  }, []);
  return now;
}
