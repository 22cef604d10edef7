import { SlicedRenderer } from "../../../../web/src/ui/conversation/slicedRenderer.ts";

/** Yield each piece after work that takes longer than a slice. */
function* slowly(...pieces: string[]): Generator<string> {
  for (const piece of pieces) {
    const until = performance.now() + 10;
    while (performance.now() < until);
    yield piece;
  }
}

function recorder() {
  const shown: [pieces: string, isComplete: boolean][] = [];
  return {
    shown,
    renderer: new SlicedRenderer((pieces, isComplete) => shown.push([pieces.join(" "), isComplete])),
  };
}

test("pieces are shown one by one, and events are handled in between", async () => {
  const { shown, renderer } = recorder();
  let events = 0;
  const timer = setInterval(() => events++, 0);
  await renderer.render(slowly("a", "", "b"));
  clearInterval(timer);
  expect(shown).toEqual([
    ["a", false],
    ["a", false],
    ["a b", false],
    ["a b", true],
  ]);
  expect(events).toBeGreaterThan(1);
});

test("only the last of several waiting texts is rendered", async () => {
  const { shown, renderer } = recorder();
  const rendering = renderer.render(slowly("a", "b"));
  await renderer.render(slowly("never"));
  await renderer.render(["c"]);
  await rendering;
  expect(shown.filter(([, isComplete]) => isComplete)).toEqual([
    ["a b", true],
    ["c", true],
  ]);
});

test("a stopped text shows no further piece, and the next text renders", async () => {
  const { shown, renderer } = recorder();
  const rendering = renderer.render(slowly("a", "b"));
  renderer.stop();
  await renderer.render(["c"]);
  await rendering;
  expect(shown).toEqual([
    ["a", false],
    ["c", true],
  ]);
});

test("a render error is thrown, and the next text still renders", async () => {
  const { shown, renderer } = recorder();
  const failing = (function* (): Generator<string> {
    throw new Error("No.");
  })();
  await expect(renderer.render(failing)).rejects.toThrow("No.");
  await renderer.render(["c"]);
  expect(shown).toEqual([["c", true]]);
});
