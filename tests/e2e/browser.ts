/** Chromium, and the model of the server under test. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium, type Browser as Chromium, type BrowserContext, type Page } from "playwright-core";
import type { Manifest } from "../../web/src/embedder/embedder.ts";
import { Harness, type NewUser } from "../sync/harness.ts";

// Without these, Chromium sends requests of its own, and some tests check that there are none.
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** The folder of the real model. */
export const MODELS = resolve(process.env["VADEMECUM_TEST_MODELS"] ?? ".cache/models");
/** The folder of a tiny model with meaningless vectors. */
export const SMALL_MODEL = process.env["VADEMECUM_SMALL_MODEL"]!;

const CONTEXT = { timezoneId: "UTC" };

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

/** One Chromium for all devices of a test process, because starting it takes seconds. Its contexts share nothing. */
const perProcess = globalThis as { chromium?: Promise<Chromium> };

function sharedChromium(): Promise<Chromium> {
  return (perProcess.chromium = runningOrNew(perProcess.chromium));
}

async function runningOrNew(chromiumProcess: Promise<Chromium> | undefined): Promise<Chromium> {
  const running = await chromiumProcess?.catch(() => undefined);
  return running?.isConnected()
    ? running
    : chromium.launch({ executablePath: executable(), args: ARGUMENTS });
}

const executable = () => execFileSync("tests/e2e/chromium.sh", { encoding: "utf8" }).trim();

export interface BrowserOptions {
  /** Start a separate process with these arguments and a profile on disk. */
  processArguments?: readonly string[];
  /** The profile of that process. Default: a new one. */
  profile?: string;
  /** Whether the service worker may install the app, which takes seconds. */
  installs?: boolean;
  locale?: string;
  /** Emulate a small touch screen. */
  phone?: boolean;
  /** The origin of the app. Default: that of the server. */
  origin?: string;
  /** Let the app ask before it downloads the search model. By default, the test agrees at once. */
  asksForModel?: boolean;
  /** Called with the first page before it loads the app. */
  beforeOpen?: (page: Page) => Promise<void>;
}

export class Browser {
  /** The addresses of all requests of pages, workers and threads. */
  readonly requests: string[] = [];
  /** Warnings and errors in the console. */
  readonly consoleErrors: string[] = [];

  private constructor(
    private readonly context: BrowserContext,
    readonly profile: string | undefined,
  ) {
    context.setDefaultTimeout(90_000); // generous, because other tests run at the same time
    context.on("request", (request) => this.requests.push(request.url()));
    context.on("console", (message) => {
      if (["warning", "error"].includes(message.type()) && !isAdvertisement(message.text())) {
        this.consoleErrors.push(message.text());
      }
    });
    context.on("weberror", (error) => this.consoleErrors.push(String(error.error())));
  }

  static async start({
    processArguments,
    profile,
    locale = "en-US",
    phone = false,
    installs = false,
  }: BrowserOptions = {}): Promise<Browser> {
    const context = { ...CONTEXT, locale, ...(phone ? PHONE : {}) };
    const browser = await Browser.launch(context, processArguments, profile);
    if (!installs) {
      await browser.context.addInitScript(() => {
        if ("ServiceWorkerContainer" in self) {
          ServiceWorkerContainer.prototype.register = () => new Promise(() => {});
        }
      });
    }
    return browser;
  }

  private static async launch(
    contextOptions: object,
    processArguments?: readonly string[],
    storedProfile?: string,
  ): Promise<Browser> {
    if (!processArguments) {
      return new Browser(await (await sharedChromium()).newContext(contextOptions), undefined);
    }
    const profile = storedProfile ?? mkdtempSync(join(tmpdir(), "vademecum-chromium-"));
    const options = {
      ...contextOptions,
      executablePath: executable(),
      args: [...ARGUMENTS, ...processArguments],
    };
    return new Browser(await chromium.launchPersistentContext(profile, options), profile);
  }

  async page(url: string, beforeOpen?: BrowserOptions["beforeOpen"]): Promise<Page> {
    const page = await this.context.newPage();
    await beforeOpen?.(page);
    await page.goto(url);
    return page;
  }

  /** Use a sign-in link on its page. This also works for a host that only the browser resolves. */
  async signInOnPage(link: string): Promise<void> {
    const page = await this.page(link);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(new URL("/", link).href);
    await page.close();
  }

  /** Use a sign-in link with a request that stores the cookie in the browser. */
  async signIn(link: string): Promise<void> {
    const { origin, searchParams } = new URL(link);
    const form = { link: searchParams.get("link")! };
    const response = await this.context.request.post(`${origin}/v1/sign-in/link`, { form, maxRedirects: 0 });
    expect(response.status()).toBe(303);
  }

  /** Disconnect all pages and workers from the network. */
  async setOffline(isOffline: boolean): Promise<void> {
    await this.context.setOffline(isOffline);
  }

  /** Close the browser. This writes all of its data to the disk. */
  async close(): Promise<void> {
    await this.context.close();
  }

  async stop(): Promise<void> {
    await this.close();
    if (this.profile) rmSync(this.profile, { recursive: true, force: true });
  }
}

export let browser: Browser;
export let harness: Harness;
export let user: NewUser;

/** Use one browser and one user. With `models`, use a separate server with the models of this folder. */
export function withBrowser(models?: string): void {
  beforeAll(async () => {
    harness = await (models
      ? Harness.start({ VADEMECUM_MODELS: models })
      : Harness.shared({ VADEMECUM_MODELS: MODELS }));
    user = await harness.user();
    browser = await Browser.start();
  });
  afterEach(({ task }) => {
    if (task.result?.state === "fail") harness.printLog();
  });
  afterAll(async () => {
    await browser?.stop();
    await harness?.stop();
  });
}

/** Return the manifest of the server's model. */
export async function currentModel(): Promise<Manifest & { id: string }> {
  const { current, models } = await harness.request<{
    current: string | null;
    models: (Manifest & { id: string })[];
  }>(user, "/v1/models");
  const model = models.find(({ hash }) => hash === current);
  if (!model) throw new Error("No model is installed: `make install` brings one.");
  return model;
}

function isAdvertisement(text: string): boolean {
  return text.includes("RxDB Open Core RxStorage");
}
