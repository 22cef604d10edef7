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
import { whenAborted, waitForUploads, type UploadState } from "../uploads/waitForUploads.ts";
import { streamAnswer, fetchAssistant, type Assistant, type PromptSummary } from "./assistantClient.ts";
import { newRowFields, now, type AccountContext } from "../account/accountContext.ts";
import { DeferredQuestions } from "./deferredQuestions.ts";
import { loadModule } from "../loadModule.ts";
import { isForNow, patiently } from "../../lib/backoff/retryWhileBusy.ts";
import type { DocumentSearch } from "../library/documentSearch.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";
import { UnansweredQuestions } from "./unansweredQuestions.ts";

/** The answer that is being written, ahead of its row. */
export interface StreamingAnswer {
  episodeId: string;
  aiResponse: string;
  citations: Citation[];
  promptSummary: PromptSummary | null;
  /** Names of files that it waits for. */
  awaitedFiles: string[];
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

const SAVE_INTERVAL_MS = 2_000;
const PUSH_WAIT_MS = 3_000;
const MAX_PROMPT_SUMMARIES = 50;
/** Other tabs and devices take a turn of which they hear nothing for a minute for broken off. */
const TOUCH_INTERVAL_MS = 30_000;

/** Not needed to open the app, and soon after. */
const loadAnswerMemory = () => loadModule(import("./answerMemory.ts"));

interface RunningAnswer {
  stop: AbortController;
  /** Of the waiting for files. */
  skipUploads: AbortController;
  end: Promise<unknown>;
}

const RENDER_INTERVAL_MS = 250; // each time the Markdown is parsed
const BOTH_ENDS = { leading: true, trailing: true };

type AnswerFields = Pick<EpisodeDoc, "aiResponse" | "citations" | "status" | "model">;

export class AnswerService {
  /** What is being written in this tab, by the id of its turn. */
  readonly streaming$ = new BehaviorSubject<Record<string, StreamingAnswer>>({});
  /** The same, as often as it is drawn. */
  readonly throttledStreaming$ = this.streaming$.pipe(
    throttleTime(RENDER_INTERVAL_MS, asyncScheduler, BOTH_ENDS),
  );
  readonly #context: AccountContext;
  readonly #syncing: SyncCoordinator;
  readonly #loadSearch: () => Promise<DocumentSearch>;
  readonly #uploads: UploadState;
  /** Whether there is an assistant, as far as this device knows, and which turns wait for it. */
  readonly assistant$ = new BehaviorSubject<AssistantState>({
    assistant: null,
    deferred: [],
    keptAnswers: {},
  });
  /** Those that are under way, or wait for the one before them to end. */
  readonly #running = new Map<string, RunningAnswer>();
  #saving: Promise<boolean> = Promise.resolve(true);
  /** The documents of each answer here that have been counted as used. */
  readonly #countedDocuments = new Map<string, Set<string>>();
  /** What went into the last prompts. */
  readonly #promptSummaries = new Map<string, PromptSummary>();
  readonly #unanswered: UnansweredQuestions;
  readonly #deferred: DeferredQuestions;

  constructor(
    context: AccountContext,
    syncing: SyncCoordinator,
    searcher: () => Promise<DocumentSearch>,
    arrivals: UploadState,
  ) {
    this.#context = context;
    this.#syncing = syncing;
    this.#loadSearch = searcher;
    this.#uploads = arrivals;
    // While there is a network: one that hangs gives nothing, and a question would wait for it.
    for (const load of [searcher, loadAnswerMemory]) load().catch(() => {});
    this.#unanswered = new UnansweredQuestions(context);
    this.#deferred = new DeferredQuestions(context, {
      isAway: () => isAway(syncing.summary$.value.kind),
      isAvailable: () => this.#isAssistantAvailable(),
      answer: (episodeId) => this.#run(episodeId, () => this.#prepareAgain(episodeId)),
      onChange: () => this.#refreshState(),
    });
    syncing.summary$
      .pipe(
        map(({ kind }) => kind),
        distinctUntilChanged(),
      )
      .subscribe((kind) => void (kind === "live" ? this.#deferred.askAll() : this.#refreshState()));
    context.database.episodes.$.subscribe(({ documentId }) => {
      const { [documentId]: why, ...kept } = this.assistant$.value.keptAnswers;
      if (why !== undefined) this.#updateState({ keptAnswers: kept }); // another answer came, here or elsewhere
    });
    context.forgotten$.subscribe(() => {
      this.#promptSummaries.clear();
      void this.#refreshState();
    });
  }

  /** The id of the turn; its answer follows. */
  async ask(sessionId: string, userMessage: string): Promise<string> {
    const row: EpisodeDoc = {
      ...newRowFields(this.#context),
      sessionId,
      userMessage,
      aiResponse: "",
      citations: [],
      status: "queued",
    };
    await this.#unanswered.add(row.id);
    await this.#start(row.id, async () => {
      await this.#context.database.episodes.insert(row);
      return row;
    });
    return row.id;
  }

  /** Answers what a page that is gone has left without an answer. */
  async resume(): Promise<void> {
    for (const episodeId of await this.#unanswered.claimAbandoned()) {
      if (await this.#unanswered.isUnanswered(episodeId))
        void this.answerAgain(episodeId).catch(console.error);
      else void this.#unanswered.remove(episodeId);
    }
  }

  /** Answers a turn anew, with other words if they are given. What came after it stays. Resolves when it has begun. */
  answerAgain(episodeId: string, userMessage?: string): Promise<void> {
    return this.#start(episodeId, () => this.#prepareAgain(episodeId, userMessage));
  }

  stop(episodeId: string): void {
    this.#running.get(episodeId)?.stop.abort();
  }

  /** Without the files that it waits for. */
  answerNow(episodeId: string): void {
    this.#running.get(episodeId)?.skipUploads.abort();
  }

  /** Whether the assistant shall answer a turn of quotations once the server is back. */
  later(episodeId: string, wanted: boolean): Promise<void> {
    return this.#deferred.setDeferred(episodeId, wanted);
  }

  /** What went into the prompt of a turn that was answered since the app was opened. */
  promptSummaryOf(episodeId: string): PromptSummary | null {
    return this.#promptSummaries.get(episodeId) ?? null;
  }

  /** The turn, with the answer that it has until there is a better one; other words have none. Null: it is gone. */
  async #prepareAgain(episodeId: string, userMessage?: string): Promise<EpisodeDoc | null> {
    const found = await this.#context.database.episodes.findOne(episodeId).exec();
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

  async #refreshState(): Promise<void> {
    const { account, device } = this.#context;
    const known = (await device.accounts.get(account.userId))?.assistant ?? null;
    this.#updateState({ assistant: known, deferred: await this.#deferred.listIds() });
  }

  #updateState(change: Partial<AssistantState>): void {
    this.assistant$.next({ ...this.assistant$.value, ...change });
  }

  /** Resolves when the turn is ready; its answer follows. */
  #start(episodeId: string, prepare: () => Promise<EpisodeDoc | null>): Promise<void> {
    return new Promise((resolve, reject) => {
      const prepared = async () => {
        const row = await prepare();
        resolve();
        return row;
      };
      this.#run(episodeId, prepared).then(() => resolve(), reject);
    });
  }

  /** One answer a turn: the one before is stopped, and has ended before `prepare` makes the turn ready for this one. */
  #run(episodeId: string, prepare: () => Promise<EpisodeDoc | null>): Promise<AnswerFields | null> {
    const previous = this.#running.get(episodeId);
    previous?.stop.abort();
    const [stop, skipUploads] = [new AbortController(), new AbortController()];
    stop.signal.addEventListener("abort", () => skipUploads.abort());
    const write = async () => {
      await previous?.end.catch(() => {}); // told to whoever asked for it
      try {
        if (stop.signal.aborted) return null;
        this.#updateStreaming(episodeId, {}); // from now on it can be seen, and stopped
        const row = await prepare();
        return row && (await this.#answerLocked(row, stop.signal, skipUploads.signal));
      } finally {
        const { [episodeId]: _, ...others } = this.streaming$.value;
        this.streaming$.next(others);
        if (this.#running.get(episodeId)?.stop === stop) this.#running.delete(episodeId);
        void this.#unanswered.remove(episodeId);
      }
    };
    const end = write();
    this.#running.set(episodeId, { stop, skipUploads, end });
    return end;
  }

  /** While the lock is held the turn is being answered here: no other tab of this device takes it up. */
  #answerLocked(row: EpisodeDoc, signal: AbortSignal, skipUploads: AbortSignal): Promise<AnswerFields> {
    if (row.status === "done" && !this.#countedDocuments.has(row.id)) {
      this.#countedDocuments.set(row.id, new Set(row.citations.map(({ documentId }) => documentId)));
    }
    return navigator.locks.request(`vademecum-answer-${row.id}`, async () => {
      try {
        const stopped = () => ({ ...this.#partialAnswer(row.id), status: "stopped" as const });
        const answering = this.#answerAfterUploads(row, signal, skipUploads);
        const answered = await Promise.race([answering, whenAborted(signal).then(stopped)]);
        await this.#finish(row.id, answered);
        return answered;
      } catch (error) {
        await this.#finish(row.id, { ...this.#partialAnswer(row.id), status: "failed" }); // it must not wait for ever
        throw error;
      }
    });
  }

  /** What comes to less than the answer before is not kept; who asked is told. */
  async #finish(episodeId: string, answered: AnswerFields): Promise<void> {
    if ((await this.#save(episodeId, answered)) || answered.status === "stopped") return;
    const why = answered.model ? "" : answered.aiResponse;
    this.#updateState({ keptAnswers: { ...this.assistant$.value.keptAnswers, [episodeId]: why } });
  }

  /** When the files are here that the conversation is taking in; of those that do not come, or not yet, it speaks. */
  async #answerAfterUploads(
    row: EpisodeDoc,
    signal: AbortSignal,
    skipUploads: AbortSignal,
  ): Promise<AnswerFields> {
    const missing = await this.#waitForUploads(row, skipUploads);
    signal.throwIfAborted();
    this.#updateStreaming(row.id, { awaitedFiles: [] });
    const answered = await this.#createAnswer(row, signal);
    const texts = [answered.aiResponse, ...lacking(missing)];
    return { ...answered, aiResponse: texts.filter(Boolean).join("\n\n") };
  }

  async #waitForUploads({ id, sessionId }: EpisodeDoc, skipUploads: AbortSignal): Promise<Task[]> {
    if (!this.#context.account.limits.searchesDocuments) return [];
    const touchTimer = setInterval(() => void this.#touch(id), TOUCH_INTERVAL_MS);
    const onWaiting = (awaits: string[]) => this.#updateStreaming(id, { awaitedFiles: awaits });
    try {
      return await waitForUploads(this.#context, this.#uploads, sessionId, onWaiting, skipUploads);
    } finally {
      clearInterval(touchTimer);
    }
  }

  async #touch(episodeId: string): Promise<void> {
    const found = await this.#context.database.episodes.findOne(episodeId).exec();
    const touched = (row: EpisodeDoc) => (row.status === "queued" ? { ...row, updatedAt: now() } : row);
    if (found) await edit<EpisodeDoc>(found, touched);
  }

  async #createAnswer(row: EpisodeDoc, signal: AbortSignal): Promise<AnswerFields> {
    if (!(await this.#isAssistantAvailable())) return this.#answerByQuotation(row);
    try {
      return await this.#askAssistant(row, signal);
    } catch (error) {
      if (signal.aborted) throw error; // nobody waits for it any more
      if (isForNow(error)) return this.#answerByQuotation(row);
      if (error instanceof Refusal && error.status < 500 && error.status !== 401) {
        return { ...this.#partialAnswer(row.id), aiResponse: error.message, status: "failed" };
      }
      return this.#answerByQuotation(row); // the server is away, or its assistant: the documents are here
    }
  }

  /** Whether the assistant can be asked now. Only who knows that the server is away need not ask it. */
  async #isAssistantAvailable(): Promise<boolean> {
    if (isAway(this.#syncing.summary$.value.kind)) return false;
    const { account, device, server: wire } = this.#context;
    try {
      const assistant = await fetchAssistant(wire);
      await device.accounts.update(account.userId, { assistant: assistant });
      return assistant.available;
    } catch {
      return false;
    }
  }

  async #askAssistant(row: EpisodeDoc, signal: AbortSignal): Promise<AnswerFields> {
    await this.#syncing.waitUntilPushed(PUSH_WAIT_MS); // the server tells the assistant what it has of this session
    let savedAt = performance.now();
    const write = (change: Partial<StreamingAnswer>) => {
      if (signal.aborted) return;
      this.#updateStreaming(row.id, change);
      if (performance.now() - savedAt < SAVE_INTERVAL_MS) return;
      savedAt = performance.now();
      void this.#save(row.id, { ...this.#partialAnswer(row.id), status: "streaming" });
    };
    const question = { query: row.userMessage, sessionId: row.sessionId, episodeId: row.id };
    const listener = {
      context: (told: PromptSummary) => {
        this.#keepPromptSummary(row.id, told);
        write({ promptSummary: told, citations: told.citations.map(toCitation) });
      },
      delta: (text: string) => write({ aiResponse: this.#streamingAnswer(row.id).aiResponse + text }),
      restart: () => write({ aiResponse: "" }),
    };
    const ask = () => streamAnswer(this.#context.server, question, listener, signal);
    // Not saved: a question that nothing has come of is asked again when the app is opened anew.
    const onWait = (waitsS: number) => signal.aborted || this.#updateStreaming(row.id, { retryInS: waitsS });
    const ending = await patiently(ask, signal, onWait);
    const written = this.#partialAnswer(row.id);
    if (ending === "whole") return { ...written, status: "done" };
    if (!written.aiResponse) return this.#answerByQuotation(row);
    return { ...written, status: ending === "cut" ? "stopped" : "failed" };
  }

  async #answerByQuotation(row: EpisodeDoc): Promise<AnswerFields> {
    const [{ aiResponse, citations }, recalled] = await Promise.all([
      this.#findQuotations(row),
      this.#recallMemory(row),
    ]);
    const text = [aiResponse, recalled].filter(Boolean).join("\n\n");
    return { aiResponse: text, citations, status: "done", model: QUOTES };
  }

  async #findQuotations({ userMessage, sessionId }: EpisodeDoc): Promise<Quoted> {
    if (!this.#context.account.limits.searchesDocuments)
      return { aiResponse: written.noSearch, citations: [] };
    const searcher = await this.#loadSearch();
    return quoted(userMessage, await searcher.search(userMessage, sessionId, QUOTED));
  }

  /** The answer is worth more than what memory adds to it, and does not fail with it. */
  async #recallMemory(row: EpisodeDoc): Promise<string> {
    try {
      return await (await loadAnswerMemory()).recallForAnswer(this.#context, row);
    } catch (error) {
      console.error(error);
      return "";
    }
  }

  #keepPromptSummary(episodeId: string, told: PromptSummary): void {
    this.#promptSummaries.set(episodeId, told);
    const [oldest] = this.#promptSummaries.keys();
    if (this.#promptSummaries.size > MAX_PROMPT_SUMMARIES && oldest !== undefined)
      this.#promptSummaries.delete(oldest);
  }

  /** Once a turn: not again for the answers that take the place of the first. */
  async #countUse(episodeId: string, citations: readonly Citation[]): Promise<void> {
    const counted = this.#countedDocuments.get(episodeId) ?? new Set();
    const cited = citations.map(({ documentId }) => documentId);
    this.#countedDocuments.set(episodeId, new Set([...counted, ...cited]));
    const uncounted = new Set(cited.filter((id) => !counted.has(id)));
    await countUse(this.#context, uncounted).catch(console.error); // the answer matters more
  }

  #updateStreaming(episodeId: string, change: Partial<StreamingAnswer>): void {
    const writing = { ...this.#streamingAnswer(episodeId), ...change };
    this.streaming$.next({ ...this.streaming$.value, [episodeId]: writing });
  }

  #streamingAnswer(episodeId: string): StreamingAnswer {
    const empty = {
      episodeId,
      aiResponse: "",
      citations: [],
      promptSummary: null,
      awaitedFiles: [],
      retryInS: 0,
    };
    return this.streaming$.value[episodeId] ?? empty;
  }

  #partialAnswer(episodeId: string): Omit<AnswerFields, "status"> {
    const { aiResponse, citations, promptSummary: told } = this.#streamingAnswer(episodeId);
    return { aiResponse, citations, ...(told?.model ? { model: told.model } : {}) };
  }

  /** One after the other: what was saved on the way must not come after the end. False: the answer before stays. */
  #save(episodeId: string, answered: AnswerFields): Promise<boolean> {
    const save = async () => {
      const found = await this.#context.database.episodes.findOne(episodeId).exec();
      if (found && worth(found) > worth(answered)) return false;
      if (found && answered.status === "done") await this.#countUse(found.id, answered.citations);
      const change = ({ model: _, ...row }: EpisodeDoc) => ({ ...row, ...answered, updatedAt: now() });
      if (found) await edit<EpisodeDoc>(found, change);
      return true;
    };
    return (this.#saving = this.#saving.catch(() => false).then(save));
  }
}

function toCitation(passage: PromptSummary["citations"][number]): Citation {
  return citation({ ...passage, page: passage.page ?? null });
}
