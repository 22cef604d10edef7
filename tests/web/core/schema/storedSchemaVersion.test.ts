/** Which version of the app gave the rows on a device their form: an older one, this one, or a newer one. */

import { compareStoredVersion } from "../../../../web/src/core/schema/storedSchemaVersion.ts";

const OURS = { facts: { version: 2 }, memories: { version: 0 } };

test.each([
  ["nothing is kept yet", [], "ours"],
  ["as this version keeps it", ["facts 2", "memories 0"], "ours"],
  ["a collection that is new has no rows yet", ["memories 0"], "ours"],
  ["of the version before", ["facts 1", "memories 0"], "older"],
  ["of two versions before, and one between", ["facts 0", "facts 1"], "older"],
  ["what is left of the version before is empty", ["facts 0", "facts 1", "facts 2"], "ours"],
  ["of a later one", ["facts 3", "memories 0"], "newer"],
  ["of a later one, and what is left of this", ["facts 2", "facts 3"], "newer"],
  [
    "one collection later, another before: whoever began that knows the way",
    ["facts 1", "memories 1"],
    "newer",
  ],
  ["what is no collection of ours", ["others 9", "rx-replication-meta-facts 3"], "ours"],
])("%s", (_, kept, form) => {
  const found = kept.map((each) => {
    const [collection, version] = each.split(" ");
    return { collection: collection!, version: Number(version) };
  });
  expect(compareStoredVersion(found, OURS)).toBe(form);
});
