/** Serve a page with the parsers and the sample files, with the server's Content Security Policy. */

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "vite";

export interface SampleFile {
  group: string;
  name: string;
  url: string;
  /** The result of the server's parser: parts and chunks, or an error code. */
  expected: {
    code?: string;
    mime_type?: string;
    page_count?: number | null;
    parts?: { text: string; page?: number | null; section?: string | null }[];
    chunks?: [start: number, text: string, page: number | null, section: string | null][];
  };
}

interface About {
  policy: string;
  messages: Record<string, string>;
  files: SampleFile[];
}

const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
};

export class Site {
  /** Whether responses have the Content Security Policy. */
  sendsPolicy = true;

  private constructor(
    private readonly folder: string,
    private readonly server: Server,
    readonly about: About,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<Site> {
    const folder = mkdtempSync(join(tmpdir(), "vademecum-files-"));
    execFileSync(".venv/bin/python", ["tests/e2e/files/make.py", folder]);
    await build({
      configFile: false,
      root: "tests/e2e/files",
      logLevel: "warn",
      worker: { format: "es" },
      build: {
        outDir: join(folder, "page"),
        emptyOutDir: true,
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
      },
    });
    const about = JSON.parse(readFileSync(join(folder, "about.json"), "utf8")) as About;
    const server = createServer((request, response) => {
      const policy = site.sendsPolicy ? { "content-security-policy": about.policy } : {};
      const path = request.url!.startsWith("/files/") ? request.url!.slice(7) : `page${request.url!}`;
      response.writeHead(200, {
        "content-type": TYPES[extname(path)] ?? "application/octet-stream",
        ...policy,
      });
      response.end(readFileSync(join(folder, path)));
    }).listen(0, "127.0.0.1");
    const site = new Site(folder, server, about);
    await once(server, "listening");
    return site;
  }

  /** Return the compressed size of assets. */
  compressedSize(urls: readonly string[]): number {
    const paths = urls.map((url) => join(this.folder, "page", new URL(url).pathname));
    return paths.reduce((sum, path) => sum + gzipSync(readFileSync(path)).length, 0);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
    rmSync(this.folder, { recursive: true });
  }
}
