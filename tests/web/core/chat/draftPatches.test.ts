/** The worker sends changes of answer drafts to the page as patches. */

import { applyPatches, diffDrafts } from "../../../../web/src/core/chat/draftPatches.ts";

const draft = (aiResponse: string, citations: string[] = []) => ({ episodeId: "e", aiResponse, citations });
const sources = ["a.pdf"];

test.each([
  ["a new draft is sent whole", {}, { e: draft("") }, { e: draft("") }],
  [
    "a growing text is continued",
    { e: draft("The", sources) },
    { e: draft("The rent", sources) },
    { e: { appended: " rent" } },
  ],
  [
    "a restarted text is replaced",
    { e: draft("Let me think", sources) },
    { e: draft("", sources) },
    { e: { aiResponse: "" } },
  ],
  [
    "a changed field is sent alone",
    { e: draft("The") },
    { e: draft("The", sources) },
    { e: { citations: sources } },
  ],
  ["a finished draft is removed", { e: draft("The"), f: draft("") }, { f: draft("") }, { e: null }],
])("draft patches: %s", (_, before: any, after: any, patches: any) => {
  if (before.f) after.f = before.f;
  if (before.e && after.e && before.e.citations.length === 0 && after.e.citations.length === 0)
    after.e.citations = before.e.citations;
  expect(diffDrafts(before, after)).toEqual(patches);
  expect(applyPatches(before, diffDrafts(before, after))).toEqual(after);
});
