/** The storage that the browser grants to this app, and whether the browser keeps it when space runs low. */

import { useEffect, useState } from "react";
import { useRows } from "../client/backendClient.tsx";

interface StorageEstimate {
  persistent: boolean;
  used: number;
  limit: number;
}

async function estimateStorage(): Promise<StorageEstimate | null> {
  if (!navigator.storage?.estimate) return null; // the browser has no storage API, for example on a page without HTTPS
  const [persistent, { usage = 0, quota = 0 }] = await Promise.all([
    navigator.storage.persisted(),
    navigator.storage.estimate(),
  ]);
  return { persistent, used: usage, limit: quota };
}

/** Ask the browser not to delete the app's data. Return whether it agreed. */
export async function requestPersistence(): Promise<boolean> {
  return (await navigator.storage?.persist?.()) ?? false;
}

/** Request persistent storage once per visit, as soon as the device has a document. */
export function usePersistentStorage(): void {
  const hasDocuments = (useRows("documents", { limit: 1 })?.length ?? 0) > 0;
  useEffect(() => {
    if (hasDocuments) void requestPersistence();
  }, [hasDocuments]);
}

/** Return the storage estimate and a function that refreshes it. */
export function useStorageEstimate(): [StorageEstimate | null, () => void] {
  const [estimate, setEstimate] = useState<StorageEstimate | null>(null);
  const refresh = () => void estimateStorage().then(setEstimate);
  useEffect(refresh, []);
  return [estimate, refresh];
}
