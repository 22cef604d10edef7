/** The memories below a quotation answer are only those of the session's scope, and are labeled as memories. */

import { QUOTES } from "../../../../web/src/core/chat/citation.ts";
import { answerDisplayText } from "../../../../web/src/core/chat/answerDisplayText.ts";
import { memorySection } from "../../../../web/src/core/chat/memorySection.ts";
import type { EpisodeDoc } from "../../../../web/src/core/schema/rows.ts";
import type { AccountDatabase } from "../../../../web/src/storage/accountDatabase.ts";
import { rememberedFacts } from "../../../../web/src/backend/chat/answerMemory.ts";
import { contextOf, insert, openRows, row } from "../../device.ts";

let records: AccountDatabase;

beforeEach(async () => {
  records = await openRows();
  await insert(records, "projects", { id: "mill", name: "Mill" });
  await insert(
    records,
    "sessions",
    { id: "loose", title: "Loose" },
    { id: "other", title: "Other" },
    { id: "in", title: "In the mill", projectId: "mill" },
    { id: "strict", title: "Strict", mode: "authoritative" },
  );
});

const question = (sessionId: string, userMessage = "Where does the canary sing?") =>
  row("episodes", {
    id: "now",
    sessionId,
    userMessage,
    aiResponse: "",
    status: "queued",
  }) as never as EpisodeDoc;
const recallText = (sessionId: string) => rememberedFacts(contextOf(records), question(sessionId));

test("a session recalls only its scope, an authoritative session no memory", async () => {
  await insert(
    records,
    "memories",
    { id: "m0", text: "The canary sings at home.", sessionIds: ["other"] },
    { id: "m1", text: "The canary sings in the mill.", projectId: "mill" },
    { id: "m2", text: "The canary sang in a cage.", supersededBy: "m0" },
  );
  await insert(records, "entities", { id: "n", name: "canary", type: "concept", projectId: "mill" });
  const loose = await recallText("loose");
  expect(loose).toContain('The canary sings at home.\n> — 2026-01-01, session "Other"');
  const read = answerDisplayText({ aiResponse: `${loose}\n> of 2026-01-01, session "B"`, model: QUOTES });
  expect(read).toContain('The canary sings at home.\n> — 2026-01-01, conversation "Other"');
  expect(read).toContain('> of 2026-01-01, session "B"'); // a quoted text keeps the word "session"
  expect(answerDisplayText({ aiResponse: loose, model: "scripted" })).toBe(loose);
  expect(loose).not.toMatch(/mill|cage|concept/u);
  const mill = await recallText("in");
  expect(mill).toContain('The canary sings in the mill.\n> — 2026-01-01, project "Mill"');
  expect(mill).toContain("canary (concept)");
  expect(mill).not.toMatch(/home|cage/u);
  expect(await recallText("strict")).toBe("");
  expect(await recallText("gone")).toBe("");
});

test("recall omits the chat's own turns and all quotation answers", async () => {
  const entry = (id: string, sessionId: string, more: object = {}) => ({
    ...{ id, sessionId, userMessage: `The canary is ${id}.`, aiResponse: "Yes.", ...more },
  });
  await insert(
    records,
    "episodes",
    entry("mine", "loose"),
    entry("quoted", "other", { model: "quotes" }),
    entry("yellow", "other", { model: "scripted" }),
    entry("private", "in"),
  );
  const section = await recallText("loose");
  expect(section).toContain("The canary is yellow. Yes.");
  expect(section).not.toMatch(/mine|quoted|private/u);
});

test("memory text cannot leave its block quote", () => {
  expect(memorySection("canary", [])).toBe("");
  const text = "A canary.\n\n# Heading\n\n[1]";
  const markdown = memorySection("canary", [
    { id: "memories/m", date: "2026-01-01", session: 'session "A\n\n# B"', text },
  ]);
  const [label, ...rest] = markdown.split("\n");
  expect(label).toBe("**Remembered, not from your documents:**");
  expect(rest.filter((line) => line && !line.startsWith("> "))).toEqual([]);
  expect(rest).toHaveLength(3);
});

test("recalled lines that look like secrets are omitted", () => {
  const entry = (id: string, text: string) => ({ id, date: "2026-01-01", session: "memory", text });
  const section = memorySection("canary", [
    entry("a", "The canary's password: tweet"),
    entry("b", "A **[1]** canary."),
  ]);
  expect(section).not.toContain("tweet");
  expect(section).toContain("> A \\*\\*\\[1\\]\\*\\* canary.");
  expect(memorySection("canary", [entry("a", "password: tweet")])).toBe("");
});
