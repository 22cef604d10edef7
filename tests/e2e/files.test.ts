/** Files read in Chromium, under the server's policy, against what the server's own reader makes of them. */

import type { Page } from "playwright-core";
import { t } from "../../web/src/locale/t.ts";
import { UNREADABLE } from "../../web/src/ui/documents/uploadText.ts";
import { Browser } from "./browser.ts";
import type { Asked, Outcome } from "./files/page.ts";
import { Site, type Made } from "./files/site.ts";

vi.setConfig({ testTimeout: 180_000 }); // a hundred files, each in a worker of its own, on a busy machine

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

function made(group: string): Made[] {
  return site.about.files.filter((file) => file.group === group);
}

function file(name: string): Made {
  const found = site.about.files.find((file) => file.name === name);
  if (!found) throw new Error(`There is no ${name}.`);
  return found;
}

function read({ url, name }: Made, more: Partial<Asked> = {}): Promise<Outcome> {
  return page.evaluate((asked) => window.outcome(asked), { url, name, ...more });
}

/** What a file is read as, in the server's spelling. */
function spelled({ read, chunks, code }: Outcome): Made["expected"] {
  if (!read || !chunks) return { code: code! };
  return {
    mime_type: read.mimeType,
    page_count: read.pageCount ?? null,
    parts: read.parts.map(({ text, page, section }) => ({
      text,
      page: page ?? null,
      section: section ?? null,
    })),
    chunks: chunks.map(({ start, text, page, section }) => [start, text, page ?? null, section ?? null]),
  };
}

/** Reads them all, and tells which differ from what the server said. */
async function differences(files: readonly Made[]): Promise<unknown[]> {
  const found = [];
  for (const file of files) {
    const { expected } = file;
    const got = spelled(await read(file));
    if (JSON.stringify(sorted(got)) !== JSON.stringify(sorted(expected)))
      found.push([file.name, got, expected]);
  }
  return found;
}

function sorted(expected: Made["expected"]): unknown[] {
  return Object.entries(expected).sort(([a], [b]) => (a < b ? -1 : 1));
}

type Pages = { text: string; page?: number | null | undefined }[];

/** Each word with its page, as often as it stands there. */
function wordsOf(parts: Pages): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { text, page } of parts)
    for (const [word] of text.normalize("NFKC").matchAll(/[\p{L}\p{N}]+/gu))
      counts.set(`${page ?? 0} ${word}`, (counts.get(`${page ?? 0} ${word}`) ?? 0) + 1);
  return counts;
}

/** Which share of the server's words the browser has on the same page. */
function share(server: Pages, browser: Pages): number {
  const found = wordsOf(browser);
  let [all, hits] = [0, 0];
  for (const [word, count] of wordsOf(server)) {
    all += count;
    hits += Math.min(count, found.get(word) ?? 0);
  }
  return hits / all;
}

test("text, Markdown, CSV and JSON become exactly the chunks that the server cuts", async () => {
  expect(made("plain").length).toBeGreaterThan(15);
  expect(made("plain").filter(({ expected }) => expected.code)).toEqual([]); // each is one that the server reads
  expect(await differences(made("plain"))).toEqual([]);
});

test("every format keeps its words, pages and sections as on the server", async () => {
  expect(made("formats").length).toBeGreaterThan(50);
  expect(made("formats").filter(({ expected }) => expected.code)).toEqual([]); // each is one that the server reads
  expect(await differences(made("formats"))).toEqual([]);
});

test("real documents that are no PDF become exactly the chunks that the server cuts", async () => {
  const documents = made("library").filter(({ name }) => !name.endsWith(".pdf"));
  expect(documents.length).toBeGreaterThan(10);
  expect(await differences(documents)).toEqual([]);
});

test("of a real PDF's words 98 in 100 stand on the page where the server finds them", async () => {
  const documents = made("library").filter(({ name }) => name.endsWith(".pdf"));
  expect(documents.length).toBeGreaterThan(5);
  for (const document of documents) {
    const found = (await read(document)).read!;
    expect(found.pageCount, document.name).toBe(document.expected.page_count);
    expect(share(document.expected.parts!, found.parts), document.name).toBeGreaterThanOrEqual(0.98);
  }
});

test("a file that gives no words is refused for the server's reason", async () => {
  expect(made("refused").length).toBeGreaterThan(40);
  expect(await differences(made("refused"))).toEqual([]);
});

test("a refusal says what the server says", async () => {
  const texts = Object.fromEntries(Object.entries(UNREADABLE).map(([code, key]) => [code, t(key)]));
  expect(texts).toMatchObject(site.about.messages);
  expect((await read(file("scan.pdf"))).code).toBe("NO_TEXT");
});

test("a file made to hurt is refused, or read for what it is", async () => {
  const said: Record<string, string> = {};
  for (const attack of made("attacks").filter(({ name }) => name !== "bomb.pdf")) {
    const { code, read: found } = await read(attack);
    said[attack.name] = code ?? found!.parts.map(({ text }) => text).join(" ");
  }
  for (const ending of ["docx", "pptx", "xlsx", "odt", "epub"]) {
    expect(said[`bomb.${ending}`]).toBe("TOO_EXPANSIVE");
    if (SOAK || ending === "docx" || ending === "epub") expect(said[`lying bomb.${ending}`]).toBe("DAMAGED");
    if (ending !== "epub") expect(said[`laughs.${ending}`]).toBe("TOO_EXPANSIVE");
  }
  expect(said["laughs.epub"]).not.toContain("laughter");
  expect(said["crowd.docx"]).toBe("TOO_EXPANSIVE");
  expect([said["nested.docx"], said["nested.odt"]]).toEqual(["DAMAGED", "DAMAGED"]);
  for (const count of SOAK ? [4000, 2 ** 40] : [2 ** 40])
    expect(said[`claims ${count} pages.pdf`]).toBe("The lease ends in May");
  expect(said["claims -1 pages.pdf"]).toBe("NEEDS_SERVER");
  expect(said["circles.pdf"]).toBe("NO_TEXT");
  expect(said["draws itself.pdf"]).toContain("The lease ends in May");
  expect(said["nested.html"]).toContain("deep");
  expect(said["nested.rtf"]).toContain("end");
  expect(said["brackets.txt"]).toHaveLength(50_001);
  expect(said["endless.json"]).toBe('["…"]');
});

test("a file that takes too long costs itself alone", async () => {
  const [slow, next] = await Promise.all([
    read(file("bomb.pdf"), { seconds: 3 }),
    read(file("lease.docx"), { seconds: 60 }),
  ]);
  expect(slow.code).toMatch(/PARSE_TIMEOUT|PARSE_MEMORY|DAMAGED/);
  expect(next.read!.parts[0]!.text).toBe("The lease ends in May.");
  await expect.poll(() => page.workers().length).toBe(0);
});

test("reading that is cancelled ends its worker", async () => {
  const said = await read(file("zconfig-manual.pdf"), { stopAt: 2 });
  expect(said.code).toBe("stopped");
  await expect.poll(() => page.workers().length).toBe(0);
});

test("what only a guess could read waits for the server, which reads it", async () => {
  for (const file of made("for the server")) {
    expect(file.expected.chunks, file.name).not.toEqual([]);
    expect((await read(file)).code, file.name).toBe("NEEDS_SERVER");
  }
});

test("a PDF whose letters a table explains waits for the server where the table cannot be had", async () => {
  await page.route("**/cmaps-*.zip", (route) => route.abort());
  const said = await read(file("japanese.pdf"));
  await page.unroute("**/cmaps-*.zip");
  expect(said.code).toBe("NEEDS_SERVER");
  expect((await read(file("japanese.pdf"))).read!.parts[0]!.text).toBe("契約は五月に終わります。");
});

/** What is loaded beside the page when a file is read, and its size on the wire. */
async function loaded(name: string): Promise<{ names: string[]; size: number }> {
  const before = browser.requests.length;
  await read(file(name));
  const urls = [...new Set(browser.requests.slice(before))].filter((url) => url.includes("/assets/"));
  return {
    names: urls.map((url) => /assets\/(.*)-.{8}\.\w+$/u.exec(url)![1]!).sort(),
    size: site.packed(urls),
  };
}

test("a file loads the worker and the one parser that it needs", async () => {
  page = await browser.page(`${site.url}/index.html`);
  const start = browser.requests.filter((url) => url.startsWith(site.url));
  expect(start.some((url) => /assets\/index/u.test(url))).toBe(true);
  const [text, word, pdf] = [await loaded("long.txt"), await loaded("lease.docx"), await loaded("lease.pdf")];
  const parsers = ["docx", "pptx", "xlsx", "odt", "epub", "html", "rtf", "pdf"];
  expect(text.names).toContain("worker");
  expect(text.names.filter((name) => parsers.includes(name))).toEqual([]);
  expect(text.size).toBeLessThan(20_000);
  expect(word.names).not.toContain("pdf");
  expect(word.size).toBeLessThan(30_000);
  expect(pdf.names).toContain("pdf");
  expect(pdf.size).toBeLessThan(700_000);
});

test("nobody else is asked for anything, not even where no policy forbids it, and nothing is complained of", async () => {
  site.policed = false;
  page = await browser.page(`${site.url}/index.html`);
  for (const name of ["links.html", "links.epub", "laughs.docx", "japanese.pdf"]) await read(file(name));
  expect(browser.requests.filter((url) => !url.startsWith(site.url) && !url.startsWith("data:"))).toEqual([]);
  expect(browser.complaints.filter((text) => !text.includes("ERR_FAILED"))).toEqual([]); // the table that was withheld
});
