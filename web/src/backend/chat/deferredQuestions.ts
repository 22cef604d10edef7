/**
 * Turns of quotations that the assistant shall answer once it can be asked. They wait on the device, and are asked one
 * after the other, in one tab: many questions at once the server would refuse.
 */

import { QUOTES } from "../../core/chat/citation.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { Retries } from "../../lib/backoff/retrySchedule.ts";

interface Callbacks {
  /** Whether the server is known to be away: whoever sees it come back asks then. */
  isAway: () => boolean;
  isAvailable: () => Promise<boolean>;
  /** By what a turn was answered; null: it is gone. */
  answer: (episodeId: string) => Promise<{ model?: string | undefined } | null>;
  /** Others wait than before. */
  onChange: () => Promise<void>;
}

const ALL = "all";

export class DeferredQuestions {
  readonly #context: AccountContext;
  readonly #callbacks: Callbacks;
  readonly #retries = new Retries();

  constructor(context: AccountContext, ways: Callbacks) {
    this.#context = context;
    this.#callbacks = ways;
  }

  async setDeferred(episodeId: string, isDeferred: boolean): Promise<void> {
    const { account, device } = this.#context;
    if (isDeferred)
      await device.later.put({ episodeId, userId: account.userId, at: this.#context.newRowTime() });
    else await device.later.delete(episodeId);
    await this.#callbacks.onChange();
    if (isDeferred) void this.askAll();
  }

  async listIds(): Promise<string[]> {
    const { account, device } = this.#context;
    return (await device.later.where({ userId: account.userId }).toArray()).map(({ episodeId }) => episodeId);
  }

  /** What fails while the server is there is tried again, ever later, or as soon as the server is back again. */
  async askAll(): Promise<void> {
    await this.#callbacks.onChange();
    const lock = `vademecum-later-${this.#context.account.userId}`;
    await navigator.locks.request(lock, () => this.#askUntilUnavailable()).catch(console.error);
    await this.#callbacks.onChange();
    if ((await this.listIds()).length === 0) this.#retries.end(ALL);
    else if (!this.#callbacks.isAway()) this.#retries.later(ALL, undefined, () => void this.#retry());
  }

  async #retry(): Promise<void> {
    if (!this.#context.database.closed) await this.askAll().catch(console.error);
  }

  /** A turn that gets quotations once more goes on waiting, and those after it with it. */
  async #askUntilUnavailable(): Promise<void> {
    while (await this.#callbacks.isAvailable()) {
      const [next] = await this.listIds();
      if (next === undefined) return;
      const answered = await this.#callbacks.answer(next);
      if (answered?.model === QUOTES) return;
      await this.#context.device.later.delete(next);
      this.#retries.end(ALL);
      await this.#callbacks.onChange();
    }
  }
}
