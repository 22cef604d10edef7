/**
 * Deferred questions: turns with quotation answers that the assistant will answer once it is available. The device
 * stores the ids of the turns. One tab asks the questions one by one, because the server rejects many questions at
 * once.
 */

import { lockNames } from "../../lib/locks.ts";
import { QUOTES } from "../../core/chat/citation.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { RetrySchedule } from "../../lib/backoff.ts";

interface AnswerPort {
  /**
   * Return whether the server is known to be unreachable. `answerAll` is then called again when the server is
   * reachable.
   */
  isAway: () => boolean;
  isAvailable: () => Promise<boolean>;
  /** Answer a turn and return its model. Null: the turn was deleted. */
  answer: (episodeId: string) => Promise<{ model?: string | undefined } | null>;
  /** Callback for changes of the set of deferred questions. */
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

  /**
   * Answer all deferred questions. After a failure, retry with growing delays, or when the server is reachable again.
   */
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

  /** Answer the deferred turns one by one. If a turn gets a quotation answer again, stop and keep the turn deferred. */
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
