/** A chat with a scripted assistant behind the real server. */

import { violations } from "./accessibility.ts";
import { Device, harness, composerOf } from "./app.ts";
import type { EpisodeDoc } from "../../web/src/core/schema/rows.ts";
import { block, lease, push, session } from "./accounts.ts";
import { turn } from "./sample_memory.ts";
import { withAssistant, type Rule } from "./scripted_assistant.ts";

const HOSTILE = [
  "<script>window.hurt=1</script><img src=x onerror='window.hurt=2'><svg onload='window.hurt=3'>",
  "[a link](javascript:window.hurt=4) ![a picture](https://elsewhere.example/pixel.png?secret)",
  "<iframe srcdoc='<script>parent.hurt=5</script>'></iframe> <a href='https://elsewhere.example'>out</a>",
].join("\n\n");

const RULES: Rule[] = [
  { when: "rent", say: ["The rent is ", "**940 euros**", ", see [1]."] },
  { when: "once more", say: Array.from({ length: 400 }, (_, n) => `again${n} `), pause_s: 0.02 },
  { when: "slowly", say: Array.from({ length: 400 }, (_, n) => `word${n} `), pause_s: 0.02 },
  { when: "think long", say: [], first_s: 8 },
  { when: "think a while", say: ["At last."], first_s: 3 },
  { when: "busy", say: [], status: 429 },
  { when: "break off", say: ["It begins, ", "and then "], ends: "broken" },
  { when: "hurt me", say: [HOSTILE] },
];

withAssistant(RULES);

const LEASE = "The rent of the flat in Harbour Street is 940 euros a month, due on the third working day.";

/** All tests use this device. Each except the second starts a new chat. */
let device: Device;
beforeAll(async () => {
  device = await Device.of(await harness.user(), { installs: true });
  await device.installed();
  await device.drop("lease.txt", LEASE);
  await device.embedded(1);
});

function begin(): Promise<void> {
  return device.page.getByRole("link", { name: "New chat" }).first().click();
}

/** Return the turns of the open chat. */
function turns(): Promise<EpisodeDoc[]> {
  return device.rows("episodes", { selector: { sessionId: shown() } });
}

function shown(): string {
  return device.page.url().split("/s/")[1]!;
}

/** Stop the answer, so that it does not continue during the next test. */
async function stop(): Promise<void> {
  await device.page.getByRole("button", { name: "Stop" }).click();
  await device.page.getByText("Stopped. The answer so far is kept.").waitFor();
}

/** Wait until an answer is longer than the previous one, because a shorter stopped answer does not replace it. */
async function waitForMoreThan(previous: string): Promise<void> {
  const next = previous.trim().split(" ").length + 3;
  await device.page.getByText(new RegExp(`word${next}\\b`, "u")).waitFor();
}

test("an answer shows its sources and prompt", async () => {
  const { page } = device;
  await device.ask("How much is the rent?");
  await page.getByText("940 euros", { exact: true }).waitFor();
  const [turn] = await turns();
  expect(turn).toMatchObject({ status: "done", model: "scripted", citations: [{ filename: "lease.txt" }] });
  await page.getByRole("group", { name: "Sources" }).getByRole("button", { name: "lease.txt" }).click();
  await page.getByRole("dialog").getByText("Harbour Street").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "What the assistant saw" }).click();
  await page
    .getByRole("dialog")
    .getByText(/Documents: [\d.]+% of the available space/)
    .waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("a question asked offline is answered later on request", async () => {
  const { page } = device; // in the chat of the first test
  await device.modelReady();
  await device.setOffline(true);
  await page.getByRole("button", { name: "Regenerate answer" }).click();
  await page.getByText("No new answer arrived, so the previous one is kept.").waitFor();
  await page.getByText("940 euros", { exact: true }).waitFor();
  await device.ask("And when is it due?");
  await page.getByText("Quoted from your documents").waitFor();
  await page.getByRole("button", { name: "Let the assistant answer later" }).click();
  await page.getByText("The assistant will answer when it is available.").waitFor();
  await device.setOffline(false);
  await page.getByText("You asked: And when is it due?").waitFor();
});

test("resending a question replaces the running answer", async () => {
  const { page } = device;
  await begin();
  await device.ask("Tell me slowly.");
  await page.getByText(/word3/).waitFor();
  const { id } = (await turns())[0]!;
  for (const message of ["Tell it slowly, the first time.", "Tell it slowly, once more."]) {
    await page.evaluate(([id, message]) => void window.vademecum.regenerateAnswer(id, message), [
      id,
      message,
    ] as const);
  }
  await page.getByText(/again5/).waitFor();
  const article = await page.getByRole("article").innerText();
  expect(article.match(/again2\b/gu)).toHaveLength(1); // two concurrent answers would contain it twice
  expect(article).not.toContain("word");
  await stop();
  await page.getByRole("button", { name: "Regenerate answer" }).waitFor(); // no answer is running
  const [turn] = await turns();
  expect(turn).toMatchObject({ status: "stopped", userMessage: "Tell it slowly, once more." });
});

test("a partial answer survives a server crash", async () => {
  await begin();
  await device.ask("Tell me slowly.");
  await device.page.getByText(/word9/).waitFor();
  await harness.control("kill");
  await device.page.getByText("The answer was cut off. The answer so far is kept.").waitFor();
  await harness.control("start");
  await device.call("syncNow"); // reconnect without a delay
  const live = async () =>
    (await harness.liveRows(device.user, "episodes")).filter(({ sessionId }) => sessionId === shown());
  await device.until(async () => {
    const [visible] = await live();
    return visible?.["status"] === "failed" && visible["aiResponse"].includes("word9");
  });
  expect(await live()).toHaveLength(1);
  await device.untilSyncIs("live");
  const [turn] = await turns();
  await device.page.getByRole("button", { name: "Regenerate answer" }).click();
  await waitForMoreThan(turn!.aiResponse);
  await stop();
});

test("a stopped question can be edited and resent", async () => {
  const { page } = device;
  await begin();
  await device.ask("Tell me slowly.");
  await page.getByText(/word3/).waitFor();
  await stop();
  const [stopped] = await turns();
  expect(stopped!.status).toBe("stopped");
  expect(stopped!.aiResponse).toContain("word3");
  await page.getByRole("button", { name: "Edit and resend" }).click();
  await page.getByRole("textbox", { name: "Edit and resend" }).fill("How much is the rent?");
  await page.getByRole("button", { name: "Resend", exact: true }).click();
  await page.getByText("940 euros", { exact: true }).waitFor();
  expect(await turns()).toHaveLength(1);
  const composer = composerOf(page);
  await composer.fill("Not sent yet");
  await page.reload();
  await composer.waitFor();
  expect(await composer.inputValue()).toBe("Not sent yet");
});

test("stopping before an answer begins keeps no answer", async () => {
  await begin();
  await device.ask("Please think long.");
  await device.page.getByText("Reading your documents…").waitFor();
  await device.page.getByRole("button", { name: "Stop" }).click();
  await device.page.getByText("Stopped.", { exact: true }).waitFor();
  await device.ask("Are you busy?");
  await device.page.getByText(/^The assistant cannot answer yet\. Retrying after \d+ seconds?\.$/).waitFor();
  await device.page.getByRole("button", { name: "Stop" }).click();
  await device.page.getByText("Stopped.", { exact: true }).nth(1).waitFor();
});

test("a reopened page recovers an interrupted answer", async () => {
  await begin();
  await device.ask("Please think a while.");
  await device.page.getByText("Reading your documents…").waitFor();
  await device.page.getByRole("button", { name: "Stop" }).waitFor();
  await device.reopen();
  await device.page.getByText("At last.").waitFor(); // the question is asked again
  await device.ask("Tell me slowly.");
  const slowly = ({ userMessage }: { userMessage: string }) => userMessage === "Tell me slowly.";
  const slowAnswer = async () => (await turns()).find(slowly)?.aiResponse ?? "";
  await device.until(async () => (await slowAnswer()).includes("word1"));
  await device.reopen();
  const partialAnswer = await slowAnswer();
  expect(partialAnswer).toContain("word1");
  await device.page.getByRole("button", { name: "Regenerate answer" }).click();
  await waitForMoreThan(partialAnswer);
  await stop();
});

test("a document named in a question is added to the chat on confirmation", async () => {
  const { page } = device;
  await begin();
  await device.ask("What does the lease say about rent?");
  await page.getByText("Found “lease.txt” in your documents. Include it?").waitFor();
  const [before] = await device.rows("documents");
  expect(before!.activeSessions).toHaveLength(1);
  const include = page.getByRole("button", { name: "Include", exact: true });
  const composer = composerOf(page);
  const [shown, below] = await Promise.all([include.boundingBox(), composer.boundingBox()]);
  expect(shown!.y + shown!.height).toBeLessThanOrEqual(below!.y); // visible without scrolling
  await include.click();
  await page.getByRole("button", { name: /Remove lease.txt/ }).waitFor();
  const [after] = await device.rows("documents");
  expect(after!.activeSessions).toHaveLength(2);
});

test("hostile answers run no script", async () => {
  const { page } = device;
  await begin();
  await device.ask("Please hurt me.");
  await page.getByText("a link").waitFor();
  expect(await page.evaluate(() => (window as any).hurt)).toBeUndefined();
  const article = page.getByRole("article");
  for (const tag of ["script", "img", "svg path[d*=hurt]", "iframe", "a[href^=javascript]"]) {
    expect(await article.locator(tag).count(), tag).toBe(0);
  }
  expect(device.browser.requests.filter((url) => url.includes("elsewhere.example"))).toEqual([]);
  expect(await violations(page)).toEqual([]);
});

test("earlier messages load without moving the page", async () => {
  const { page, user } = device;
  const paragraphs = Array.from({ length: 60 }, (_, n) =>
    turn(`e${n}`, "long", 60 - n, `Question ${n}?`, `Answer ${n}.`),
  );
  await push(user, "sessions", session("long", "A long one"));
  await push(user, "episodes", ...paragraphs);
  await device.until(
    async () => (await device.rows("episodes", { selector: { sessionId: "long" } })).length === 60,
  );
  const drawn = () => page.getByRole("article").count();
  await page.goto(`${harness.url}/s/long`);
  await page.getByText("Answer 59.").waitFor();
  expect(await drawn()).toBe(50);
  // Only the list of messages scrolls, not the page.
  expect(await page.evaluate(() => document.documentElement.scrollHeight - innerHeight)).toBe(0);
  const earlier = page.getByRole("button", { name: "Show 10 earlier messages" });
  await earlier.scrollIntoViewIfNeeded();
  const placeOfFirst = () => page.getByText("Question 10?").evaluate((it) => it.getBoundingClientRect().top);
  const before = await placeOfFirst();
  await earlier.click();
  await page.getByText("Question 0?").waitFor();
  expect(await drawn()).toBe(60);
  expect(Math.abs((await placeOfFirst()) - before)).toBeLessThan(60); // only the button's own height moves the message
  expect(await earlier.count()).toBe(0);
  await page.goto(`${harness.url}/s/long?turn=e3`); // open the URL that a timeline link has
  await page.getByText("Question 3?").waitFor();
  expect(await drawn()).toBe(57);
});

test("a source opens its best passage", async () => {
  const { page, user } = device;
  const passages = ["The best passage.", "A lesser passage of the page."].map((text, index) => ({
    ...{ index, start: 30 * index, text, tokens: 5, page: 1 },
  }));
  const ofPaged = { selector: { documentId: "d-paged" } };
  const cited = { n: 1, documentId: "d-paged", filename: "paged.pdf", page: 1, block: 0 };
  await push(user, "sessions", session("s-paged", "Passages of one page"));
  const document = { ...lease(user.userId, "d-paged"), activeSessions: ["s-paged"], filename: "paged.pdf" };
  await push(user, "documents", { ...document, chunkCount: 2, pageCount: 1 });
  await push(user, "vectorEmbeddings", { ...block("d-paged"), chunks: passages });
  await push(user, "episodes", {
    ...turn("e-paged", "s-paged", 1, "Which passage?", "It says so [2], not here [3] and `never[1]`."),
    ...{ model: "scripted", citations: [0, 1].map((at) => ({ ...cited, n: at + 1, chunkIndex: at })) },
  });
  await device.until(async () => (await device.rows("vectorEmbeddings", ofPaged)).length === 1);
  await page.getByRole("link", { name: "Passages of one page" }).first().click();
  await page.getByText("not here [3] and never[1].").waitFor(); // a number that the model was not told, and code
  const chips = page.locator("[data-citation]");
  expect(await chips.allInnerTexts()).toEqual(["2"]);
  await chips.click();
  await page.getByRole("dialog").locator("mark").getByText("A lesser passage of the page.").waitFor();
  const read = page.getByRole("group", { name: "Also read" });
  await read.getByRole("button", { name: "paged.pdf, page 1" }).click();
  expect(await page.getByRole("dialog").locator("mark").innerText()).toBe("The best passage.");
});
