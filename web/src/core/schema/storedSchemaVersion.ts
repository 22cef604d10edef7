/** Which version of the app gave the rows on a device their form. */

export type StoredVersion = "older" | "ours" | "newer";

/** A collection as it is kept here, in one version of its schema. */
interface StoredCollection {
  collection: string;
  version: number;
}

/** What is kept of an older form stays there empty once its rows have the new one. */
export function compareStoredVersion(
  kept: StoredCollection[],
  ours: Record<string, { version: number }>,
): StoredVersion {
  const known = kept.filter(({ collection }) => collection in ours);
  const newest = new Map<string, number>();
  for (const { collection, version } of known) {
    newest.set(collection, Math.max(version, newest.get(collection) ?? 0));
  }
  const steps = [...newest].map(([collection, version]) => version - ours[collection]!.version);
  if (steps.some((step) => step > 0)) return "newer";
  return steps.some((step) => step < 0) ? "older" : "ours";
}

/** The channel on which tabs that have an account open are asked to be loaded anew: a newer version waits for them. */
export const reloadChannelName = (userId: string) => `vademecum-asked-${userId}`;

/** Requests on the same channel to reload, so that deleted text can be erased: of hidden pages, or of all pages. */
export const [REQUEST_ERASURE, REQUEST_ERASURE_NOW] = ["erase", "erase now"] as const;

/** The lock of a page that forgets everything of an account: it removes the account from this device by itself. */
export const forgettingLockName = (userId: string) => `vademecum-forgetting-${userId}`;
