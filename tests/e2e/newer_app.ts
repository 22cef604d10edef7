/** A newer version of the app, in which facts have another form: a page gets it in place of what the server has. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import type { Page } from "playwright-core";
import { build, mergeConfig, type Plugin } from "vite";
import config from "../../web/vite.config.ts";
import type { Gate } from "../sync/gate.ts";

/** A migration that fails for as long as the page has a cache of this name. */
export const FAILS = "fails";
const MIGRATIONS = `const green = async (row) => {
  if (await caches.has("${FAILS}")) throw new Error("no green today");
  return { ...row, shade: "green" };
};
export const migrations = { facts: { 1: green } };`;

const raised: Plugin = {
  name: "raised",
  enforce: "pre",
  transform(code, id) {
    if (id.endsWith("/storage/migrations.ts")) return MIGRATIONS;
    if (!id.endsWith("/schemas/facts.v0.json")) return null;
    const schema = JSON.parse(code);
    schema.properties.shade = { type: "string" };
    return JSON.stringify({ ...schema, version: 1 });
  },
};

const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
};

/** Both cores may be busy with other tests. */
const BUILD_MS = 400_000;

let folder: string;

/** For a test file: it is built once. */
export function withNewerApp(): void {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "vademecum-newer-"));
    const changes = {
      configFile: false as const,
      plugins: [raised],
      worker: { plugins: () => [raised] },
      build: { outDir: folder, minify: false, reportCompressedSize: false },
    };
    vi.stubEnv("NODE_ENV", "production"); // or it were React's own for those who develop
    await build(mergeConfig(config, changes));
    vi.unstubAllEnvs();
  }, BUILD_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
}

/** From now on the server behind the gate has the newer app. */
export function release(gate: Gate): void {
  gate.forges = (path) => {
    const { pathname } = new URL(path, gate.url);
    const file = join(folder, pathname === "/" ? "index.html" : pathname);
    if (!existsSync(file)) return undefined;
    return { type: TYPES[extname(file)] ?? "application/octet-stream", body: readFileSync(file) };
  };
}

/** From its next load on the page has the newer app. */
export async function renew(page: Page): Promise<void> {
  await page.route("**/*", (route) => {
    const { pathname } = new URL(route.request().url());
    const path = join(folder, pathname);
    if (pathname !== "/" && existsSync(path)) return route.fulfill({ path });
    if (route.request().resourceType() === "document")
      return route.fulfill({ path: join(folder, "index.html") });
    return route.fallback();
  });
}
