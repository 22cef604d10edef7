/** The summary of many uploads, and the order in which they are listed. */

import { inOrder, type Task } from "../../../../web/src/core/documents/uploadTask.ts";
import { uploadSummary } from "../../../../web/src/ui/documents/uploadText.ts";

const task = (id: string, stage: Task["stage"]): Task => ({
  ...{ id, name: `${id}.txt`, size: 1, sessionId: null, stage, done: 0, of: 0 },
  ...{ documentId: null, existing: false, code: null, message: null },
});
const tasks = (...stages: Task["stage"][]) => stages.map((stage, i) => task("abcdefgh"[i]!, stage));
const listed = (...stages: Task["stage"][]) =>
  inOrder(tasks(...stages))
    .map(({ id }) => id)
    .join("");

test("the upload summary shows progress and outcomes", () => {
  expect(uploadSummary(tasks("reading"))).toBe("Adding 1 file");
  expect(uploadSummary(tasks("sending", "waiting", "waiting"))).toBe("Adding file 1 of 3");
  expect(uploadSummary(tasks("done", "failed", "reading", "waiting"))).toBe(
    "Adding file 3 of 4 · 1 file could not be added",
  );
  expect(uploadSummary(tasks("cancelled", "done", "embedding"))).toBe("Adding file 2 of 2");
  expect(uploadSummary(tasks("done", "needs-server", "reading"))).toBe("Adding file 2 of 2");
  expect(uploadSummary(tasks("done", "done"))).toBe("2 files added");
  const here = { ...task("a", "done"), existing: true };
  expect(uploadSummary([...tasks("done"), here])).toBe("1 file added · 1 file was already here");
  expect(uploadSummary(tasks("done", "failed", "done", "cancelled"))).toBe(
    "1 file could not be added · 2 files added",
  );
  expect(uploadSummary([{ ...task("a", "failed"), documentId: "d" }])).toBe(
    "1 file was not fully prepared for search",
  );
});

test("uploads are listed in the order active, waiting, finished", () => {
  expect(listed("reading", "waiting", "waiting")).toBe("abc");
  expect(listed("done", "embedding", "sending", "waiting", "waiting")).toBe("bcdea");
  expect(listed("done", "failed", "needs-server", "reading", "waiting")).toBe("decba");
});
