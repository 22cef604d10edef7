/**
 * Unanswered questions, stored with the id of the tab that is answering them. If that tab is closed, another tab
 * answers them.
 */

import { acquireLock, lockNames } from "../../lib/locks.ts";
import { newId } from "../../core/schema/uuid7.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import type { AccountContext } from "../account/accountContext.ts";

export class UnansweredQuestions {
  readonly #context: AccountContext;
  readonly #tab = newId();
  /** Promise that resolves when this tab holds its lock. Other tabs check this lock to see whether the tab is open. */
  #lockHeld: Promise<unknown> | undefined;

  constructor(context: AccountContext) {
    this.#context = context;
  }

  /** Record a question. A failure, such as a full disk, must not prevent asking. */
  async add(episodeId: string): Promise<void> {
    await (this.#lockHeld ??= acquireLock(lockNames.tab(this.#tab)));
    const { account, device } = this.#context;
    const asked = { episodeId, userId: account.userId, at: this.#context.creationTime(), tab: this.#tab };
    await device.asked.put(asked).catch(console.error);
  }

  async remove(episodeId: string): Promise<void> {
    await this.#context.device.asked.delete(episodeId).catch(console.error);
  }

  /** Take over the questions of closed tabs and return the ids of their turns. */
  adoptOrphans(): Promise<string[]> {
    const { account, device } = this.#context;
    return navigator.locks.request(lockNames.unansweredQuestions(account.userId), async () => {
      const all = await device.asked.where({ userId: account.userId }).toArray();
      const { held = [] } = await navigator.locks.query();
      const here = new Set(held.map(({ name }) => name));
      const left = all.filter(({ tab }) => !here.has(lockNames.tab(tab))).map(({ episodeId }) => episodeId);
      for (const episodeId of left) await this.add(episodeId);
      return left;
    });
  }

  /** Return whether a turn has no answer at all. A partial answer is kept, and the user can regenerate it. */
  async isUnanswered(episodeId: string): Promise<boolean> {
    const found = await this.#context.database.episodes.findOne(episodeId).exec();
    const turn = found?.toMutableJSON() as EpisodeDoc | undefined;
    return turn?.status === "queued" && !turn.model && !turn.aiResponse;
  }
}
