/** Accounts with a password and rows, and how their users sign in and out. */

import type { NewUser } from "../sync/harness.ts";
import type { Draft } from "../../web/src/storage/draftDatabase.ts";
import { Device, harness } from "./app.ts";
import type { BrowserOptions } from "./browser.ts";
import { NEW_DOCUMENT_FIELDS, NEW_SESSION_FIELDS, syncPath } from "../sync/wire.ts";

export const PASSWORD = "a long enough password";
type SignOutChoice = "Keep the data on this device" | "Delete the data on this device";
export type Person = NewUser & { email: string };

export async function person(): Promise<Person> {
  const user = await harness.user("JIGGA", PASSWORD);
  const { email } = await harness.request<{ email: string }>(user, "/v1/me");
  return { ...user, email };
}

const TIME = "2026-01-01T00:00:00.000Z";
const common = (id: string) => ({ id, createdAt: TIME, updatedAt: TIME });
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
  ...NEW_SESSION_FIELDS,
  ...more,
});

export const lease = (userId: string, id: string) => ({
  ...common(id),
  userId,
  originSessionId: "s-lease",
  activeSessions: ["s-lease"],
  accessCount: 1,
  lastAccessedAt: TIME,
  filename: "lease.txt",
  mimeType: "text/plain",
  size: 10,
  contentHash: "0".repeat(64),
  chunkCount: 1,
  status: "ready",
  ...NEW_DOCUMENT_FIELDS,
});

export const block = (documentId: string) => ({
  ...common(`${documentId}.0`),
  documentId,
  block: 0,
  textHash: "",
  model: "",
  dims: 0,
  chunks: [{ index: 0, start: 0, text: "The rent is due in May.", tokens: 7 }],
  embedding: null,
});

export async function push(user: NewUser, collection: string, ...rows: object[]): Promise<void> {
  const body = JSON.stringify(rows.map((newDocumentState) => ({ newDocumentState })));
  const rejected = await harness.request(user, `${syncPath(collection)}/push`, { method: "POST", body });
  expect(rejected).toEqual([]);
}

export const onServer = async (user: NewUser, collection: string, id: string) =>
  (await harness.rows(user, collection)).find((row) => row["id"] === id);

/** Store two chats, a document and two facts. */
export async function withRows(ada: Person): Promise<void> {
  await push(ada, "sessions", session("s-lease", "Lease of the flat"), session("s-pump", "Heat pump"));
  await push(ada, "facts", fact("f1", "canary of Ada"), fact("f2", "to be changed"));
  await push(ada, "documents", lease(ada.userId, "d1"));
  await push(ada, "vectorEmbeddings", block("d1"));
}

/** Return a new device of an account with rows, once it is synced. */
export async function syncedDevice(account: Person, options?: BrowserOptions): Promise<Device> {
  const device = await Device.of(account, options);
  device.page.setDefaultTimeout(60_000);
  await device.until(async () => (await device.rows("vectorEmbeddings")).length === 1);
  await device.untilStatusIs("synced");
  return device;
}

export async function signIn({ page }: Device, { email }: Person): Promise<void> {
  await page.getByLabel("Email").fill(email);
  await page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.locator("[data-status]").waitFor();
}

/** Choose what to do with the data on the device and confirm the sign-out. Return before it is complete. */
export async function startSignOut(device: Device, choice: SignOutChoice): Promise<void> {
  await device.clickLink("Settings");
  await device.clickButton("Sign out");
  await device.page.getByRole("radio", { name: choice }).check();
  await device.page.getByRole("dialog").getByRole("button", { name: "Sign out" }).click();
}

export async function signOut(device: Device, choice: SignOutChoice): Promise<void> {
  await startSignOut(device, choice);
  await device.page.waitForURL("**/sign-in");
}

export function importZip(
  { page }: Device,
  zip: Uint8Array,
): Promise<{ added: number; existing: number; leftOut: number }> {
  return page.evaluate(
    (bytes) => (window as any).vademecum.importAccount(new Blob([new Uint8Array(bytes)])),
    [...zip],
  );
}

export async function factValues(device: Device): Promise<string[]> {
  return (await device.rows("facts")).map(({ value }) => value).sort();
}

/** Return the drafts of this device's account. */
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
