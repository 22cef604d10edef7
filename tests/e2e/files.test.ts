/** The parsers of the app in Chromium, compared with those of the server. */

import type { Page } from "playwright-core";
import { t } from "../../web/src/locale/t.ts";
import { UNREADABLE } from "../../web/src/ui/documents/uploadText.ts";
import { Browser } from "./browser.ts";
import type { Outcome, ParseRequest } from "./files/page.ts";
import { Site, type SampleFile } from "./files/site.ts";

vi.setConfig({ testTimeout: 180_000 }); // a hundred files, each in its own worker

const SOAK = Boolean(process.env["SOAK"]); // see files/make.py

let site: Site;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  site = await Site.start();
  browser = await Browser.start();
  page = await browser.page(`${site.url}/index.html`);
}, 180_000);
afterAll(async () => {
  await browser?.stop();
  await site?.stop();
});

function filesOf(group: string): SampleFile[] {
  return site.about.files.filter((file) => file.group === group);
}

function file(name: string): SampleFile {
  const found = site.about.files.find((file) => file.name === name);
  if (!found) throw new Error(`There is no ${name}.`);
  return found;
}

function parse({ url, name }: SampleFile, more: Partial<ParseRequest> = {}): Promise<Outcome> {
  return page.evaluate((request) => window.outcome(request), { url, name, ...more });
}

/** Convert a result to the format of the server. */
function asOnServer({ parsed, chunks, code }: Outcome): SampleFile["expected"] {
  if (!parsed || !chunks) return { code: code! };
  return {
    mime_type: parsed.mimeType,
    page_count: parsed.pageCount ?? null,
    parts: parsed.parts.map(({ text, page, section }) => ({
      text,
      page: page ?? null,
      section: section ?? null,
    })),
    chunks: chunks.map(({ start, text, page, section }) => [start, text, page ?? null, section ?? null]),
  };
}

/** Parse all files and return those whose results differ from the server's. */
async function differences(files: readonly SampleFile[]): Promise<unknown[]> {
  const differing = [];
  for (const file of files) {
    const { expected } = file;
    const actual = asOnServer(await parse(file));
    if (JSON.stringify(sorted(actual)) !== JSON.stringify(sorted(expected)))
      differing.push([file.name, actual, expected]);
  }
  return differing;
}

function sorted(expected: SampleFile["expected"]): unknown[] {
  return Object.entries(expected).sort(([a], [b]) => (a < b ? -1 : 1));
}

type Pages = { text: string; page?: number | null | undefined }[];

/** Count each word of each page. */
function wordsOf(parts: Pages): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { text, page } of parts)
    for (const [word] of text.normalize("NFKC").matchAll(/[\p{L}\p{N}]+/gu))
      counts.set(`${page ?? 0} ${word}`, (counts.get(`${page ?? 0} ${word}`) ?? 0) + 1);
  return counts;
}

/** Return the share of the server's words that the browser has on the same page. */
function sharedWords(server: Pages, browser: Pages): number {
  const found = wordsOf(browser);
  let [all, hits] = [0, 0];
  for (const [word, count] of wordsOf(server)) {
    all += count;
    hits += Math.min(count, found.get(word) ?? 0);
  }
  return hits / all;
}

test("text, Markdown, CSV and JSON are parsed as on the server", async () => {
  expect(filesOf("plain").length).toBeGreaterThan(15);
  expect(filesOf("plain").filter(({ expected }) => expected.code)).toEqual([]);
  expect(await differences(filesOf("plain"))).toEqual([]);
});

test("generated files of every format are parsed as on the server", async () => {
  expect(filesOf("formats").length).toBeGreaterThan(50);
  expect(filesOf("formats").filter(({ expected }) => expected.code)).toEqual([]);
  expect(await differences(filesOf("formats"))).toEqual([]);
});

test("real documents except PDF are parsed as on the server", async () => {
  const documents = filesOf("library").filter(({ name }) => !name.endsWith(".pdf"));
  expect(documents.length).toBeGreaterThan(10);
  expect(await differences(documents)).toEqual([]);
});

test("at least 98% of a real PDF's words are the same as on the server", async () => {
  const documents = filesOf("library").filter(({ name }) => name.endsWith(".pdf"));
  expect(documents.length).toBeGreaterThan(5);
  for (const document of documents) {
    const found = (await parse(document)).parsed!;
    expect(found.pageCount, document.name).toBe(document.expected.page_count);
    expect(sharedWords(document.expected.parts!, found.parts), document.name).toBeGreaterThanOrEqual(0.98);
  }
});

test("a file without text gets the server's error", async () => {
  expect(filesOf("refused").length).toBeGreaterThan(40);
  expect(await differences(filesOf("refused"))).toEqual([]);
});

test("error messages match those of the server", async () => {
  const texts = Object.fromEntries(Object.entries(UNREADABLE).map(([code, key]) => [code, t(key)]));
  expect(texts).toMatchObject(site.about.messages);
  expect((await parse(file("scan.pdf"))).code).toBe("NO_TEXT");
});

test("hostile files are refused or parsed safely", async () => {
  const outcomes: Record<string, string> = {};
  for (const attack of filesOf("attacks").filter(({ name }) => name !== "bomb.pdf")) {
    const { code, parsed } = await parse(attack);
    outcomes[attack.name] = code ?? parsed!.parts.map(({ text }) => text).join(" ");
  }
  for (const ending of ["docx", "pptx", "xlsx", "odt", "epub"]) {
    expect(outcomes[`bomb.${ending}`]).toBe("TOO_EXPANSIVE");
    if (SOAK || ending === "docx" || ending === "epub")
      expect(outcomes[`lying bomb.${ending}`]).toBe("DAMAGED");
    if (ending !== "epub") expect(outcomes[`laughs.${ending}`]).toBe("TOO_EXPANSIVE");
  }
  expect(outcomes["laughs.epub"]).not.toContain("laughter");
  expect(outcomes["crowd.docx"]).toBe("TOO_EXPANSIVE");
  expect([outcomes["nested.docx"], outcomes["nested.odt"]]).toEqual(["DAMAGED", "DAMAGED"]);
  for (const count of SOAK ? [4000, 2 ** 40] : [2 ** 40])
    expect(outcomes[`claims ${count} pages.pdf`]).toBe("The lease ends in May");
  expect(outcomes["claims -1 pages.pdf"]).toBe("NEEDS_SERVER");
  expect(outcomes["circles.pdf"]).toBe("NO_TEXT");
  expect(outcomes["draws itself.pdf"]).toContain("The lease ends in May");
  expect(outcomes["nested.html"]).toContain("deep");
  expect(outcomes["nested.rtf"]).toContain("end");
  expect(outcomes["brackets.txt"]).toHaveLength(50_001);
  expect(outcomes["endless.json"]).toBe('["…"]');
});

test("a file that exceeds its time limit does not affect other files", async () => {
  const [slow, next] = await Promise.all([
    parse(file("bomb.pdf"), { seconds: 3 }),
    parse(file("lease.docx"), { seconds: 60 }),
  ]);
  expect(slow.code).toMatch(/PARSE_TIMEOUT|PARSE_MEMORY|DAMAGED/);
  expect(next.parsed!.parts[0]!.text).toBe("The lease ends in May.");
  await expect.poll(() => page.workers().length).toBe(0);
});

test("an aborted parse ends its worker", async () => {
  const { code } = await parse(file("zconfig-manual.pdf"), { stopAt: 2 });
  expect(code).toBe("stopped");
  await expect.poll(() => page.workers().length).toBe(0);
});

test("a file of unknown encoding needs the server", async () => {
  for (const file of filesOf("for the server")) {
    expect(file.expected.chunks, file.name).not.toEqual([]);
    expect((await parse(file)).code, file.name).toBe("NEEDS_SERVER");
  }
});

test("a PDF whose character map is missing needs the server", async () => {
  await page.route("**/cmaps-*.zip", (route) => route.abort());
  const { code } = await parse(file("japanese.pdf"));
  await page.unroute("**/cmaps-*.zip");
  expect(code).toBe("NEEDS_SERVER");
  expect((await parse(file("japanese.pdf"))).parsed!.parts[0]!.text).toBe("契約は五月に終わります。");
});

/** Return the assets that are loaded for a file, and their compressed size. */
async function assetsFor(name: string): Promise<{ names: string[]; size: number }> {
  const before = browser.requests.length;
  await parse(file(name));
  const urls = [...new Set(browser.requests.slice(before))].filter((url) => url.includes("/assets/"));
  return {
    names: urls.map((url) => /assets\/(.*)-.{8}\.\w+$/u.exec(url)![1]!).sort(),
    size: site.compressedSize(urls),
  };
}

test("parsing a file loads only the parser that it needs", async () => {
  page = await browser.page(`${site.url}/index.html`);
  const start = browser.requests.filter((url) => url.startsWith(site.url));
  expect(start.some((url) => /assets\/index/u.test(url))).toBe(true);
  const [text, word, pdf] = [
    await assetsFor("long.txt"),
    await assetsFor("lease.docx"),
    await assetsFor("lease.pdf"),
  ];
  const parsers = ["docx", "pptx", "xlsx", "odt", "epub", "html", "rtf", "pdf"];
  expect(text.names).toContain("worker");
  expect(text.names.filter((name) => parsers.includes(name))).toEqual([]);
  expect(text.size).toBeLessThan(20_000);
  expect(word.names).not.toContain("pdf");
  expect(word.size).toBeLessThan(30_000);
  expect(pdf.names).toContain("pdf");
  expect(pdf.size).toBeLessThan(700_000);
});

test("parsing sends no request to other hosts", async () => {
  site.sendsPolicy = false;
  page = await browser.page(`${site.url}/index.html`);
  for (const name of ["links.html", "links.epub", "laughs.docx", "japanese.pdf"]) await parse(file(name));
  expect(browser.requests.filter((url) => !url.startsWith(site.url) && !url.startsWith("data:"))).toEqual([]);
  expect(browser.consoleErrors.filter((text) => !text.includes("ERR_FAILED"))).toEqual([]); // the blocked character map
});
