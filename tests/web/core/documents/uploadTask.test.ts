/** The summary of many uploads, and the order in which they are listed. */

import {
  inOrder,
  transition,
  type Task,
  type UploadState,
} from "../../../../web/src/core/documents/uploadTask.ts";
import { uploadSummary } from "../../../../web/src/ui/documents/uploadText.ts";

const task = (id: string, stage: Task["stage"]): Task => {
  const file = { id, name: `${id}.txt`, size: 1, sessionId: null, documentId: null };
  return { ...file, stage, done: 0, of: 0, existing: false, code: "ERROR" };
};
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
  const here = { ...task("a", "done"), stage: "done", existing: true } as const;
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

test("a late change does not affect a task that has ended or is further", () => {
  const late = { stage: "reading", done: 1, of: 2 } as const;
  for (const stage of ["embedding", "done", "failed", "cancelled"] as const) {
    expect(transition(task("a", stage), late)).toEqual(task("a", stage));
  }
  expect(transition(task("a", "failed"), { stage: "cancelled" }).stage).toBe("cancelled");
});

test("a task keeps its document and drops the fields of its last state", () => {
  const embedding: UploadState = { stage: "embedding", done: 1, of: 2 };
  const failed: UploadState = { stage: "failed", code: "EMBEDDING" };
  const { id, name, size, sessionId } = task("a", "reading");
  expect(transition({ id, name, size, sessionId, documentId: "d", ...embedding }, failed)).toEqual({
    ...{ id, name, size, sessionId, documentId: "d" },
    ...failed,
  });
});
