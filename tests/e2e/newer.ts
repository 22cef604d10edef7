/** A newer version of the app, in which facts have another form: a page gets it in place of what the server has. */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { build, mergeConfig, type Plugin } from "vite";
import config from "../../web/vite.config.ts";

const MIGRATIONS = "export const migrations = { facts: { 1: (row) => ({ ...row, shade: 'green' }) } };";

const raised: Plugin = {
  name: "raised",
  enforce: "pre",
  transform(code, id) {
    if (id.endsWith("/engines/records/migrations.ts")) return MIGRATIONS;
    if (!id.endsWith("/schemas/facts.v0.json")) return null;
    const schema = JSON.parse(code);
    schema.properties.shade = { type: "string" };
    return JSON.stringify({ ...schema, version: 1 });
  },
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
