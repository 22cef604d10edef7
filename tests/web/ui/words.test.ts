/** What a conflict took away, what a row is called, and why there are only quotations. */

import { conversation } from "../../../web/src/ui/words/conversation.ts";
import { ago } from "../../../web/src/ui/words/count.ts";
import { documents } from "../../../web/src/ui/words/documents.ts";
import { jobs } from "../../../web/src/ui/words/jobs.ts";
import { since } from "../../../web/src/ui/words/measures.ts";
import { memory } from "../../../web/src/ui/words/memory.ts";
import { prompt } from "../../../web/src/ui/words/prompt.ts";
import { refused } from "../../../web/src/ui/words/refusals.ts";
import { uploads } from "../../../web/src/ui/words/uploads.ts";
import { written } from "../../../web/src/core/chat/storedSentences.ts";
import { lostWords, nameOf } from "../../../web/src/core/schema/rowText.ts";
import type { Task } from "../../../web/src/core/documents/uploadTask.ts";

const base = { id: "f", key: "user.name", value: "Ada", confirmed: false };

test.each([
  ["both changed it, the other stands", { value: "Grace" }, { value: "Edith" }, { value: "Grace" }],
  ["only the other changed it", {}, { value: "Edith" }, {}],
  ["only this device changed it", { value: "Grace" }, { value: "Grace" }, {}],
  ["what stands holds it whole", { value: "Grace" }, { value: "Grace Hopper" }, {}],
  ["it is no text", { confirmed: true }, { value: "Edith" }, {}],
  ["the other deleted it", { value: "Grace" }, { value: "", _deleted: true }, { value: "Grace" }],
  ["the other deleted what was not changed here", {}, { key: "", value: "", _deleted: true }, {}],
  ["this device deleted it", { value: "", _deleted: true }, { value: "Edith" }, {}],
  ["two fields", { key: "a", value: "b" }, { key: "c", value: "d" }, { key: "a", value: "b" }],
])("%s", (_, ours, theirs, lost) => {
  expect(lostWords("facts", { ...base, ...ours }, base, { ...base, ...theirs })).toEqual(lost);
});

test("with nothing in common every text that is gone was lost", () => {
  expect(lostWords("sessions", { title: "Mine" }, undefined, { title: "Yours" })).toEqual({ title: "Mine" });
});

test("a row is called by its first line, cut short", () => {
  expect(nameOf("episodes", { userMessage: " What now?\nTell me." })).toBe("What now?");
  expect(nameOf("memories", { text: "x".repeat(500) })).toHaveLength(80);
  expect(nameOf("vectorEmbeddings", {})).toBe("");
});

test("passages are announced where there are some, in words that stay true", () => {
  expect(conversation.noAnswer(0)).toBe("No assistant answered.");
  expect(conversation.noAnswer(1)).toBe("No assistant answered, so here are the passages that fit best.");
});

test.each([
  [undefined, "live", "The server has not said yet whether one is set up."],
  [false, "live", "None is set up."],
  [false, "signed-out", "This browser is signed out: none can be asked."],
  [true, "signed-out", "This browser is signed out: none can be asked."],
  [true, "live", ""],
  [true, "offline", ""],
] as const)("whether one can be asked now: assistant %s, %s", (available, kind, said) => {
  expect(conversation.noAssistant(available, kind)).toBe(said);
});

test("what came of an answer that ended early is said to be kept only where something came", () => {
  expect(conversation.stopped("It ")).toBe("Stopped. What came is kept.");
  expect(conversation.stopped("")).toBe("Stopped.");
  expect(conversation.failed("It ")).toBe("This answer broke off. What came is kept.");
  expect(conversation.failed("\n")).not.toContain("kept");
});

test("of a failure that has no words of its own it is said what to do, and the beginning of what was told", () => {
  const message = `\n\n  Code: CONFLICT.\n  ${"A hint. ".repeat(100)}`;
  const said = uploads.stage({ name: "lease.pdf", stage: "failed", code: "ERROR", message } as Task);
  expect(said).toMatch(
    /^lease\.pdf could not be added\. Try again; .* What went wrong: Code: CONFLICT\. A hint\./,
  );
  expect(said.length).toBeLessThan(320);
});

test("a day is over at midnight, not after 24 hours", () => {
  const now = new Date(2026, 4, 14, 22, 40);
  const at = (day: number, hour: number) => new Date(2026, 4, day, hour, 20).toISOString();
  expect(ago(at(14, 0), +now)).toBe("22 hours ago");
  expect(ago(at(12, 10), +now)).toBe("2 days ago"); // 60 hours and more, of which three days must not be made
  expect(ago(at(13, 1), +now)).toBe("yesterday");
  expect(ago(at(12, 23), +now)).toBe("2 days ago"); // 47 hours
  expect(since(at(13, 23), +now)).toBe("yesterday"); // though it is not a day yet
  expect(since(at(14, 1), +now)).toBe("today");
  expect(since("not a time", +now)).toBe("not a time");
  expect(ago("not a time", +now)).toBe("not a time");
});

test("a try that is due already is not announced for a time that has passed", () => {
  expect(jobs.next(2, "2020-01-01T00:00:00.000Z")).toBe(
    "Tried 2 times without success. It is tried again soon.",
  );
  expect(jobs.next(1, "2999-01-01T00:00:00.000Z")).toMatch(/It is tried again on .*2999/u);
});

test("to who is signed out nobody says that the server does not answer", () => {
  expect(jobs.away("signed-out")).toContain("sign in again");
  expect(jobs.away("offline")).toContain("it does not answer");
  expect(memory.forgetAway("signed-out")).toContain("Sign in again");
  expect(memory.forgetAway("offline")).toContain("it does not answer");
});

test("what a server says to who writes programs is said to people first in their words", () => {
  const technical = { code: "INVALID", message: "The row lacks `title`." };
  expect(refused(technical)).toMatch(/stays on this device only: change it, .* The row lacks `title`\.$/u);
  expect(refused({ code: "DUPLICATE", message: "`externalId` is taken." })).not.toContain("externalId");
  const meant = { code: "INVALID", message: written.refused };
  expect(refused(meant)).toBe(written.refused);
  expect(refused({ code: "TIER", message: "For people." })).toBe("For people.");
});

test("what the assistant was not told for want of room is named by what it is", () => {
  const none = { facts: [], turns: [], memories: [], passages: [] };
  expect(prompt.dropped(none)).toBe("Everything fitted.");
  expect(prompt.dropped({ ...none, turns: ["a"], passages: ["b", "c"] })).toBe(
    "Left out, as there was no room: 1 earlier message, 2 passages.",
  );
});

test("how much an assistant is told is said as a part of the room, and little is not nothing", () => {
  expect(prompt.used(24, 6000)).toBe("0.4% of the room for it");
  expect(prompt.used(1204, 6000)).toBe("20% of the room for it");
  expect(prompt.used(0, 0)).toBe("0% of the room for it");
});

test("what was used this month is not said to lie there since this month", () => {
  const { suggested } = documents.meter;
  expect(suggested(5, new Date().toISOString())).toBe("These 5 were used longest ago.");
  expect(suggested(1, new Date().toISOString())).toBe("One was used longest ago.");
  expect(suggested(5, "2020-03-15T00:00:00.000Z")).toBe("These 5 have not been used since March 2020.");
});
