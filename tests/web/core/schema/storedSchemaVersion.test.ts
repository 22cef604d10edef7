/** Which version of the app wrote the rows on a device: an older one, this one, or a newer one. */

import { compareStoredVersion } from "../../../../web/src/core/schema/storedSchemaVersion.ts";

const OURS = { facts: { version: 2 }, memories: { version: 0 } };

test.each([
  ["no rows are stored", [], "ours"],
  ["all collections have this version", ["facts 2", "memories 0"], "ours"],
  ["a new collection is not stored yet", ["memories 0"], "ours"],
  ["a collection has the previous version", ["facts 1", "memories 0"], "older"],
  ["a collection exists in two earlier versions", ["facts 0", "facts 1"], "older"],
  ["emptied earlier versions exist beside this one", ["facts 0", "facts 1", "facts 2"], "ours"],
  ["a collection has a later version", ["facts 3", "memories 0"], "newer"],
  ["a later version exists beside this one", ["facts 2", "facts 3"], "newer"],
  ["one collection is later and another is earlier", ["facts 1", "memories 1"], "newer"],
  ["unknown collections are ignored", ["others 9", "rx-replication-meta-facts 3"], "ours"],
])("compareStoredVersion: %s", (_, kept, form) => {
  const found = kept.map((each) => {
    const [collection, version] = each.split(" ");
    return { collection: collection!, version: Number(version) };
  });
  expect(compareStoredVersion(found, OURS)).toBe(form);
});
