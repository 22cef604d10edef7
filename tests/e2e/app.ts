/** Drive the app as users run it, with a real server and a separate Chromium profile for each device. */

import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import type { State } from "../../web/src/backend/api/accountApi.ts";
import type { Collections, VectorEmbeddingDoc } from "../../web/src/core/schema/rows.ts";
import { Harness, type NewUser, type Settings } from "../sync/harness.ts";
import { violations } from "./accessibility.ts";
import { Browser, SMALL_MODEL, type BrowserOptions } from "./browser.ts";

export let harness: Harness;

/** A storage quota in bytes that is enough for the tests, but less than `fillUp` in storage_full.test.ts writes. */
export const ROOMY = 2 ** 23;

/** Use a server with the small model, which is shared with other test files of the same settings. */
export function withServer(settings: Settings = {}): void {
  useServer(() => Harness.shared({ VADEMECUM_MODELS: SMALL_MODEL, ...settings }));
}

/** Use a separate server, for tests that stop it or make it fail. */
export function withOwnServer(settings: Settings = {}): void {
  useServer(() => Harness.start({ VADEMECUM_MODELS: SMALL_MODEL, ...settings }));
}

function useServer(start: () => Promise<Harness>): void {
  beforeAll(async () => void (harness = await start()));
  afterEach(async ({ task }) => {
    if (task.result?.state !== "fail") return;
    harness.printLog();
    await Promise.all([...devices].map((device) => device.logState()));
  });
  afterAll(async () => {
    await Promise.all([...devices].map((device) => device.stop()));
    await harness?.stop();
  });
}

const devices = new Set<Device>();

/** A device of a user: a browser profile with the app open and signed in. */
export class Device {
  private constructor(
    readonly browser: Browser,
    public page: Page,
    readonly user: NewUser,
  ) {}

  static async of(user: NewUser, options: BrowserOptions = {}): Promise<Device> {
    const browser = await Browser.start(options);
    const link = await harness.control<{ link: string }>("link", { userId: user.userId });
    const origin = options.origin ?? harness.url;
    const isMapped = new URL(origin).hostname.endsWith(".localhost"); // only this browser resolves the host
    await (isMapped ? browser.signInOnPage(origin + link.link) : browser.signIn(origin + link.link));
    const device = new Device(browser, await browser.page(origin, options.beforeOpen), user);
    await device.composer.waitFor();
    devices.add(device);
    if (!options.asksForModel) await device.call("downloadModel");
    return device;
  }

  /** The text box for questions. It appears when the app has opened. */
  get composer(): Locator {
    return composerOf(this.page);
  }

  get statusLine(): Locator {
    return this.page.locator("[data-status]");
  }

  /** Wait until the service worker is ready, so that the app opens without a network. */
  async installed(): Promise<void> {
    await this.page.evaluate(async () => {
      await navigator.serviceWorker.ready;
    });
  }

  async setOffline(isOffline: boolean): Promise<void> {
    await this.browser.setOffline(isOffline);
  }

  /** Open another page of the app on this device. */
  async open(path: string): Promise<Page> {
    return this.browser.page(harness.url + path);
  }

  /** Show another page of the app without loading it. */
  async navigate(path: string): Promise<void> {
    await this.page.evaluate((path) => history.pushState(null, "", path), path);
  }

  clickLink(name: string): Promise<void> {
    return this.page.getByRole("link", { name }).first().click();
  }

  clickButton(name: string): Promise<void> {
    return this.page.getByRole("button", { name, exact: true }).click();
  }

  /** Call a method of the app's API. */
  call<T>(method: string, ...args: unknown[]): Promise<T> {
    return this.page.evaluate(([method, args]) => (window as any).vademecum[method](...args), [
      method,
      args,
    ] as const);
  }

  /** Ask a question once the previous answer is finished. Until then, Enter sends nothing. */
  async ask(question: string): Promise<void> {
    await this.composer.fill(question);
    await this.page.getByRole("button", { name: "Send", exact: true }).waitFor();
    await this.composer.press("Enter");
  }

  /** Add a file to the chat. */
  async drop(name: string, content: Buffer | string, mimeType = "application/octet-stream"): Promise<void> {
    const buffer = typeof content === "string" ? Buffer.from(content) : content;
    await this.page.locator("input[type=file]").first().setInputFiles({ name, mimeType, buffer });
  }

  /** Return rows of this device. */
  async rows<Name extends keyof Collections>(name: Name, query: object = {}): Promise<Collections[Name][]> {
    return this.page.evaluate(([name, query]) => (window as any).vademecum.rows(name, query), [
      name,
      query,
    ] as const);
  }

  /** Wait until the model is on the device. */
  async modelReady(): Promise<void> {
    await this.until(async () => (await this.state()).model.kind === "ready");
  }

  /** Wait until at least this number of documents are on the device with all their vectors. */
  async embedded(documents: number): Promise<void> {
    await this.until(async () => {
      const ready = (await this.rows("documents")).filter(({ status }) => status === "ready");
      // Collections sync in parallel: a document may arrive before its blocks.
      const all = ready.reduce((sum, { chunkCount }) => sum + chunkCount, 0);
      return ready.length >= documents && (await this.#vectors()) >= all;
    });
  }

  /** Count the chunks with a vector. This runs in the page, because transferring the vectors is slow. */
  #vectors(): Promise<number> {
    return this.page.evaluate(async () => {
      const blocks = (await window.vademecum.rows("vectorEmbeddings")) as VectorEmbeddingDoc[];
      return blocks.reduce((sum, block) => sum + (block.embedding ? block.chunks.length : 0), 0);
    });
  }

  /** Wait until at least this number of files are stored on the device, as documents or waiting to be parsed. */
  async hasFiles(files: number): Promise<void> {
    await this.until(
      async () => (await this.rows("documents")).length + (await this.waitingFiles()) >= files,
    );
  }

  /** Count the files that are not documents yet. */
  async waitingFiles(): Promise<number> {
    return this.page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const opening = indexedDB.open("vademecum");
          opening.onsuccess = () => {
            const counting = opening.result.transaction("files").objectStore("files").count();
            counting.onsuccess = () => (opening.result.close(), resolve(counting.result));
          };
        }),
    );
  }

  /** Close the page abruptly and open it again. */
  async reopen(): Promise<void> {
    const address = this.page.url();
    await this.page.close();
    this.page = await this.browser.page(address);
    await this.composer.waitFor();
  }

  /** Reload the page. If the app itself loads a page at the same moment, which aborts the reload, reload again. */
  async reload(): Promise<void> {
    await this.page.reload().catch((error: unknown) => {
      if (!String(error).includes("ERR_ABORTED")) throw error;
      return this.page.reload();
    });
  }

  /** Log what the page shows and the state of the app, after a failed test. */
  async logState(): Promise<void> {
    const shown = await this.page.locator("body").innerText({ timeout: 5_000 });
    console.error(shown, JSON.stringify(await this.state()), this.browser.consoleErrors);
  }

  async collectGarbage(): Promise<void> {
    const session = await this.page.context().newCDPSession(this.page);
    await session.send("HeapProfiler.collectGarbage");
    await session.detach();
  }

  async state(): Promise<State> {
    return this.page.evaluate(() => (window as any).vademecum.state());
  }

  async until(condition: () => Promise<boolean>): Promise<void> {
    await vi.waitFor(async () => expect(await condition()).toBe(true), { timeout: 150_000, interval: 200 });
  }

  /** Wait until the sync is live and no local change waits for it. */
  async untilSynced(): Promise<void> {
    await this.until(async () => {
      const { kind, waiting } = (await this.state()).sync;
      return kind === "live" && waiting === 0;
    });
  }

  /** Wait until the sync has a state: "live", "offline" and so on. */
  async untilSyncIs(kind: string): Promise<void> {
    await this.until(async () => (await this.state()).sync.kind === kind);
  }

  /** Wait until the status line shows a status: "synced", "offline" and so on. */
  async untilStatusIs(status: string): Promise<void> {
    await this.page.locator(`[data-status="${status}"]`).waitFor();
  }

  /** Expect no violation of axe in either theme. */
  async expectAccessible(): Promise<void> {
    expect(await violations(this.page, ["light", "dark"])).toEqual([]);
  }

  async stop(): Promise<void> {
    devices.delete(this);
    await this.browser.stop();
  }
}

/** Return a file of the test library. */
export function library(name: string): Buffer {
  return readFileSync(`.cache/library/${name}`);
}

export function composerOf(page: Page): Locator {
  return page.getByRole("textbox", { name: "Ask about your documents" });
}
