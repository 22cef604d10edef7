/** Chromium, driven by a test, and the model that the server under test has. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium, type Browser as Chromium, type BrowserContext, type Page } from "playwright-core";
import type { Manifest } from "../../web/src/embedder/embedder.ts";
import { Harness, type NewUser } from "../sync/harness.ts";

// Without these it calls home by itself, and the tests count who is called.
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
/** The model that people have. */
export const MODELS = resolve(process.env["VADEMECUM_TEST_MODELS"] ?? ".cache/models");
/** One that makes vectors of no meaning, at once. */
export const SMALL_MODEL = process.env["VADEMECUM_SMALL_MODEL"]!;

/** Where its clock is read: where the tests' dates are written. */
const PLACE = { timezoneId: "UTC" };

/** As a hand holds it: touched, and no pointer hovers. */
const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

/** For all devices of a process, which share nothing in it: to start one takes seconds. It ends with the process. */
const inProcess = globalThis as { chromium?: Promise<Chromium> };

function shared(): Promise<Chromium> {
  return (inProcess.chromium = alive(inProcess.chromium));
}

async function alive(before: Promise<Chromium> | undefined): Promise<Chromium> {
  const running = await before?.catch(() => undefined);
  return running?.isConnected()
    ? running
    : chromium.launch({ executablePath: executable(), args: ARGUMENTS });
}

const executable = () => execFileSync("tests/e2e/chromium.sh", { encoding: "utf8" }).trim();

export interface Ways {
  /** It is a process of its own with these arguments, or none, and a profile on the disk. */
  own?: readonly string[];
  /** The profile of that process, if not a new one. */
  profile?: string;
  /** The app may be kept on the device. To put it there takes seconds of both cores, so only tests that need it do. */
  installs?: boolean;
  /** The language of the browser, if not English. */
  locale?: string;
  /** It is small, and touched. */
  phone?: boolean;
  /** Where it finds the app, if not at the server itself. */
  at?: string;
  /** What is done with the first page before it goes anywhere. */
  before?: (page: Page) => Promise<void>;
}

export class Browser {
  /** Every request of every page, worker and thread. */
  readonly requests: string[] = [];
  /** What pages wrote to the console as a warning or an error. */
  readonly consoleErrors: string[] = [];

  private constructor(
    private readonly context: BrowserContext,
    readonly profile: string | undefined,
  ) {
    context.setDefaultTimeout(90_000); // two cores, and other tests on them
    context.on("request", (request) => this.requests.push(request.url()));
    context.on("console", (message) => {
      if (["warning", "error"].includes(message.type()) && !isAdvertisement(message.text())) {
        this.consoleErrors.push(message.text());
      }
    });
    context.on("weberror", (error) => this.consoleErrors.push(String(error.error())));
  }

  static async start({
    own,
    profile,
    locale = "en-US",
    phone = false,
    installs = false,
  }: Ways = {}): Promise<Browser> {
    const place = { ...PLACE, locale, ...(phone ? PHONE : {}) };
    const browser = await Browser.opened(place, own, profile);
    if (!installs) {
      await browser.context.addInitScript(() => {
        if ("ServiceWorkerContainer" in self) {
          ServiceWorkerContainer.prototype.register = () => new Promise(() => {});
        }
      });
    }
    return browser;
  }

  private static async opened(place: object, own?: readonly string[], stored?: string): Promise<Browser> {
    if (!own) {
      return new Browser(await (await shared()).newContext(place), undefined);
    }
    const profile = stored ?? mkdtempSync(join(tmpdir(), "vademecum-chromium-"));
    const options = { ...place, executablePath: executable(), args: [...ARGUMENTS, ...own] };
    return new Browser(await chromium.launchPersistentContext(profile, options), profile);
  }

  async page(url: string, before?: Ways["before"]): Promise<Page> {
    const page = await this.context.newPage();
    await before?.(page);
    await page.goto(url);
    return page;
  }

  /** Use a sign-in link up on its page: the only way where the browser alone resolves the host. */
  async signInOnPage(link: string): Promise<void> {
    const page = await this.page(link);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(new URL("/", link).href);
    await page.close();
  }

  /** Uses a sign-in link up, as the button on its page does: the cookie is the browser's. */
  async signIn(link: string): Promise<void> {
    const { origin, searchParams } = new URL(link);
    const form = { link: searchParams.get("link")! };
    const answer = await this.context.request.post(`${origin}/v1/sign-in/link`, { form, maxRedirects: 0 });
    expect(answer.status()).toBe(303);
  }

  /** Cuts the network of every page and worker, as in a tunnel. */
  async offline(gone: boolean): Promise<void> {
    await this.context.setOffline(gone);
  }

  /** What it has is all on the disk then. */
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

/** For a test file: a server that others use, too, or its own with the models of a folder; one browser, one user. */
export function withBrowser(models?: string): void {
  beforeAll(async () => {
    harness = await (models
      ? Harness.start({ VADEMECUM_MODELS: models })
      : Harness.shared({ VADEMECUM_MODELS: MODELS }));
    user = await harness.user();
    browser = await Browser.start();
  });
  afterEach(({ task }) => {
    if (task.result?.state === "fail") harness.confess();
  });
  afterAll(async () => {
    await browser?.stop();
    await harness?.stop();
  });
}

/** The manifest of the server's model, as the app gets it. */
export async function currentModel(): Promise<Manifest & { id: string }> {
  const { current, models } = await harness.call<{
    current: string | null;
    models: (Manifest & { id: string })[];
  }>(user, "/v1/models");
  const model = models.find(({ hash }) => hash === current);
  if (!model) throw new Error("No model is installed: `make install` brings one.");
  return model;
}

/** RxDB's own, once a page. */
function isAdvertisement(text: string): boolean {
  return text.includes("RxDB Open Core RxStorage");
}
