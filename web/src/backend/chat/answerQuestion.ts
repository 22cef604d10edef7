/**
 * A question and its answer: by the assistant where one is set up and the server answers, else by quotations from the
 * documents. The turn is a row from the first moment, so it is on every device and survives the page.
 */

import { asyncScheduler, BehaviorSubject, distinctUntilChanged, map, throttleTime } from "rxjs";
import { Refusal } from "../../lib/http.ts";
import { QUOTES, citation, type Citation } from "../../core/chat/citation.ts";
import { isAway } from "../../core/sync/syncStatus.ts";
import { QUOTED, quoted, type Quoted } from "../../core/chat/quotationAnswer.ts";
import { edit } from "../../storage/editRow.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import { worth } from "../../core/chat/answerPriority.ts";
import { written } from "../../core/chat/storedSentences.ts";
import { lacking, type Task } from "../../core/documents/uploadTask.ts";
import { countUse } from "../library/documents.ts";
import { aborted, arrived, type Arrivals } from "../uploads/waitForUploads.ts";
import { answer, assistant, type Assistant, type PromptSummary } from "./assistantClient.ts";
import { begun, now, type House } from "../account/accountContext.ts";
import { Later } from "./deferredQuestions.ts";
import { loaded } from "../loadModule.ts";
import { isForNow, patiently } from "../../lib/backoff/retryWhileBusy.ts";
import type { Searcher } from "../library/documentSearch.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";
import { Unanswered } from "./unansweredQuestions.ts";

/** The answer that is being written, ahead of its row. */
export interface AnswerDraft {
  episodeId: string;
  aiResponse: string;
  citations: Citation[];
  promptSummary: PromptSummary | null;
  /** Names of files that it waits for. */
  pendingFiles: string[];
  /** After so many seconds the assistant is asked again, which takes no question now; 0: it is not waited for. */
  retryInS: number;
}

export interface AssistantState {
  assistant: Assistant | null;
  /** Ids of turns. */
  deferred: string[];
  /** Turns that keep the answer they had, since the new one came to less; why, where the server said it. */
  keptAnswers: Record<string, string>;
}

const SAVE_EVERY_MS = 2_000;
const SENT_MS = 3_000;
const TOLD_MAX = 50;
/** Other tabs and devices take a turn of which they hear nothing for a minute for broken off. */
const ALIVE_MS = 30_000;

/** Not needed to open the app, and soon after. */
const reminding = () => loaded(import("./answerMemory.ts"));

interface Under {
  stop: AbortController;
  /** Of the waiting for files. */
  enough: AbortController;
  ended: Promise<unknown>;
}

const DRAW_MS = 250; // each time the Markdown is parsed
const BOTH_ENDS = { leading: true, trailing: true };

type Answered = Pick<EpisodeDoc, "aiResponse" | "citations" | "status" | "model">;

export class AnswerService {
  /** What is being written in this tab, by the id of its turn. */
  readonly writing$ = new BehaviorSubject<Record<string, AnswerDraft>>({});
  /** The same, as often as it is drawn. */
  readonly drawn$ = this.writing$.pipe(throttleTime(DRAW_MS, asyncScheduler, BOTH_ENDS));
  readonly #house: House;
  readonly #syncing: SyncCoordinator;
  readonly #searcher: () => Promise<Searcher>;
  readonly #arrivals: Arrivals;
  /** Whether there is an assistant, as far as this device knows, and which turns wait for it. */
  readonly assistant$ = new BehaviorSubject<AssistantState>({
    assistant: null,
    deferred: [],
    keptAnswers: {},
  });
  /** Those that are under way, or wait for the one before them to end. */
  readonly #answers = new Map<string, Under>();
  #saving: Promise<boolean> = Promise.resolve(true);
  /** The documents of each answer here that have been counted as used. */
  readonly #used = new Map<string, Set<string>>();
  /** What went into the last prompts. */
  readonly #told = new Map<string, PromptSummary>();
  readonly #unanswered: Unanswered;
  readonly #later: Later;

  constructor(house: House, syncing: SyncCoordinator, searcher: () => Promise<Searcher>, arrivals: Arrivals) {
    this.#house = house;
    this.#syncing = syncing;
    this.#searcher = searcher;
    this.#arrivals = arrivals;
    // While there is a network: one that hangs gives nothing, and a question would wait for it.
    for (const load of [searcher, reminding]) load().catch(() => {});
    this.#unanswered = new Unanswered(house);
    this.#later = new Later(house, {
      isAway: () => isAway(syncing.summary$.value.kind),
      isAvailable: () => this.#available(),
      answer: (episodeId) => this.#answer(episodeId, () => this.#anew(episodeId)),
      changed: () => this.#look(),
    });
    syncing.summary$
      .pipe(
        map(({ kind }) => kind),
        distinctUntilChanged(),
      )
      .subscribe((kind) => void (kind === "live" ? this.#later.ask() : this.#look()));
    house.records.episodes.$.subscribe(({ documentId }) => {
      const { [documentId]: why, ...kept } = this.assistant$.value.keptAnswers;
      if (why !== undefined) this.#tell({ keptAnswers: kept }); // another answer came, here or elsewhere
    });
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
    await this.#unanswered.add(row.id);
    await this.#begin(row.id, async () => {
      await this.#house.records.episodes.insert(row);
      return row;
    });
    return row.id;
  }

  /** Answers what a page that is gone has left without an answer. */
  async resume(): Promise<void> {
    for (const episodeId of await this.#unanswered.takeOver()) {
      if (await this.#unanswered.isWaiting(episodeId)) void this.again(episodeId).catch(console.error);
      else void this.#unanswered.remove(episodeId);
    }
  }

  /** Answers a turn anew, with other words if they are given. What came after it stays. Resolves when it has begun. */
  again(episodeId: string, userMessage?: string): Promise<void> {
    return this.#begin(episodeId, () => this.#anew(episodeId, userMessage));
  }

  stop(episodeId: string): void {
    this.#answers.get(episodeId)?.stop.abort();
  }

  /** Without the files that it waits for. */
  answerNow(episodeId: string): void {
    this.#answers.get(episodeId)?.enough.abort();
  }

  /** Whether the assistant shall answer a turn of quotations once the server is back. */
  later(episodeId: string, wanted: boolean): Promise<void> {
    return this.#later.want(episodeId, wanted);
  }

  /** What went into the prompt of a turn that was answered since the app was opened. */
  told(episodeId: string): PromptSummary | null {
    return this.#told.get(episodeId) ?? null;
  }

  /** The turn, with the answer that it has until there is a better one; other words have none. Null: it is gone. */
  async #anew(episodeId: string, userMessage?: string): Promise<EpisodeDoc | null> {
    const found = await this.#house.records.episodes.findOne(episodeId).exec();
    if (!found) return null;
    if (userMessage !== undefined && userMessage !== found.userMessage) {
      await edit<EpisodeDoc>(found, ({ model: _, ...row }) => ({
        ...row,
        ...{ userMessage, aiResponse: "", citations: [], status: "queued", updatedAt: now() },
      }));
    }
    const asked = found.getLatest();
    return asked.deleted ? null : (asked.toMutableJSON() as EpisodeDoc);
  }

  async #look(): Promise<void> {
    const { account, device } = this.#house;
    const known = (await device.accounts.get(account.userId))?.assistant ?? null;
    this.#tell({ assistant: known, deferred: await this.#later.ids() });
  }

  #tell(change: Partial<AssistantState>): void {
    this.assistant$.next({ ...this.assistant$.value, ...change });
  }

  /** Resolves when the turn is ready; its answer follows. */
  #begin(episodeId: string, prepare: () => Promise<EpisodeDoc | null>): Promise<void> {
    return new Promise((begun, failed) => {
      const prepared = async () => {
        const row = await prepare();
        begun();
        return row;
      };
      this.#answer(episodeId, prepared).then(() => begun(), failed);
    });
  }

  /** One answer a turn: the one before is stopped, and has ended before `prepare` makes the turn ready for this one. */
  #answer(episodeId: string, prepare: () => Promise<EpisodeDoc | null>): Promise<Answered | null> {
    const before = this.#answers.get(episodeId);
    before?.stop.abort();
    const [stop, enough] = [new AbortController(), new AbortController()];
    stop.signal.addEventListener("abort", () => enough.abort());
    const write = async () => {
      await before?.ended.catch(() => {}); // told to whoever asked for it
      try {
        if (stop.signal.aborted) return null;
        this.#draw(episodeId, {}); // from now on it can be seen, and stopped
        const row = await prepare();
        return row && (await this.#write(row, stop.signal, enough.signal));
      } finally {
        const { [episodeId]: _, ...others } = this.writing$.value;
        this.writing$.next(others);
        if (this.#answers.get(episodeId)?.stop === stop) this.#answers.delete(episodeId);
        void this.#unanswered.remove(episodeId);
      }
    };
    const ended = write();
    this.#answers.set(episodeId, { stop, enough, ended });
    return ended;
  }

  /** While the lock is held the turn is being answered here: no other tab of this device takes it up. */
  #write(row: EpisodeDoc, signal: AbortSignal, enough: AbortSignal): Promise<Answered> {
    if (row.status === "done" && !this.#used.has(row.id)) {
      this.#used.set(row.id, new Set(row.citations.map(({ documentId }) => documentId)));
    }
    return navigator.locks.request(`vademecum-answer-${row.id}`, async () => {
      try {
        const stopped = () => ({ ...this.#written(row.id), status: "stopped" as const });
        const answering = this.#withFiles(row, signal, enough);
        const answered = await Promise.race([answering, aborted(signal).then(stopped)]);
        await this.#end(row.id, answered);
        return answered;
      } catch (error) {
        await this.#end(row.id, { ...this.#written(row.id), status: "failed" }); // it must not wait for ever
        throw error;
      }
    });
  }

  /** What comes to less than the answer before is not kept; who asked is told. */
  async #end(episodeId: string, answered: Answered): Promise<void> {
    if ((await this.#save(episodeId, answered)) || answered.status === "stopped") return;
    const why = answered.model ? "" : answered.aiResponse;
    this.#tell({ keptAnswers: { ...this.assistant$.value.keptAnswers, [episodeId]: why } });
  }

  /** When the files are here that the conversation is taking in; of those that do not come, or not yet, it speaks. */
  async #withFiles(row: EpisodeDoc, signal: AbortSignal, enough: AbortSignal): Promise<Answered> {
    const missing = await this.#missing(row, enough);
    signal.throwIfAborted();
    this.#draw(row.id, { pendingFiles: [] });
    const answered = await this.#answered(row, signal);
    const said = [answered.aiResponse, ...lacking(missing)];
    return { ...answered, aiResponse: said.filter(Boolean).join("\n\n") };
  }

  async #missing({ id, sessionId }: EpisodeDoc, enough: AbortSignal): Promise<Task[]> {
    if (!this.#house.account.limits.searchesDocuments) return [];
    const alive = setInterval(() => void this.#touch(id), ALIVE_MS);
    const tell = (awaits: string[]) => this.#draw(id, { pendingFiles: awaits });
    try {
      return await arrived(this.#house, this.#arrivals, sessionId, tell, enough);
    } finally {
      clearInterval(alive);
    }
  }

  async #touch(episodeId: string): Promise<void> {
    const found = await this.#house.records.episodes.findOne(episodeId).exec();
    const touched = (row: EpisodeDoc) => (row.status === "queued" ? { ...row, updatedAt: now() } : row);
    if (found) await edit<EpisodeDoc>(found, touched);
  }

  async #answered(row: EpisodeDoc, signal: AbortSignal): Promise<Answered> {
    if (!(await this.#available())) return this.#quotes(row);
    try {
      return await this.#byAssistant(row, signal);
    } catch (error) {
      if (signal.aborted) throw error; // nobody waits for it any more
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
    let saved = performance.now();
    const write = (change: Partial<AnswerDraft>) => {
      if (signal.aborted) return;
      this.#draw(row.id, change);
      if (performance.now() - saved < SAVE_EVERY_MS) return;
      saved = performance.now();
      void this.#save(row.id, { ...this.#written(row.id), status: "streaming" });
    };
    const question = { query: row.userMessage, sessionId: row.sessionId, episodeId: row.id };
    const listener = {
      context: (told: PromptSummary) => {
        this.#remember(row.id, told);
        write({ promptSummary: told, citations: told.citations.map(cited) });
      },
      delta: (text: string) => write({ aiResponse: this.#writing(row.id).aiResponse + text }),
      restart: () => write({ aiResponse: "" }),
    };
    const asked = () => answer(this.#house.wire, question, listener, signal);
    // Not saved: a question that nothing has come of is asked again when the app is opened anew.
    const waits = (waitsS: number) => signal.aborted || this.#draw(row.id, { retryInS: waitsS });
    const ending = await patiently(asked, signal, waits);
    const written = this.#written(row.id);
    if (ending === "whole") return { ...written, status: "done" };
    if (!written.aiResponse) return this.#quotes(row);
    return { ...written, status: ending === "cut" ? "stopped" : "failed" };
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
    const searcher = await this.#searcher();
    return quoted(userMessage, await searcher.search(userMessage, sessionId, QUOTED));
  }

  /** The answer is worth more than what memory adds to it, and does not fail with it. */
  async #remembered(row: EpisodeDoc): Promise<string> {
    try {
      return await (await reminding()).remind(this.#house, row);
    } catch (error) {
      console.error(error);
      return "";
    }
  }

  #remember(episodeId: string, told: PromptSummary): void {
    this.#told.set(episodeId, told);
    const [oldest] = this.#told.keys();
    if (this.#told.size > TOLD_MAX && oldest !== undefined) this.#told.delete(oldest);
  }

  /** Once a turn: not again for the answers that take the place of the first. */
  async #countUse(episodeId: string, citations: readonly Citation[]): Promise<void> {
    const used = this.#used.get(episodeId) ?? new Set();
    const cited = citations.map(({ documentId }) => documentId);
    this.#used.set(episodeId, new Set([...used, ...cited]));
    const first = new Set(cited.filter((id) => !used.has(id)));
    await countUse(this.#house, first).catch(console.error); // the answer matters more
  }

  #draw(episodeId: string, change: Partial<AnswerDraft>): void {
    const writing = { ...this.#writing(episodeId), ...change };
    this.writing$.next({ ...this.writing$.value, [episodeId]: writing });
  }

  #writing(episodeId: string): AnswerDraft {
    const begun = {
      episodeId,
      aiResponse: "",
      citations: [],
      promptSummary: null,
      pendingFiles: [],
      retryInS: 0,
    };
    return this.writing$.value[episodeId] ?? begun;
  }

  #written(episodeId: string): Omit<Answered, "status"> {
    const { aiResponse, citations, promptSummary: told } = this.#writing(episodeId);
    return { aiResponse, citations, ...(told?.model ? { model: told.model } : {}) };
  }

  /** One after the other: what was saved on the way must not come after the end. False: the answer before stays. */
  #save(episodeId: string, answered: Answered): Promise<boolean> {
    const save = async () => {
      const found = await this.#house.records.episodes.findOne(episodeId).exec();
      if (found && worth(found) > worth(answered)) return false;
      if (found && answered.status === "done") await this.#countUse(found.id, answered.citations);
      const change = ({ model: _, ...row }: EpisodeDoc) => ({ ...row, ...answered, updatedAt: now() });
      if (found) await edit<EpisodeDoc>(found, change);
      return true;
    };
    return (this.#saving = this.#saving.catch(() => false).then(save));
  }
}

function cited(told: PromptSummary["citations"][number]): Citation {
  return citation({ ...told, page: told.page ?? null });
}
