/**
 * A question and its answer: by the assistant where one is set up and the server answers, else by quotations from the
 * documents. The turn is a row from the first moment, so it is on every device and survives the page.
 */

import { BehaviorSubject, distinctUntilChanged, map } from "rxjs";
import { Refusal } from "../engines/sync/wire.ts";
import { QUOTES, citation, type Citation } from "../model/citation.ts";
import { isAway } from "../model/headline.ts";
import { QUOTED, quoted, type Quoted } from "../model/quotes.ts";
import { edit } from "../engines/records/edit.ts";
import type { EpisodeDoc } from "../model/rows.ts";
import { written } from "../model/written.ts";
import { answer, assistant, type Assistant, type Told } from "./assistant.ts";
import { begun, now, type House } from "./house.ts";
import { isForNow, patiently } from "./patience.ts";
import type { Found, Searcher } from "./search.ts";
import type { Syncing } from "./sync.ts";

/** The answer that is being written, ahead of its row. */
export interface Writing {
  episodeId: string;
  aiResponse: string;
  citations: Citation[];
  told: Told | null;
}

export interface AssistantState {
  known: Assistant | null;
  /** Ids of turns. */
  later: string[];
}

const SAVE_EVERY_MS = 2_000;
const SENT_MS = 3_000;
const TOLD_MAX = 50;

type Answered = Pick<EpisodeDoc, "aiResponse" | "citations" | "status" | "model">;

export class Asking {
  /** What is being written in this tab, by the id of its turn. */
  readonly writing$ = new BehaviorSubject<Record<string, Writing>>({});
  readonly #house: House;
  readonly #syncing: Syncing;
  readonly #searcher: Searcher;
  /** Whether there is an assistant, as far as this device knows, and which turns wait for it. */
  readonly assistant$ = new BehaviorSubject<AssistantState>({ known: null, later: [] });
  /** Those that are under way, or wait for the one before them to end. */
  readonly #answers = new Map<string, { stop: AbortController; ended: Promise<unknown> }>();
  #saving: Promise<void> = Promise.resolve();
  /** What went into the last prompts. */
  readonly #told = new Map<string, Told>();

  constructor(house: House, syncing: Syncing, searcher: Searcher) {
    this.#house = house;
    this.#syncing = syncing;
    this.#searcher = searcher;
    syncing.summary$
      .pipe(
        map(({ kind }) => kind),
        distinctUntilChanged(),
      )
      .subscribe((kind) => void (kind === "live" ? this.#askLater() : this.#look()));
    house.forgotten$.subscribe(() => {
      this.#told.clear();
      void this.#look();
    });
  }

  /** The id of the turn; its answer follows. */
  async ask(sessionId: string, userMessage: string): Promise<string> {
    const row: EpisodeDoc = {
      ...begun(this.#house),
      sessionId,
      userMessage,
      aiResponse: "",
      citations: [],
      status: "queued",
    };
    await this.#house.records.episodes.insert(row);
    void this.#answer(row.id, async () => row);
    return row.id;
  }

  /** Answers a turn anew, with other words if they are given. What came after it stays. Resolves when it has begun. */
  again(episodeId: string, userMessage?: string): Promise<void> {
    return new Promise((begun, failed) => {
      const anew = async () => {
        const row = await this.#anew(episodeId, userMessage);
        begun();
        return row;
      };
      this.#answer(episodeId, anew).then(() => begun(), failed);
    });
  }

  stop(episodeId: string): void {
    this.#answers.get(episodeId)?.stop.abort();
  }

  /** Whether the assistant shall answer a turn of quotations once the server is back. */
  async later(episodeId: string, wanted: boolean): Promise<void> {
    const { account, device } = this.#house;
    if (wanted) await device.later.put({ episodeId, userId: account.userId, at: this.#house.madeAt() });
    else await device.later.delete(episodeId);
    await this.#look();
    if (wanted) void this.#askLater();
  }

  /** What went into the prompt of a turn that was answered since the app was opened. */
  told(episodeId: string): Told | null {
    return this.#told.get(episodeId) ?? null;
  }

  /**
   * One after the other, and in one tab: many questions at once the server would refuse. A turn that gets quotations
   * once more goes on waiting, and those after it with it, until the server is back again.
   */
  async #askLater(): Promise<void> {
    const { account, device } = this.#house;
    await this.#look();
    await navigator.locks.request(`vademecum-later-${account.userId}`, async () => {
      while (await this.#available()) {
        const next = await device.later.where({ userId: account.userId }).first();
        if (!next) break;
        const answered = await this.#answer(next.episodeId, () => this.#anew(next.episodeId));
        if (answered?.model === QUOTES) break;
        await device.later.delete(next.episodeId);
        await this.#look();
      }
    });
    await this.#look();
  }

  /** The turn as if it had just been asked; null: it is gone. */
  async #anew(episodeId: string, userMessage?: string): Promise<EpisodeDoc | null> {
    const found = await this.#house.records.episodes.findOne(episodeId).exec();
    if (!found) return null;
    await edit<EpisodeDoc>(found, ({ model: _, ...row }) => ({
      ...row,
      ...(userMessage === undefined ? {} : { userMessage }),
      aiResponse: "",
      citations: [],
      status: "queued",
      updatedAt: now(),
    }));
    const asked = found.getLatest();
    return asked.deleted ? null : (asked.toMutableJSON() as EpisodeDoc);
  }

  async #look(): Promise<void> {
    const { account, device } = this.#house;
    const known = (await device.accounts.get(account.userId))?.assistant ?? null;
    const waiting = await device.later.where({ userId: account.userId }).toArray();
    this.assistant$.next({ known, later: waiting.map(({ episodeId }) => episodeId) });
  }

  /** One answer a turn: the one before is stopped, and has ended before `prepare` makes the turn ready for this one. */
  #answer(episodeId: string, prepare: () => Promise<EpisodeDoc | null>): Promise<Answered | null> {
    const before = this.#answers.get(episodeId);
    before?.stop.abort();
    const stop = new AbortController();
    const write = async () => {
      await before?.ended.catch(() => {}); // told to whoever asked for it
      try {
        const row = stop.signal.aborted ? null : await prepare();
        return row && (await this.#write(row, stop.signal));
      } finally {
        if (this.#answers.get(episodeId)?.stop === stop) this.#answers.delete(episodeId);
      }
    };
    const ended = write();
    this.#answers.set(episodeId, { stop, ended });
    return ended;
  }

  /** While the lock is held the turn is being answered here: no other tab of this device takes it up. */
  #write(row: EpisodeDoc, signal: AbortSignal): Promise<Answered> {
    return navigator.locks.request(`vademecum-answer-${row.id}`, async () => {
      try {
        const answered = await this.#answered(row, signal);
        await this.#save(row.id, answered);
        return answered;
      } catch (error) {
        await this.#save(row.id, { ...this.#written(row.id), status: "failed" }); // it must not wait for ever
        throw error;
      } finally {
        const { [row.id]: _, ...others } = this.writing$.value;
        this.writing$.next(others);
      }
    });
  }

  async #answered(row: EpisodeDoc, signal: AbortSignal): Promise<Answered> {
    if (!(await this.#available())) return this.#quotes(row);
    try {
      return await this.#byAssistant(row, signal);
    } catch (error) {
      if (signal.aborted) return { ...this.#written(row.id), status: "stopped" };
      if (isForNow(error)) return this.#quotes(row);
      if (error instanceof Refusal && error.status < 500 && error.status !== 401) {
        return { ...this.#written(row.id), aiResponse: error.message, status: "failed" };
      }
      return this.#quotes(row); // the server is away, or its assistant: the documents are here
    }
  }

  /** Whether the assistant can be asked now. Only who knows that the server is away need not ask it. */
  async #available(): Promise<boolean> {
    if (isAway(this.#syncing.summary$.value.kind)) return false;
    const { account, device, wire } = this.#house;
    try {
      const known = await assistant(wire);
      await device.accounts.update(account.userId, { assistant: known });
      return known.available;
    } catch {
      return false;
    }
  }

  async #byAssistant(row: EpisodeDoc, signal: AbortSignal): Promise<Answered> {
    await this.#syncing.sent(SENT_MS); // the server tells the assistant what it has of this session
    let saved = Date.now();
    const write = (change: Partial<Writing>) => {
      const writing = { ...this.#writing(row.id), ...change };
      this.writing$.next({ ...this.writing$.value, [row.id]: writing });
      if (Date.now() - saved < SAVE_EVERY_MS) return;
      saved = Date.now();
      void this.#save(row.id, { ...this.#written(row.id), status: "streaming" });
    };
    const question = { query: row.userMessage, sessionId: row.sessionId, episodeId: row.id };
    write({});
    const listener = {
      context: (told: Told) => {
        this.#remember(row.id, told);
        write({ told, citations: told.citations.map(cited) });
      },
      delta: (text: string) => write({ aiResponse: this.#writing(row.id).aiResponse + text }),
    };
    const asked = () => answer(this.#house.wire, question, listener, signal);
    const ended = await patiently(asked, signal);
    const written = this.#written(row.id);
    if (ended.kind === "done") return { ...written, status: "done" };
    if (!written.aiResponse) return this.#quotes(row);
    return { ...written, status: "failed" };
  }

  async #quotes(row: EpisodeDoc): Promise<Answered> {
    const [{ aiResponse, citations }, remembered] = await Promise.all([
      this.#quoted(row),
      this.#remembered(row),
    ]);
    const said = [aiResponse, remembered].filter(Boolean).join("\n\n");
    return { aiResponse: said, citations, status: "done", model: QUOTES };
  }

  async #quoted({ userMessage, sessionId }: EpisodeDoc): Promise<Quoted> {
    if (!this.#house.account.limits.searchesDocuments) return { aiResponse: written.noSearch, citations: [] };
    const found: Found = await this.#searcher.search(userMessage, sessionId, QUOTED);
    const names = found.searched.map(({ filename }) => filename);
    return quoted(userMessage, found.results, names);
  }

  /** The answer is worth more than what memory adds to it, and does not fail with it. */
  async #remembered(row: EpisodeDoc): Promise<string> {
    try {
      return await (await import("./remind.ts")).remind(this.#house, row);
    } catch (error) {
      console.error(error);
      return "";
    }
  }

  #remember(episodeId: string, told: Told): void {
    this.#told.set(episodeId, told);
    const [oldest] = this.#told.keys();
    if (this.#told.size > TOLD_MAX && oldest !== undefined) this.#told.delete(oldest);
  }

  #writing(episodeId: string): Writing {
    return this.writing$.value[episodeId] ?? { episodeId, aiResponse: "", citations: [], told: null };
  }

  #written(episodeId: string): Omit<Answered, "status"> {
    const { aiResponse, citations, told } = this.#writing(episodeId);
    return { aiResponse, citations, ...(told?.model ? { model: told.model } : {}) };
  }

  /** One after the other: what was saved on the way must not come after the end. */
  #save(episodeId: string, answered: Answered): Promise<void> {
    const save = async () => {
      const found = await this.#house.records.episodes.findOne(episodeId).exec();
      if (found) await edit<EpisodeDoc>(found, (row) => ({ ...row, ...answered, updatedAt: now() }));
    };
    return (this.#saving = this.#saving.catch(() => {}).then(save));
  }
}

function cited(told: Told["citations"][number]): Citation {
  return citation({ ...told, page: told.page ?? null });
}
