/** Qualities of the whole app: accessibility, size, memory use, and requests only to the server. */

import { gzipSync } from "node:zlib";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:net";
import lighthouse from "lighthouse";
import type { EpisodeDoc } from "../../web/src/core/schema/rows.ts";
import { violations } from "./accessibility.ts";
import { Device, harness, withServer } from "./app.ts";

withServer();

const LEASE = "The rent is 940 euros a month, due on the third working day. Notice is three months.";
/** The number of questions, and the allowed growth of the heap, which varies by 0.05%. */
const [QUESTIONS, MOST] = process.env["SOAK"] ? [1000, 1.02] : [20, 1.005];
const PATIENCE_MS = process.env["SOAK"] ? 3_600_000 : 180_000;

/** Settings without timing, so that Lighthouse does not wait for ten seconds. */
const QUIET = {
  ...{ throttlingMethod: "provided" as const, skipAboutBlank: true, pauseAfterFcpMs: 0 },
  ...{ pauseAfterLoadMs: 1_000, networkQuietThresholdMs: 500, cpuQuietThresholdMs: 500 },
};

let device: Device;
let port: number;

beforeAll(async () => {
  port = await freePort();
  device = await Device.of(await harness.user(), {
    // Disable compilation, because compiled code is on the heap, too.
    processArguments: [`--remote-debugging-port=${port}`, "--js-flags=--no-opt --no-sparkplug --no-maglev"],
    installs: true,
  });
  await device.installed();
  await device.drop("lease.txt", LEASE);
  await device.modelReady();
  await device.embedded(1);
  await device.ask("When is the rent due?");
  await device.page.getByText("third working day").first().waitFor();
});

const PLACES = ["Documents", "Memory", "Settings"];

test("axe finds no violations on any page", async () => {
  const conversation = device.page.url();
  await device.expectAccessible();
  for (const place of PLACES) {
    await device.navigate(`/${place.toLowerCase()}`);
    await device.page.getByRole("main").getByRole("heading", { name: place, exact: true }).waitFor();
    expect(await violations(device.page, ["light", "dark"]), place).toEqual([]);
  }
  await device.navigate(new URL(conversation).pathname);
  await device.page.getByText("third working day").first().waitFor();
});

test("Lighthouse finds no accessibility problems", async () => {
  const result = await lighthouse(device.page.url(), {
    port,
    onlyCategories: ["accessibility"],
    disableStorageReset: true,
    disableFullPageScreenshot: true,
    ...QUIET,
    logLevel: "error",
  });
  const { score, auditRefs } = result!.lhr.categories["accessibility"]!;
  const failed = auditRefs.map(({ id }) => result!.lhr.audits[id]!).filter((audit) => audit.score === 0);
  expect(failed.map(({ id }) => id)).toEqual([]);
  expect(score).toBe(1);
});

test("the first load is at most 250 kB", async () => {
  const page = readFileSync("server/vademecum/web/index.html", "utf8");
  const scripts = [...page.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/gu)].map(([, name]) => name!);
  expect(scripts.length).toBeGreaterThan(0);
  const packed = (name: string) =>
    gzipSync(readFileSync(`server/vademecum/web/${name}`), { level: 9 }).length;
  const own = scripts.map(packed).reduce((sum, size) => sum + size, 0);
  const worker = readdirSync("server/vademecum/web/assets").find((name) =>
    /^backendWorker-.*\.js$/u.test(name),
  )!;
  const workerSize = packed(`assets/${worker}`);
  console.log(`page ${own} bytes, its worker ${workerSize}`);
  expect(own + workerSize).toBeLessThanOrEqual(250_000);
});

test(
  `${QUESTIONS} questions leak no memory`,
  async () => {
    const heap = async () => {
      const session = await device.page.context().newCDPSession(device.page);
      await session.send("HeapProfiler.collectGarbage");
      const { usedSize } = await session.send("Runtime.getHeapUsage");
      await session.detach();
      return usedSize;
    };
    const ask = (times: number) =>
      device.page.evaluate(
        async ([times, sessionId]) => {
          for (let n = 0; n < times; n++) {
            const id = await window.vademecum.ask(sessionId, `When is the rent due, the ${n}th time?`);
            while (true) {
              const [turn] = await window.vademecum.rows("episodes", { selector: { id } });
              if ((turn as EpisodeDoc).status === "done") break;
              await new Promise((resolve) => setTimeout(resolve, 60)); // polling takes time, too
            }
            await window.vademecum.deleteRow("episodes", id);
          }
        },
        [times, device.page.url().split("/").at(-1)!] as const,
      );
    await ask(20);
    const growth: number[] = [];
    // Lazily loaded code grows the heap once; a leak grows it every time.
    for (let tries = 0; tries < 3 && !(Math.min(...growth) < MOST); tries++) {
      const before = await heap();
      await ask(QUESTIONS);
      growth.push((await heap()) / before);
    }
    expect(Math.min(...growth), growth.join(" ")).toBeLessThan(MOST);
  },
  PATIENCE_MS,
);

test("the app sends requests only to the server", () => {
  const foreign = device.browser.requests.filter(
    (url) => !url.startsWith(harness.url) && !/^(data|blob|chrome|chrome-extension|about):/u.test(url),
  );
  expect(device.browser.requests.length).toBeGreaterThan(10);
  expect(foreign).toEqual([]);
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
