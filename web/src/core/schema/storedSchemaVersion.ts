/** Compare the schema version of the rows on a device with this version of the app. */

export type StoredVersion = "older" | "ours" | "newer";

/** A collection that is stored on this device in one version of its schema. */
interface StoredCollection {
  collection: string;
  version: number;
}

/**
 * Return whether the rows on this device have an older, the same or a newer schema than this version of the app
 * (`ours`). Only the newest stored version of a collection counts, because a migration leaves the older one empty.
 */
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
