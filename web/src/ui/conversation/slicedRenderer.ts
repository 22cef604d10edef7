import { sleep } from "../../lib/sleep.ts";

const SLICE_MS = 8;
/**
 * Length of the pause after rendering a text, as a multiple of the rendering time. With 3, a growing text takes at most
 * a quarter of the page's time.
 */
const REST_FACTOR = 3;

type Show = (pieces: readonly string[], isComplete: boolean) => void;

/** Renders long texts in slices, with pauses in which the page can handle events. */
export class SlicedRenderer {
  readonly #show: Show;
  #next: Iterable<string> | undefined;
  #run = 0;
  #isRunning = false;

  /** Create a renderer. It calls `show` with the pieces so far after each slice, and with all pieces at the end. */
  constructor(show: Show) {
    this.#show = show;
  }

  /**
   * Render the pieces of a text once the current text is rendered. Of several waiting texts, only the last is rendered.
   * An empty piece marks a place where rendering can pause.
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

  /** Render a text. Return the rendering time in milliseconds, excluding pauses. */
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
