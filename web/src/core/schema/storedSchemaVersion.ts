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
