/** A long text is drawn in slices. */

import { Drawing } from "../../../../web/src/ui/conversation/drawing.ts";

/** Yield a piece each time after more than a slice of work. */
function* slowly(...pieces: string[]): Generator<string> {
  for (const piece of pieces) {
    const until = performance.now() + 10;
    while (performance.now() < until);
    yield piece;
  }
}

function recorded() {
  const shown: [pieces: string, isAll: boolean][] = [];
  return { shown, drawing: new Drawing((pieces, isAll) => shown.push([pieces.join(" "), isAll])) };
}

test("pieces are shown as they come, with events in between", async () => {
  const { shown, drawing } = recorded();
  let events = 0;
  const timer = setInterval(() => events++, 0);
  await drawing.draw(slowly("a", "", "b"));
  clearInterval(timer);
  expect(shown).toEqual([
    ["a", false],
    ["a", false],
    ["a b", false],
    ["a b", true],
  ]);
  expect(events).toBeGreaterThan(1);
});

test("a drawing is finished before the next begins, and of several only the last one is drawn", async () => {
  const { shown, drawing } = recorded();
  const drawn = drawing.draw(slowly("a", "b"));
  await drawing.draw(slowly("never"));
  await drawing.draw(["c"]);
  await drawn;
  expect(shown.filter(([, isAll]) => isAll)).toEqual([
    ["a b", true],
    ["c", true],
  ]);
});

test("a drawing that is stopped shows no more, and another can begin", async () => {
  const { shown, drawing } = recorded();
  const drawn = drawing.draw(slowly("a", "b"));
  drawing.stop();
  await drawing.draw(["c"]);
  await drawn;
  expect(shown).toEqual([
    ["a", false],
    ["c", true],
  ]);
});

test("what goes wrong is thrown, and another drawing can begin", async () => {
  const { shown, drawing } = recorded();
  const failing = (function* (): Generator<string> {
    throw new Error("No.");
  })();
  await expect(drawing.draw(failing)).rejects.toThrow("No.");
  await drawing.draw(["c"]);
  expect(shown).toEqual([["c", true]]);
});
