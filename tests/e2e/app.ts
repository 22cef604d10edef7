/** The app as people have it: a real server, and a profile in Chromium for each device. */

import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import type { State } from "../../web/src/backend/api/accountApi.ts";
import type { Collections, VectorEmbeddingDoc } from "../../web/src/core/schema/rows.ts";
import { Harness, type NewUser, type Settings } from "../sync/harness.ts";
import { Browser, SMALL_MODEL, type Ways } from "./browser.ts";

export let harness: Harness;

/** For a test file: a server with the small model, or with these settings, that other files use, too. */
export function withServer(settings: Settings = {}): void {
  withOne(() => Harness.shared({ VADEMECUM_MODELS: SMALL_MODEL, ...settings }));
}

/** For a test file that stops its server or makes it fail, or has settings like no other. */
export function withOwnServer(settings: Settings = {}): void {
  withOne(() => Harness.start({ VADEMECUM_MODELS: SMALL_MODEL, ...settings }));
}

function withOne(server: () => Promise<Harness>): void {
  beforeAll(async () => void (harness = await server()));
  afterEach(async ({ task }) => {
    if (task.result?.state !== "fail") return;
    harness.confess();
    await Promise.all([...devices].map((device) => device.confess()));
  });
  afterAll(async () => {
    await Promise.all([...devices].map((device) => device.stop()));
    await harness?.stop();
  });
}

const devices = new Set<Device>();

/** A phone or a laptop of one person: a browser profile of its own, with the app open and signed in. */
export class Device {
  private constructor(
    readonly browser: Browser,
    public page: Page,
    readonly user: NewUser,
  ) {}

  static async of(user: NewUser, ways?: Ways): Promise<Device> {
    const browser = await Browser.start(ways);
    const link = await harness.ask<{ link: string }>("link", { userId: user.userId });
    const at = ways?.at ?? harness.url;
    const isMapped = new URL(at).hostname.endsWith(".localhost"); // to the server, by this browser alone
    await (isMapped ? browser.signInOnPage(at + link.link) : browser.signIn(at + link.link));
    const page = await browser.page(at, ways?.before);
    await page.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
    const device = new Device(browser, page, user);
    devices.add(device);
    return device;
  }

  /** Waits until the app is kept on a device that installs it: from then on it opens without a network. */
  async installed(): Promise<void> {
    await this.page.evaluate(async () => {
      await navigator.serviceWorker.ready;
    });
  }

  async offline(gone: boolean): Promise<void> {
    await this.browser.offline(gone);
  }

  /** Another page of the app on this device. */
  async open(path: string): Promise<Page> {
    return this.browser.page(harness.url + path);
  }

  async ask(question: string): Promise<void> {
    const box = this.page.getByRole("textbox", { name: "Ask about your documents" });
    await box.fill(question);
    await box.press("Enter");
  }

  /** As if dropped on the conversation: a file of this name with this content. */
  async drop(name: string, content: Buffer | string, mimeType = "application/octet-stream"): Promise<void> {
    const buffer = typeof content === "string" ? Buffer.from(content) : content;
    await this.page.locator("input[type=file]").first().setInputFiles({ name, mimeType, buffer });
  }

  /** Rows as this device has them. */
  async rows<Name extends keyof Collections>(name: Name, query: object = {}): Promise<Collections[Name][]> {
    return this.page.evaluate(([name, query]) => (window as any).vademecum.rows(name, query), [
      name,
      query,
    ] as const);
  }

  /** The model is on the device and runs. */
  async modelReady(): Promise<void> {
    await this.until(async () => (await this.state()).model.kind === "ready");
  }

  /** So many documents are on the device with all their vectors. */
  async embedded(documents: number): Promise<void> {
    await this.until(async () => {
      const ready = (await this.rows("documents")).filter(({ status }) => status === "ready");
      // Collections come one beside the other: a document may be here before its text.
      const all = ready.reduce((sum, { chunkCount }) => sum + chunkCount, 0);
      return ready.length >= documents && (await this.#vectors()) >= all;
    });
  }

  /** How many chunks have one: counted there, for to bring them all here is slow. */
  #vectors(): Promise<number> {
    return this.page.evaluate(async () => {
      const blocks = (await window.vademecum.rows("vectorEmbeddings")) as VectorEmbeddingDoc[];
      return blocks.reduce((sum, block) => sum + (block.embedding ? block.chunks.length : 0), 0);
    });
  }

  /** So many files are safe on the device: as documents, or waiting to be read. */
  async kept(files: number): Promise<void> {
    await this.until(
      async () => (await this.rows("documents")).length + (await this.waitingFiles()) >= files,
    );
  }

  /** Files that were chosen and are no documents yet. */
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

  /** Kills the page in the middle of whatever it does, and opens the app again where it was. */
  async reopen(): Promise<void> {
    const address = this.page.url();
    await this.page.close();
    this.page = await this.browser.page(address);
    await this.page.getByRole("textbox", { name: "Ask about your documents" }).waitFor();
  }

  /** What a person would have seen when a test failed, and what the app thought. */
  async confess(): Promise<void> {
    const shown = await this.page.locator("body").innerText({ timeout: 5_000 });
    console.error(shown, JSON.stringify(await this.state()), this.browser.consoleErrors);
  }

  /** What only a reference that is gone kept alive ends now. */
  async collectGarbage(): Promise<void> {
    const session = await this.page.context().newCDPSession(this.page);
    await session.send("HeapProfiler.collectGarbage");
    await session.detach();
  }

  async state(): Promise<State> {
    return this.page.evaluate(() => (window as any).vademecum.state());
  }

  async until(holds: () => Promise<boolean>): Promise<void> {
    await vi.waitFor(async () => expect(await holds()).toBe(true), { timeout: 150_000, interval: 200 });
  }

  async stop(): Promise<void> {
    devices.delete(this);
    await this.browser.stop();
  }
}

export function library(name: string): Buffer {
  return readFileSync(`.cache/library/${name}`);
}
