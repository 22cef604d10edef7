/** Two lanes in front of one worker: it does one text at a time, and a question overtakes every passage that waits. */

interface Job<R> {
  text: string;
  settle: { resolve: (result: R) => void; reject: (reason: unknown) => void };
}

export class Queue<R> {
  readonly #run: (text: string) => Promise<R>;
  readonly #questions: Job<R>[] = [];
  readonly #passages: Job<R>[] = [];
  #busy = false;

  constructor(run: (text: string) => Promise<R>) {
    this.#run = run;
  }

  question(text: string, signal?: AbortSignal): Promise<R> {
    return this.#add(this.#questions, text, signal);
  }

  passage(text: string, signal?: AbortSignal): Promise<R> {
    return this.#add(this.#passages, text, signal);
  }

  #add(lane: Job<R>[], text: string, signal?: AbortSignal): Promise<R> {
    let leave = () => {};
    const answer = new Promise<R>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const job = { text, settle: { resolve, reject } };
      lane.push(job);
      // What runs already runs to its end; its result goes nowhere.
      leave = () => {
        const place = lane.indexOf(job);
        if (place >= 0) lane.splice(place, 1);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", leave, { once: true });
      void this.#work();
    });
    return answer.finally(() => signal?.removeEventListener("abort", leave));
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let job; (job = this.#questions.shift() ?? this.#passages.shift());) {
      await this.#run(job.text).then(job.settle.resolve, job.settle.reject);
    }
    this.#busy = false;
  }
}
