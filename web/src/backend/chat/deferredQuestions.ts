/**
 * Turns of quotations that the assistant shall answer once it can be asked. They wait on the device, and are asked one
 * after the other, in one tab: many questions at once the server would refuse.
 */

import { lockNames } from "../../lib/locks.ts";
import { QUOTES } from "../../core/chat/citation.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { RetrySchedule } from "../../lib/backoff.ts";

interface AnswerPort {
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
  readonly #answers: AnswerPort;
  readonly #retries = new RetrySchedule();

  constructor(context: AccountContext, ways: AnswerPort) {
    this.#context = context;
    this.#answers = ways;
  }

  async set(episodeId: string, isWanted: boolean): Promise<void> {
    const { account, device } = this.#context;
    if (isWanted)
      await device.later.put({ episodeId, userId: account.userId, at: this.#context.creationTime() });
    else await device.later.delete(episodeId);
    await this.#answers.onChange();
    if (isWanted) void this.answerAll();
  }

  async ids(): Promise<string[]> {
    const { account, device } = this.#context;
    return (await device.later.where({ userId: account.userId }).toArray()).map(({ episodeId }) => episodeId);
  }

  /** What fails while the server is there is tried again, ever later, or as soon as the server is back again. */
  async answerAll(): Promise<void> {
    await this.#answers.onChange();
    const lock = lockNames.deferredQuestions(this.#context.account.userId);
    await navigator.locks.request(lock, () => this.#answerNext()).catch(console.error);
    await this.#answers.onChange();
    if ((await this.ids()).length === 0) this.#retries.cancel(ALL);
    else if (!this.#answers.isAway()) this.#retries.schedule(ALL, undefined, () => void this.#retry());
  }

  async #retry(): Promise<void> {
    if (!this.#context.database.closed) await this.answerAll().catch(console.error);
  }

  /** A turn that gets quotations once more goes on waiting, and those after it with it. */
  async #answerNext(): Promise<void> {
    while (await this.#answers.isAvailable()) {
      const [next] = await this.ids();
      if (next === undefined) return;
      const answered = await this.#answers.answer(next);
      if (answered?.model === QUOTES) return;
      await this.#context.device.later.delete(next);
      this.#retries.cancel(ALL);
      await this.#answers.onChange();
    }
  }
}
