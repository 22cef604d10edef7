/** Agent activity in the list of projects and on the page of a project. */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expectFit } from "./accessibility.ts";
import { Device, harness, withServer } from "./app.ts";
import { push } from "./accounts.ts";
import type { Observation } from "../../web/src/core/agents/observations.ts";
import type { NewUser } from "../sync/harness.ts";

const SOAK = Boolean(process.env["SOAK"]);
const HOSTILE = "<img src=x onerror=\"document.title='broken'\"> and <b>bold</b>";
const EDIT = "web/pier.ts";

/** Two checkouts of the same name are distinguished by their folders, which must exist. */
const folders = mkdtempSync(join(tmpdir(), "vademecum-agents-"));
const folder = (name: string, within = "dev") => {
  const root = join(folders, within, name);
  mkdirSync(root, { recursive: true });
  return { name, root, source: "git" };
};

const DAY = 86_400_000;
const at = (daysAgo: number, time: string) =>
  `${new Date(Date.now() - daysAgo * DAY).toISOString().slice(0, 10)}T${time}:00.000Z`;
let eventCount = 0;
const step = (kind: string, when: string, content: string, more: object = {}) => ({
  ...{ v: 1, id: `event-${eventCount++}`, at: when, project: FERRY, session: "morning", kind, content },
  ...{ redactions: 0, ...more },
});

const FERRY = folder("ferry");
const STEPS = [
  step("session", at(3, "09:00"), "started: startup"),
  step("prompt", at(3, "09:01"), "The ferry does not call at the northern pier on Sundays. Find out why."),
  step("search", at(3, "09:02"), "northern pier in web", { tool: "Grep" }),
  step("read", at(3, "09:03"), "the whole file", { path: EDIT, tool: "Read" }),
  step("read", at(3, "09:14"), "the whole file", { path: EDIT, tool: "Read" }),
  step("read", at(3, "09:31"), "the whole file", { path: EDIT, tool: "Read" }),
  step(
    "command",
    at(3, "09:40"),
    "curl -H 'Authorization: [hidden]' https://ferry.example/timetable\n" + HOSTILE,
    { ...{ tool: "Bash", redactions: 2 } },
  ),
  step("edit", at(2, "10:00"), "- if (day === 0) return;\n+ if (day === 0 && winter) return;", {
    ...{ path: EDIT, tool: "Edit", session: "evening" },
  }),
  step("error", at(2, "10:05"), "make test\n1 of 214 failed: the boat at nine", {
    session: "evening",
    tool: "Bash",
  }),
  step("decision", at(2, "10:20"), "On Sundays the northern pier is left out in winter alone.", {
    session: "evening",
  }),
];
const CHORES = Array.from({ length: 60 }, (_, n) =>
  step("command", at(8, `08:${String(n).padStart(2, "0")}`), `make page-${n}`, { project: folder("chores") }),
);

let ada: NewUser;
let device: Device;
let page: Page;
let ferry: string;

withServer(); // may be shared, because no other file sends the request that is ignored below
beforeAll(async () => {
  ada = await harness.user();
  await push(ada, "projects", {
    documentIds: [],
    ...{ id: "p-flat", name: "Flat in Harbour Street", createdAt: at(9, "10:00"), updatedAt: at(9, "10:00") },
  });
  for (const events of [
    STEPS,
    CHORES,
    [step("read", at(1, "10:00"), "x", { project: folder("ferry", "work") })],
  ]) {
    await harness.request(ada, "/v1/observations", { method: "POST", body: JSON.stringify({ events }) });
  }
  device = await Device.of(ada);
  page = device.page;
  page.setDefaultTimeout(60_000);
  await page.clock.install(); // so that tests can skip the delay of a retry
  await device.until(async () => (await device.rows("projects")).length === 4);
  ferry = await projectId("ferry");
});
afterAll(() => rmSync(folders, { recursive: true }));

const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
const steps = () => page.locator("li[data-step]");
const stepOf = (text: string) => steps().filter({ hasText: text });
const choose = (name: string, label: string | RegExp) =>
  typeof label === "string"
    ? page.getByRole("combobox", { name }).selectOption(label)
    : page.getByRole("combobox", { name }).selectOption({ index: 1 });
const skipRetryDelay = () => page.clock.fastForward(5_000);
const counts = (n: number) => expect.poll(() => steps().count()).toBe(n);
const isFocused = (what: Locator) =>
  expect.poll(() => what.evaluate((one) => one === document.activeElement)).toBe(true);

async function projectId(name: string): Promise<string> {
  const rows = await device.rows("projects", { selector: { name } });
  return rows[0]!.id;
}

/** Return the project's observations on the server. */
async function storedObservations(): Promise<Observation[]> {
  const path = `/v1/observations?project=${ferry}&limit=1000`;
  return (await harness.request<{ observations: Observation[] }>(ada, path)).observations;
}

test("projects with agent activity can be filtered", async () => {
  await page.getByRole("link", { name: "Projects", exact: true }).click();
  await page.getByRole("link", { name: /^ferry: Agents: 8 steps, last active 2 days ago$/u }).waitFor();
  const rows = page.getByRole("main").getByRole("listitem");
  expect(await rows.count()).toBe(4);
  await page.getByRole("checkbox", { name: "Only projects with agent activity" }).check();
  await expect.poll(() => rows.count()).toBe(3);
  expect(await rows.filter({ hasText: "Flat in Harbour Street" }).count()).toBe(0);
  await expectFit(page);
});

test("agent steps are listed by day, newest first", async () => {
  await page.getByRole("link", { name: /^ferry: Agents/u }).click();
  await page.waitForURL(`**/projects/${ferry}/agents`);
  await counts(8);
  const stepTexts = await steps().allInnerTexts();
  const [newest, oldest] = [stepTexts.at(0)!, stepTexts.at(-1)!];
  expect(newest).toMatch(/^Decision/u);
  expect(oldest).toMatch(/^Session/u);
  const days = await page.getByRole("main").getByRole("heading", { level: 4 }).allInnerTexts();
  expect(days).toHaveLength(2);
  expect(new Date(days[0]!).getTime()).toBeGreaterThan(new Date(days[1]!).getTime());
  await stepOf("Read").getByText("3 times").waitFor();
  await stepOf("Read").getByText(EDIT).waitFor();
  await stepOf("curl").getByText("2 secrets hidden").waitFor();
  expect(await page.getByText(/secrets? hidden/u).count()).toBe(1);
  expect(await page.getByText("All sessions").count()).toBe(1);
  await expectFit(page);
});

test("a step expands by keyboard to plain text", async () => {
  const opener = stepOf("curl").getByRole("button", { name: /^curl/u });
  await opener.focus();
  expect(await page.getByText(HOSTILE).isVisible()).toBe(false);
  await page.keyboard.press("Enter");
  await page.getByText(HOSTILE).waitFor();
  expect(await opener.getAttribute("aria-expanded")).toBe("true");
  expect(await stepOf("curl").locator("img, b").count()).toBe(0);
  await expectFit(page);
  await page.keyboard.press("Enter");
  await page.getByText(HOSTILE).waitFor({ state: "hidden" });
});

test("a step is pinned, filtered and unpinned", async () => {
  const pins = async () =>
    (await storedObservations()).filter(({ pinned }) => pinned).map(({ kind }) => kind);
  const head = "On Sundays the northern pier is left out in winter alone.";
  await button(`Pin: ${head}`).click();
  await stepOf(head).getByText("Pinned, never expires").waitFor();
  expect(await pins()).toEqual(["decision"]);
  await isFocused(button(`Unpin: ${head}`));
  await page.getByRole("checkbox", { name: "Pinned only" }).check();
  await counts(1);
  if (SOAK) await expectFit(page);
  await page.getByRole("checkbox", { name: "Pinned only" }).uncheck();
  await counts(8);
  await button(`Unpin: ${head}`).click();
  await button(`Pin: ${head}`).waitFor();
  expect(await pins()).toEqual([]);
});

test("steps are filtered by type and session", async () => {
  await choose("Type", "Error");
  await counts(1);
  await stepOf("make test").waitFor();
  await choose("Type", "All types");
  await choose("Session", /the last/u);
  await counts(3);
  await choose("Session", "All sessions");
  await stepOf("Your request").waitFor();
  if (SOAK) await expectFit(page);
});

test("a late search response still shows its results", async () => {
  const words = page.getByRole("searchbox", { name: "Search agent activity" });
  const searchRoute = "POST /v1/observations/search";
  await harness.control("ignoreRequest", { request: searchRoute }); // the app retries after its timeout
  await words.fill("northern pier in winter");
  await device.until(async () => (await harness.control<{ yes: boolean }>("isRequestIgnored")).yes);
  await device.collectGarbage();
  await page
    .getByText("Agent activity is stored on the server, which is not responding.", { exact: false })
    .waitFor();
  await skipRetryDelay();
  await stepOf("left out in winter alone").waitFor();
  expect(await steps().first().innerText()).toContain("in winter alone");
  const days = page.getByRole("main").getByRole("heading", { level: 4 });
  expect(await days.count()).toBe(0); // sorted by relevance, not grouped by day
  await words.fill("");
  await expect.poll(() => days.count()).toBe(2);
});

test("deleting a step asks first and keeps the focus nearby", async () => {
  const dialogButton = button("Delete: make test");
  await dialogButton.click();
  const dialog = page.getByRole("dialog", { name: "Delete this step?" });
  await dialog.getByText("This cannot be undone.").waitFor();
  await expectFit(page);
  await dialog.getByText("Cancel", { exact: true }).click();
  await dialog.waitFor({ state: "hidden" });
  await isFocused(dialogButton);
  expect(await storedObservations()).toHaveLength(8);
  await dialogButton.click();
  await button("Delete").click();
  await stepOf("make test").waitFor({ state: "detached" });
  await isFocused(page.getByRole("main").getByRole("status"));
  expect((await storedObservations()).map(({ kind }) => kind)).not.toContain("error");
});

test("folders with the same name are reported", async () => {
  const notice = page.getByRole("alert").filter({ hasText: "Two folders have the name “ferry”" });
  await notice.filter({ hasText: join(folders, "work", "ferry") }).waitFor();
  await device.navigate(`/projects/${await projectId("chores")}/agents`);
  await counts(50);
  expect(await notice.count()).toBe(0);
});

test("more steps load on request", async () => {
  await button("Show more").click();
  await counts(60);
  const heads = await steps().locator("span[dir=auto]").allInnerTexts();
  expect(new Set(heads).size).toBe(60);
  expect(heads.at(-1)).toBe("make page-0");
  expect(await button("Show more").count()).toBe(0);
});

test("the agent activity page explains empty and offline states", async () => {
  await device.navigate("/projects/p-flat/agents");
  await page.getByText("No agent has worked in this project yet.").waitFor();
  await expectFit(page);
  await device.setOffline(true);
  await device.navigate(`/projects/${ferry}/agents`);
  await page
    .getByText("Agent activity is stored on the server, which is not responding.", { exact: false })
    .waitFor();
  await expectFit(page);
  await device.navigate("/projects");
  await page.getByText("The server is not responding, so agent activity is not shown.").waitFor();
  await expectFit(page);
  await device.navigate(`/projects/${ferry}/agents`);
  await page
    .getByText("Agent activity is stored on the server, which is not responding.", { exact: false })
    .waitFor();
  await device.setOffline(false);
  await skipRetryDelay();
  await counts(7);
});
