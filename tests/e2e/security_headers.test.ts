/** The security headers in a real browser: isolation, no requests to other hosts, and working pages. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { browser, harness, user, withBrowser } from "./browser.ts";

withBrowser();

test("pages are cross-origin isolated", async () => {
  const page = await browser.page(`${harness.url}/embedder.html`);
  expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
});

test("requests to other hosts are blocked", async () => {
  const requests: string[] = [];
  const foreign = createServer((request, answer) => {
    requests.push(request.url ?? "");
    answer
      .writeHead(200, { "access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin" })
      .end();
  }).listen(0, "127.0.0.1");
  await once(foreign, "listening");
  const url = `http://localhost:${(foreign.address() as AddressInfo).port}`;
  const page = await browser.page(`${harness.url}/embedder.html`);
  const refused = await page.evaluate(async (url) => {
    const directives: string[] = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      directives.push(event.effectiveDirective),
    );
    const failed = (element: HTMLElement) => new Promise((resolve) => (element.onerror = resolve));
    const script = Object.assign(document.createElement("script"), { src: `${url}/script` });
    const image = Object.assign(document.createElement("img"), { src: `${url}/image` });
    const waiting = [failed(script), failed(image), fetch(`${url}/fetch`).catch(() => {})];
    document.head.append(script, image);
    await Promise.all(waiting);
    return directives.sort();
  }, url);
  foreign.close();
  expect(refused).toEqual(["connect-src", "img-src", "script-src-elem"]);
  expect(requests).toEqual([]);
});

test("inline scripts do not run", async () => {
  const page = await browser.page(`${harness.url}/embedder.html`);
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
    return "ran" in window;
  });
  expect(ran).toBe(false);
  expect(browser.consoleErrors.at(-1)).toContain("Content Security Policy"); // violations are recorded
});

test("the API documentation can send a request", async () => {
  const before = browser.consoleErrors.length;
  const page = await browser.page(`${harness.url}/schema`);
  await page.locator("#operations-tag-operations").getByRole("button").first().click();
  const operation = page.locator("#operations-operations-getHealth");
  await operation.getByRole("button").first().click();
  await operation.getByRole("button", { name: "Try it out" }).click();
  await operation.getByRole("button", { name: "Execute" }).click();
  await operation.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor();
  expect(browser.consoleErrors.slice(before)).toEqual([]);
});

test("a sign-in link signs the user in", async () => {
  const page = await browser.page(harness.url + user.link);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${harness.url}/`);
  const me = await page.evaluate(async () => (await fetch("/v1/me")).json());
  expect(me).toMatchObject({ userId: user.userId });
});
