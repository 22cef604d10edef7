import { sleep } from "../../lib/sleep.ts";

const SLICE_MS = 8;
/**
 * Pause after rendering, as a multiple of the rendering time: a growing text uses at most a quarter of the
 * time.
 */
const REST_FACTOR = 3;

type Show = (pieces: readonly string[], isComplete: boolean) => void;

/** Render long texts in slices, with pauses in which the page handles events. */
export class SlicedRenderer {
  readonly #show: Show;
  #next: Iterable<string> | undefined;
  #run = 0;
  #isRunning = false;

  /** Create a renderer. `show` replaces the first shown pieces, or all of them. */
  constructor(show: Show) {
    this.#show = show;
  }

  /**
   * Render the pieces of a text after the current text. "" marks a place where the iterable can pause. If
   * several texts wait, only the last is rendered.
   */
  async render(pieces: Iterable<string>): Promise<void> {
    this.#next = pieces;
    if (this.#isRunning) return;
    const run = ++this.#run;
    this.#isRunning = true;
    try {
      while (this.#next && run === this.#run) {
        const source = this.#next;
        this.#next = undefined;
        await sleep(REST_FACTOR * (await this.#renderText(source, () => run === this.#run)));
      }
    } finally {
      if (run === this.#run) this.#isRunning = false;
    }
  }

  stop(): void {
    this.#run++;
    this.#next = undefined;
    this.#isRunning = false;
  }

  /** Render a text. Return the rendering time in milliseconds, without pauses. */
  async #renderText(source: Iterable<string>, isCurrent: () => boolean): Promise<number> {
    const pieces: string[] = [];
    let [workMs, sliceStart] = [0, performance.now()];
    for (const piece of source) {
      if (piece) pieces.push(piece);
      const sliceMs = performance.now() - sliceStart;
      if (sliceMs < SLICE_MS) continue;
      workMs += sliceMs;
      this.#show([...pieces], false);
      await sleep(0);
      if (!isCurrent()) return workMs;
      sliceStart = performance.now();
    }
    this.#show(pieces, true);
    return workMs;
  }
}
