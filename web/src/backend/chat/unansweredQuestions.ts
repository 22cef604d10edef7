/**
 * Questions that were asked in this tab and have no answer yet. A page that is closed in between leaves them as they
 * are, and the next one answers them: a question is kept as well as the file that it waits for.
 */

import { acquireLock, lockNames } from "../../lib/locks.ts";
import { newId } from "../../core/schema/uuid7.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import type { AccountContext } from "../account/accountContext.ts";

export class UnansweredQuestions {
  readonly #context: AccountContext;
  readonly #tab = newId();
  /** Who looks whether this tab is there finds its lock held for as long as it is. */
  #lockHeld: Promise<unknown> | undefined;

  constructor(context: AccountContext) {
    this.#context = context;
  }

  /** A device without room for it asks all the same. */
  async add(episodeId: string): Promise<void> {
    await (this.#lockHeld ??= acquireLock(lockNames.tab(this.#tab)));
    const { account, device } = this.#context;
    const asked = { episodeId, userId: account.userId, at: this.#context.creationTime(), tab: this.#tab };
    await device.asked.put(asked).catch(console.error);
  }

  async remove(episodeId: string): Promise<void> {
    await this.#context.device.asked.delete(episodeId).catch(console.error);
  }

  /** The ids of those whose tab is gone. They are this tab's from now on. */
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

  /** Nothing has come of it: what was begun is kept as it is, for whoever asked to ask again. */
  async isUnanswered(episodeId: string): Promise<boolean> {
    const found = await this.#context.database.episodes.findOne(episodeId).exec();
    const turn = found?.toMutableJSON() as EpisodeDoc | undefined;
    return turn?.status === "queued" && !turn.model && !turn.aiResponse;
  }
}
