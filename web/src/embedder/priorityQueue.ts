interface Job<R> {
  text: string;
  settle: { resolve: (result: R) => void; reject: (reason: unknown) => void };
}

/** Processes one text at a time. Questions are processed before all waiting passages. */
export class PriorityQueue<R> {
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

  #add(queue: Job<R>[], text: string, signal?: AbortSignal): Promise<R> {
    let onAbort = () => {};
    const result = new Promise<R>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const job = { text, settle: { resolve, reject } };
      queue.push(job);
      // Remove a waiting job. A running job continues, and its result is dropped.
      onAbort = () => {
        const index = queue.indexOf(job);
        if (index >= 0) queue.splice(index, 1);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      void this.#runJobs();
    });
    return result.finally(() => signal?.removeEventListener("abort", onAbort));
  }

  async #runJobs(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let job; (job = this.#questions.shift() ?? this.#passages.shift());) {
      await this.#run(job.text).then(job.settle.resolve, job.settle.reject);
    }
    this.#busy = false;
  }
}
