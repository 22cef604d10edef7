import { truncate } from "../../../web/src/lib/truncate.ts";
import { snippet } from "../../../web/src/core/text/snippet.ts";
import { titleOf } from "../../../web/src/backend/chat/sessions.ts";

test("truncate never splits a surrogate pair", () => {
  expect(truncate("ab🚢", 3)).toBe("ab");
  expect(truncate("ab🚢", 4)).toBe("ab🚢");
  expect(truncate("ab🚢c", 4)).toBe("ab🚢");
});

test("titles and excerpts never end within an emoji", () => {
  for (let before = 0; before < 4; before++) {
    const text = `${"x".repeat(before)}${"🚢".repeat(200)}`;
    for (const shown of [titleOf(text), snippet(text, "ferry", 81)]) encodeURIComponent(shown); // throws on a lone surrogate
  }
});
