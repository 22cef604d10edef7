/** Build a newer version of the app, with a migration of facts, and serve it to a page. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import type { Page } from "playwright-core";
import { build, mergeConfig, type Plugin } from "vite";
import config from "../../web/vite.config.ts";
import type { FaultProxy } from "../sync/faultProxy.ts";

/** The migration fails while a browser cache with this name exists. */
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

/** Generous, because other tests run at the same time. */
const BUILD_MS = 400_000;

let folder: string;

/** Build the newer app before the tests of a file. */
export function withNewerApp(): void {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "vademecum-newer-"));
    const changes = {
      configFile: false as const,
      plugins: [raised],
      worker: { plugins: () => [raised] },
      build: { outDir: folder, minify: false, reportCompressedSize: false },
    };
    vi.stubEnv("NODE_ENV", "production"); // otherwise this would be React's development build
    await build(mergeConfig(config, changes));
    vi.unstubAllEnvs();
  }, BUILD_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
}

/** Serve the newer app through the proxy. */
export function release(proxy: FaultProxy): void {
  proxy.forge = (path) => {
    const { pathname } = new URL(path, proxy.url);
    const file = join(folder, pathname === "/" ? "index.html" : pathname);
    if (!existsSync(file)) return undefined;
    return { type: TYPES[extname(file)] ?? "application/octet-stream", body: readFileSync(file) };
  };
}

/** Serve the newer app to a page, from its next load on. */
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
