/** Wait until the condition holds. Fail with `description` after `ms` milliseconds. */
export async function eventually(description: string, holds: () => Promise<boolean> | boolean, ms = 60_000) {
  for (const end = Date.now() + ms; Date.now() < end;) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect.fail(`This did not become true: ${description}.`);
}
