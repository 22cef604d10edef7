/** Draw a long text in slices, so that the page answers in between. */

const SLICE_MS = 8;
const REST = 3; // times the work: a text that grows while it is drawn takes a quarter of the page's time

type Show = (pieces: readonly string[], isAll: boolean) => void;

export class Drawing {
  readonly #show: Show;
  #next: Iterable<string> | undefined;
  #run = 0;
  #isRunning = false;

  /** `show` replaces the first of the pieces that are shown, or all of them. */
  constructor(show: Show) {
    this.#show = show;
  }

  /** Draw these pieces, in which "" is a pause, once those before are drawn. Of several that wait, the last is drawn. */
  async draw(pieces: Iterable<string>): Promise<void> {
    this.#next = pieces;
    if (this.#isRunning) return;
    const run = ++this.#run;
    this.#isRunning = true;
    try {
      while (this.#next && run === this.#run) {
        const source = this.#next;
        this.#next = undefined;
        await pause(REST * (await this.#drawn(source, () => run === this.#run)));
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

  /** Return how many milliseconds it took. */
  async #drawn(source: Iterable<string>, isWanted: () => boolean): Promise<number> {
    const pieces: string[] = [];
    let [spent, since] = [0, performance.now()];
    for (const piece of source) {
      if (piece) pieces.push(piece);
      const took = performance.now() - since;
      if (took < SLICE_MS) continue;
      spent += took;
      this.#show([...pieces], false);
      await pause(0);
      if (!isWanted()) return spent;
      since = performance.now();
    }
    this.#show(pieces, true);
    return spent;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
