/** Projects and memories on two devices of a user, with a scripted assistant. */

import type { Page } from "playwright-core";
import { expectFit } from "./accessibility.ts";
import { Device, harness } from "./app.ts";
import { onServer } from "./accounts.ts";
import { emptyMemory, fillMemory, withProject } from "./sample_memory.ts";
import { withAssistant } from "./scripted_assistant.ts";
import type { NewUser } from "../sync/harness.ts";

const OVERVIEW = "The flat is given up in writing, three months ahead.";
withAssistant([
  { when: "How much notice", say: [OVERVIEW] },
  { when: "songs", say: ["No."], status: 500 },
]);

let ada: NewUser;
let device: Device;
let page: Page;
/** Another device of the same user. */
let other: Device;

beforeAll(async () => {
  ada = await harness.user();
  await withProject(ada);
  device = await Device.of(ada, { installs: true });
  page = device.page;
  page.setDefaultTimeout(60_000);
  await device.installed();
  await page.reload(); // now the service worker serves the app
  await device.until(async () => (await device.rows("relationships")).length === 6);
});

const button = (name: string | RegExp) => page.getByRole("button", { name });
const statement = (text: string) => page.locator("li[data-memory]").filter({ hasText: text });
const only = async <T>(rows: Promise<T[]>): Promise<T> => (await rows)[0]!;

test("a chat started offline in a new project stays in the project", async () => {
  await device.setOffline(true);
  await page.getByRole("link", { name: "Projects", exact: true }).click();
  await button("New project").click();
  await page.getByRole("textbox", { name: "Name" }).fill("Choir");
  await page.getByRole("textbox", { name: "Description" }).fill("Programmes, and who sings what.");
  await button("Create").click();
  await page.getByRole("heading", { name: "Choir" }).waitFor();
  await page.getByRole("link", { name: "New chat here" }).click();
  await device.ask("Who sings the solo?");
  const main = page.getByRole("main");
  await main.getByRole("link", { name: "Choir" }).waitFor();
  const project = await only(device.rows("projects", { selector: { name: "Choir" } }));
  const newSession = await only(device.rows("sessions", { selector: { title: "Who sings the solo?" } }));
  expect(newSession.projectId).toBe(project.id);
  await device.setOffline(false);
  await device.until(
    async () => (await onServer(ada, "sessions", newSession.id))?.["projectId"] === project.id,
  );
});

test("a chat moves between projects", async () => {
  const where = async () => (await onServer(ada, "sessions", "s-choir"))?.["projectId"];
  const choir = (await only(device.rows("projects", { selector: { name: "Choir" } }))).id;
  await button(/Rename, move or delete “Programme for May”/).click();
  await page
    .getByRole("combobox", { name: "Project of “Programme for May”" })
    .selectOption("Flat in Harbour Street");
  await device.until(async () => (await where()) === "p-flat");
  await device.navigate("/projects/p-flat");
  await button("Remove from project: Programme for May").click();
  await device.until(async () => (await where()) === undefined);
  await device.navigate(`/projects/${choir}`);
  await page.getByRole("combobox", { name: "Move a chat here" }).click();
  await page.getByRole("option", { name: "Programme for May" }).click();
  await page.getByRole("main").getByRole("link", { name: "Programme for May" }).waitFor();
  await device.until(async () => (await where()) === choir);
  await expectFit(page);
});

test("a project overview is written, or its error is shown", async () => {
  await button("Create overview").click();
  const failed = page.getByRole("alert").filter({ hasText: "The overview could not be written." });
  await failed.filter({ hasText: /assistant/iu }).waitFor();
  await device.navigate("/projects/p-flat");
  await button("Create overview").click();
  await page.getByText("three months ahead").waitFor();
  await expectFit(page);
});

test("a memory is pinned and an earlier version restored", async () => {
  await device.navigate("/memory/of-no-such-name"); // an unknown page shows the first one
  await statement("cooperative answers letters").getByText("Remembered 2 months ago, almost faded").waitFor();
  await statement("cooperative answers letters").getByRole("link", { name: "Notice and deposit" }).waitFor();
  await button("Pin: The cooperative answers letters, not mails.").click();
  await statement("cooperative answers letters").getByText("Pinned, does not fade").waitFor();
  const rent = statement("The rent is 940 euros");
  await rent.getByRole("button", { name: "1 earlier version" }).click();
  await expectFit(page);
  await button("Restore this version: The rent is 900 euros.").click();
  await device.until(async () => {
    const [old, later] = await Promise.all(["m-old", "m-rent"].map((id) => onServer(ada, "memories", id)));
    return old?.["supersedes"] === "m-rent" && later?.["supersededBy"] === "m-old" && !old["supersededBy"];
  });
  expect((await onServer(ada, "memories", "m-letters"))?.["pinned"]).toBe(true);
});

test("a memory is added, found, deleted and restored", async () => {
  await button("Add memory").click();
  await page.getByRole("textbox", { name: "What to remember" }).fill("The cellar key is at Bo's.");
  await page.getByRole("combobox", { name: "Where it applies" }).selectOption("In Flat in Harbour Street");
  await button("Save").click();
  await statement("The cellar key").waitFor();
  await page.getByRole("searchbox", { name: "Search memories" }).fill("CELLAR");
  await expect.poll(() => page.locator("li[data-memory]").count()).toBe(1);
  await page.getByRole("combobox", { name: "Filter by project" }).selectOption("In no project");
  await page.getByText("No memories match.").waitFor();
  await page.getByRole("combobox", { name: "Filter by project" }).selectOption("In Flat in Harbour Street");
  await button("Delete: The cellar key is at Bo's.").click();
  await statement("The cellar key").waitFor({ state: "detached" });
  await button("Undo").click();
  await statement("The cellar key").waitFor();
  expect(
    await device.rows("memories", { selector: { text: "The cellar key is at Bo's.", projectId: "p-flat" } }),
  ).toHaveLength(1);
});

test("a chat at its memory limit says so", async () => {
  const notice = page.getByText(
    "This chat has reached the limit of 50 memories, so no more are added from it.",
  );
  await device.navigate("/s/s-keys");
  await page.getByText("Four, one of them for the cellar.").waitFor();
  expect(await notice.count()).toBe(0);
  await fillMemory(ada, "s-keys", 50);
  await notice.waitFor();
  await emptyMemory(ada, "s-keys", 50);
  await notice.waitFor({ state: "detached" });
});

test("people and topics can be edited by keyboard", async () => {
  await device.navigate("/projects/p-flat/entities");
  await page.getByText("Bo Lind works for Harbour Housing Cooperative").first().waitFor();
  await expectFit(page);
  await button("Edit notes: Bo Lind").click();
  await page.getByRole("textbox", { name: "Notes about Bo Lind" }).fill("Has the spare keys.");
  await button("Save").click();
  await device.until(
    async () => (await onServer(ada, "entities", "x-bo"))?.["notes"] === "Has the spare keys.",
  );
  await page.getByText("Graph", { exact: true }).click();
  await button(/^Bo Lind, person, 1 connection$/u).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  expect(await button(/^Deposit, concept/u).getAttribute("aria-pressed")).toBe("true");
  await page.getByText("Three months' rent without heating.").waitFor();
  await expectFit(page);
  await button("Delete connection: Harbour Housing Cooperative holds Deposit").click();
  await button(/^Deposit, concept, 0 connections$/u).waitFor();
});

test("the timeline searches online and offline", async () => {
  await device.navigate("/memory/timeline");
  await page.getByRole("link", { name: "Which songs come after the pause?" }).waitFor();
  await page.getByRole("searchbox", { name: "Search messages" }).fill("deposit back");
  await page.getByText("Found by words and by meaning").waitFor();
  await expectFit(page);
  await page.getByRole("combobox", { name: "Filter by project" }).selectOption("In no project");
  await page.getByText("No messages match.").waitFor();
  await page.getByRole("combobox", { name: "Filter by project" }).selectOption("Everywhere");
  await device.setOffline(true);
  await page.getByRole("searchbox", { name: "Search messages" }).fill("much NOTICE");
  await page.getByText("1 message. Found on this device by matching words only, not by meaning.").waitFor();
  await device.setOffline(false);
  await page.setViewportSize({ width: 1280, height: 360 }); // so that the chat must scroll
  await page.getByRole("link", { name: "How much notice do I have to give?" }).click();
  await page.waitForURL("**/s/s-lease?turn=e-notice");
  const top = () => page.locator("#e-notice").evaluate((turn) => turn.getBoundingClientRect().top);
  await expect.poll(top).toBeLessThan(300);
  await expect.poll(top).toBeGreaterThanOrEqual(52);
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("a failed background task can be retried", async () => {
  const choir = (await only(device.rows("projects", { selector: { name: "Choir" } }))).id;
  await harness.request(ada, `/v1/projects/${choir}/summarize?later=true`, { method: "POST" });
  await device.navigate("/memory/background");
  await page.getByText("The administrator of this server has turned background tasks off").waitFor();
  await page.getByText("Summary: Choir").waitFor();
  await page.getByText(/Failed [2-9] times\./u).waitFor();
  await expectFit(page);
  let job: unknown;
  await page.context().route("**/retry", async (route) => {
    const response = await route.fetch();
    job = await response.json();
    await route.fulfill({ response });
  });
  await button("Retry: Choir").click();
  await expect.poll(() => job).toMatchObject({ state: "waiting", attempts: 0 }); // the number of attempts was reset
});

/** Delete a project with a choice for its chats. Return the id of the project and those of its chats. */
async function remove(name: string, choice: RegExp, verb: string): Promise<{ id: string; inside: string[] }> {
  const { id } = await only(device.rows("projects", { selector: { name } }));
  const inside = (await device.rows("sessions", { selector: { projectId: id } })).map((one) => one.id);
  await other.until(async () => {
    const synced = await other.rows("sessions", { selector: { projectId: id } });
    return synced.length === inside.length && synced.length > 0;
  });
  await device.navigate(`/projects/${id}`);
  await button(`Delete ${name}`).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("This deletes").waitFor();
  await dialog.getByRole("radio", { name: choice }).check();
  await device.expectAccessible();
  await dialog.getByRole("button", { name: verb, exact: true }).click();
  await page.waitForURL("**/projects");
  return { id, inside };
}

test("projects are deleted with or without chats", async () => {
  other = await Device.of(ada);
  const choir = await remove("Choir", /^Keep its/u, "Delete project");
  const flat = await remove("Flat in Harbour Street", /^Delete its/u, "Delete project and chats");
  await other.until(async () => (await other.rows("projects")).length === 0);
  const homes = async ({ inside }: typeof choir) =>
    (await other.rows("sessions", { selector: { id: { $in: inside } } })).map(
      (one) => one.projectId ?? "the pool",
    );
  await other.until(async () => (await homes(choir)).join() === "the pool,the pool");
  await other.until(async () => (await homes(flat)).length === 0);
  await other.until(async () =>
    (await other.rows("memories")).every(({ projectId }) => projectId === undefined),
  );
  expect((await other.rows("memories")).map(({ id }) => id)).toEqual(["m-short"]);
  await other.until(async () => (await other.rows("entities")).length === 0);
});
