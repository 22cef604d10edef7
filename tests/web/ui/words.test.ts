/** Short texts that the page computes, and the names of rows. */

import { ago, percent, since } from "../../../web/src/locale/format.ts";
import { t } from "../../../web/src/locale/t.ts";
import { replacedTexts, nameOf } from "../../../web/src/core/schema/rowText.ts";
import type { Task } from "../../../web/src/core/documents/uploadTask.ts";
import { UNSENDABLE } from "../../../web/src/core/sync/unsendable.ts";
import { leftOutText } from "../../../web/src/ui/conversation/leftOutText.ts";
import { noAssistantReason } from "../../../web/src/ui/conversation/noAssistantReason.ts";
import { stageLabel } from "../../../web/src/ui/documents/uploadText.ts";
import { unusedSince } from "../../../web/src/ui/documents/unusedSince.ts";
import { nextAttempt } from "../../../web/src/ui/memory/nextAttempt.ts";
import { rejectionMessage } from "../../../web/src/ui/rejectionMessage.ts";

const base = { id: "f", key: "user.name", value: "Ada", confirmed: false };

test.each([
  [
    "both devices changed the text, and the other device's text won",
    { value: "Grace" },
    { value: "Edith" },
    { value: "Grace" },
  ],
  ["only the other device changed the text", {}, { value: "Edith" }, {}],
  ["only this device changed the text", { value: "Grace" }, { value: "Grace" }, {}],
  ["the other device's text contains this device's text", { value: "Grace" }, { value: "Grace Hopper" }, {}],
  ["the changed field is not text", { confirmed: true }, { value: "Edith" }, {}],
  [
    "the other device deleted the edited row",
    { value: "Grace" },
    { value: "", _deleted: true },
    { value: "Grace" },
  ],
  ["the other device deleted an unchanged row", {}, { key: "", value: "", _deleted: true }, {}],
  ["this device deleted the row", { value: "", _deleted: true }, { value: "Edith" }, {}],
  [
    "two changed texts were replaced",
    { key: "a", value: "b" },
    { key: "c", value: "d" },
    { key: "a", value: "b" },
  ],
])("replacedTexts: %s", (_, ours, theirs, lost) => {
  expect(replacedTexts("facts", { ...base, ...ours }, base, { ...base, ...theirs })).toEqual(lost);
});

test("replacedTexts without a base returns every replaced text", () => {
  expect(replacedTexts("sessions", { title: "Mine" }, undefined, { title: "Yours" })).toEqual({
    title: "Mine",
  });
});

test("a row is named after its truncated first line", () => {
  expect(nameOf("episodes", { userMessage: " What now?\nTell me." })).toBe("What now?");
  expect(nameOf("memories", { text: "x".repeat(500) })).toHaveLength(80);
  expect(nameOf("vectorEmbeddings", {})).toBe("");
});

test.each([
  [undefined, "live", "chat.assistantUnknown"],
  [false, "live", "chat.noAssistant"],
  [false, "signed-out", "chat.signedOut"],
  [true, "signed-out", "chat.signedOut"],
] as const)("noAssistantReason gives a reason: available %s, sync %s", (available, kind, key) => {
  expect(noAssistantReason(available, kind)).toBe(t(key));
});

test.each(["live", "offline"] as const)("noAssistantReason is empty with an assistant: sync %s", (kind) => {
  expect(noAssistantReason(true, kind)).toBe("");
});

test("an unknown error gives advice and some details", () => {
  const message = `\n\n  Code: CONFLICT.\n  ${"A hint. ".repeat(100)}`;
  const label = stageLabel({ name: "lease.pdf", stage: "failed", code: "ERROR", message } as Task);
  expect(label).toMatch(/^lease\.pdf could not be added\. Retry\. .* Details: Code: CONFLICT\. A hint\./);
  expect(label.length).toBeLessThan(320);
});

test("relative dates change at midnight, not after 24 hours", () => {
  const now = new Date(2026, 4, 14, 22, 40);
  const at = (day: number, hour: number) => new Date(2026, 4, day, hour, 20).toISOString();
  expect(ago(now.toISOString(), +now)).toBe("just now");
  expect(ago(at(14, 0), +now)).toBe("22 hours ago");
  expect(ago(at(12, 10), +now)).toBe("2 days ago"); // 60 hours, which must not round to three days
  expect(ago(at(13, 1), +now)).toBe("yesterday");
  expect(ago(at(12, 23), +now)).toBe("2 days ago"); // 47 hours
  expect(since(at(13, 23), +now)).toBe("yesterday"); // less than 24 hours
  expect(since(at(14, 1), +now)).toBe("today");
  expect(since("not a time", +now)).toBe("not a time");
  expect(ago("not a time", +now)).toBe("not a time");
});

test("an overdue retry shows no time in the past", () => {
  expect(nextAttempt(2, "2020-01-01T00:00:00.000Z")).toBe("Failed 2 times. Trying again soon.");
  expect(nextAttempt(1, "2999-01-01T00:00:00.000Z")).toMatch(/^Failed 1 time\. Next attempt: .*2999/u);
});

test("technical rejection messages get a plain introduction", () => {
  const technical = { code: "INVALID", message: "The row lacks `title`." };
  expect(rejectionMessage(technical)).toMatch(
    /stays on this device only\. Change it.* The row lacks `title`\.$/u,
  );
  expect(rejectionMessage({ code: "DUPLICATE", message: "`externalId` is taken." })).not.toContain(
    "externalId",
  );
  const rejection = { code: "INVALID", message: UNSENDABLE };
  expect(rejectionMessage(rejection)).toBe(UNSENDABLE);
  expect(rejectionMessage({ code: "TIER", message: "For people." })).toBe("For people.");
});

test("omitted prompt parts are counted by kind", () => {
  const none = { facts: [], turns: [], memories: [], passages: [] };
  expect(leftOutText(none)).toBe(t("prompt.everythingFit"));
  expect(leftOutText({ ...none, turns: ["a"], passages: ["b", "c"] })).toBe(
    "Left out because of the limits: 1 earlier message and 2 passages.",
  );
});

test("unusedSince names no date for documents used this month", () => {
  expect(unusedSince(5, new Date().toISOString())).toBe("These 5 documents have been unused the longest.");
  expect(unusedSince(1, new Date().toISOString())).toBe("This document has been unused the longest.");
  expect(unusedSince(5, "2020-03-15T00:00:00.000Z")).toBe(
    "You haven't used these 5 documents since March 2020.",
  );
});

test("a small percentage is not shown as zero", () => {
  expect(percent(24 / 6000)).toBe("0.4%");
  expect(percent(1204 / 6000)).toBe("20%");
  expect(percent(0)).toBe("0%");
});
