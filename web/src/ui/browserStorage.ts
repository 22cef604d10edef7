/** What the browser keeps, and whether it has promised to. */

import { useEffect, useState } from "react";
import { useRows } from "../client/backendClient.tsx";

interface Storage {
  persistent: boolean;
  used: number;
  most: number;
}

async function lookAtStorage(): Promise<Storage | null> {
  if (!navigator.storage?.estimate) return null; // only for pages that came by HTTPS
  const [persistent, { usage = 0, quota = 0 }] = await Promise.all([
    navigator.storage.persisted(),
    navigator.storage.estimate(),
  ]);
  return { persistent, used: usage, most: quota };
}

/** Asks the browser not to clear what is here; what it said. */
export async function askToKeep(): Promise<boolean> {
  return (await navigator.storage?.persist?.()) ?? false;
}

/** From the first document on there is something to keep: asked once a visit. */
export function useKeptStorage(): void {
  const some = (useRows("documents", { limit: 1 })?.length ?? 0) > 0;
  useEffect(() => {
    if (some) void askToKeep();
  }, [some]);
}

export function useStorage(): [Storage | null, () => void] {
  const [storage, setStorage] = useState<Storage | null>(null);
  const look = () => void lookAtStorage().then(setStorage);
  useEffect(look, []);
  return [storage, look];
}
