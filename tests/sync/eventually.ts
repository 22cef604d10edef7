/** Waits until a condition holds; what is waited for arrives by a stream, at no fixed time. */
export async function eventually(what: string, holds: () => Promise<boolean> | boolean, ms = 60_000) {
  for (const end = Date.now() + ms; Date.now() < end;) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect.fail(`It did not come to pass: ${what}.`);
}
