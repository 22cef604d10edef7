/** People with rows on a real server, and what they do at a page of the app. */

import type { Page } from "playwright-core";
import type { NewUser } from "../sync/harness.ts";
import type { Draft } from "../../web/src/storage/draftDatabase.ts";
import { Device, harness } from "./app.ts";
import { violations } from "./accessibility.ts";
import type { Ways } from "./browser.ts";

export const PASSWORD = "a long enough password";
type Afterwards = "Keep the data on this device" | "Delete the data on this device";
export type Person = NewUser & { email: string };

export async function person(): Promise<Person> {
  const user = await harness.user("JIGGA", PASSWORD);
  const { email } = await harness.call<{ email: string }>(user, "/v1/me");
  return { ...user, email };
}

// -- their rows ----------------------------------------------------------------------------------------------

const T = "2026-01-01T00:00:00.000Z";
const common = (id: string) => ({ id, createdAt: T, updatedAt: T });
export const fact = (id: string, value: string) => ({
  ...common(id),
  key: `about.${id}`,
  value,
  sourceRemoved: false,
  confidence: 0.7,
  confirmed: false,
});
export const session = (id: string, title: string, more: object = {}) => ({
  ...common(id),
  title,
  mode: "analysis",
  ...more,
});

export const lease = (userId: string, id: string) => ({
  ...common(id),
  userId,
  originSessionId: "s-lease",
  activeSessions: ["s-lease"],
  accessCount: 1,
  lastAccessedAt: T,
  filename: "lease.txt",
  mimeType: "text/plain",
  size: 10,
  contentHash: "0".repeat(64),
  chunkCount: 1,
  status: "ready",
});

export const block = (documentId: string) => ({
  ...common(`${documentId}.0`),
  documentId,
  block: 0,
  model: "",
  dims: 0,
  chunks: [{ index: 0, start: 0, text: "The rent is due in May.", tokens: 7 }],
  embedding: null,
});

export async function push(user: NewUser, collection: string, ...rows: object[]): Promise<void> {
  const body = JSON.stringify(rows.map((newDocumentState) => ({ newDocumentState })));
  const refused = await harness.call(user, `/v1/sync/${collection}/0/push`, { method: "POST", body });
  expect(refused).toEqual([]);
}

export const onServer = async (user: NewUser, collection: string, id: string) =>
  (await harness.rows(user, collection)).find((row) => row["id"] === id);

/** Ada has two conversations, a document and two facts. */
export async function withRows(ada: Person): Promise<void> {
  await push(ada, "sessions", session("s-lease", "Lease of the flat"), session("s-pump", "Heat pump"));
  await push(ada, "facts", fact("f1", "canary of Ada"), fact("f2", "to be changed"));
  await push(ada, "documents", lease(ada.userId, "d1"));
  await push(ada, "vectorEmbeddings", block("d1"));
}

// -- at a page -----------------------------------------------------------------------------------------------

export class Visit {
  private constructor(
    readonly device: Device,
    public page: Page,
  ) {}

  /** A new device of theirs, once it has their rows. */
  static async of(user: Person, ways?: Ways): Promise<Visit> {
    const device = await Device.of(user, ways);
    device.page.setDefaultTimeout(60_000);
    const visit = new Visit(device, device.page);
    await device.until(async () => (await device.rows("vectorEmbeddings")).length === 1);
    await visit.said("synced");
    return visit;
  }

  /** Another tab of the same browser, with the app open. */
  async otherTab(): Promise<Page> {
    const tab = await this.device.open("/documents");
    await tab.locator("[data-said]").waitFor();
    await tab.evaluate(() => ((window as any).sameVisit = true));
    await this.page.bringToFront(); // one behind another is drawn once a second, and each click waits for that
    return tab;
  }

  /** The tab was not sent anywhere: it is the same visit, and still hears what is written in this one. */
  async stays(tab: Page): Promise<void> {
    const id = await this.ask<string>("addFact", "seen", "in both tabs");
    await tab.waitForFunction(async (id) => {
      const rows = await (window as any).vademecum?.rows("facts", { selector: { id } });
      return (window as any).sameVisit && rows?.length === 1;
    }, id);
  }

  /** A verb of the worker. */
  ask<T>(verb: string, ...given: unknown[]): Promise<T> {
    return this.page.evaluate(([verb, given]) => (window as any).vademecum[verb](...given), [
      verb,
      given,
    ] as const);
  }

  bringIn(zip: Uint8Array): Promise<{ added: number; existing: number; leftOut: number }> {
    return this.page.evaluate(
      (bytes) => (window as any).vademecum.importAccount(new Blob([new Uint8Array(bytes)])),
      [...zip],
    );
  }

  /** The values of the facts that are on the device. */
  async values(): Promise<string[]> {
    return (await this.device.rows("facts")).map(({ value }) => value).sort();
  }

  line() {
    return this.page.locator("[data-said]");
  }

  said(what: string) {
    return this.page.locator(`[data-said="${what}"]`).waitFor();
  }

  goTo(name: string) {
    return this.page.getByRole("link", { name }).click();
  }

  press(name: string) {
    return this.page.getByRole("button", { name, exact: true }).click();
  }

  async accessible(): Promise<void> {
    expect(await violations(this.page, ["light", "dark"])).toEqual([]);
  }

  async signIn({ email }: Person): Promise<void> {
    await this.page.getByLabel("Email").fill(email);
    await this.page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
    await this.press("Sign in");
    await this.line().waitFor();
  }

  async signOut(then: Afterwards): Promise<void> {
    await this.askToSignOut(then);
    await this.page.waitForURL("**/sign-in");
  }

  async askToSignOut(then: Afterwards): Promise<void> {
    await this.goTo("Settings");
    await this.press("Sign out");
    await this.page.getByRole("radio", { name: then }).check();
    await this.page.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
  }
}

/** The unsent texts of this device's account. */
export const drafts = (device: Device) =>
  device.page.evaluate(
    (userId) =>
      new Promise<Draft[]>((resolve, reject) => {
        const opening = indexedDB.open(`vademecum-drafts-${userId}`);
        opening.onsuccess = () => {
          const reading = opening.result.transaction("drafts").objectStore("drafts").getAll();
          reading.onsuccess = () => (opening.result.close(), resolve(reading.result));
          reading.onerror = () => reject(reading.error);
        };
      }),
    device.user.userId,
  );
