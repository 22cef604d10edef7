/**
 * A question and its answer: by the assistant where one is set up and the server answers, else by quotations from the
 * documents. The turn is a row from the first moment, so it is on every device and survives the page.
 */

import { asyncScheduler, BehaviorSubject, distinctUntilChanged, map, throttleTime } from "rxjs";
import { lockNames } from "../../lib/locks.ts";
import { ApiError } from "../../lib/http.ts";
import { QUOTES, toCitation, type Citation } from "../../core/chat/citation.ts";
import { isAway } from "../../core/sync/syncStatus.ts";
import { MAX_QUOTED, quotationAnswer, type QuotationAnswer } from "../../core/chat/quotationAnswer.ts";
import { editRow } from "../../storage/editRow.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import { answerPriority } from "../../core/chat/answerPriority.ts";
import { storedSentences } from "../../core/chat/storedSentences.ts";
import { unfinishedFilenames, type Task } from "../../core/documents/uploadTask.ts";
import { countUse } from "../library/documents.ts";
import { whenAborted, waitForUploads, type IncomingFiles } from "../uploads/waitForUploads.ts";
import { streamAnswer, fetchAssistant, type Assistant, type PromptSummary } from "./assistantClient.ts";
import { newRow, now, type AccountContext } from "../account/accountContext.ts";
import { DeferredQuestions } from "./deferredQuestions.ts";
import { loadModule } from "../loadModule.ts";
import { isTemporary, retryWhileBusy } from "../../lib/backoff.ts";
import type { DocumentSearch } from "../library/documentSearch.ts";
import type { SyncCoordinator } from "../sync/syncCoordinator.ts";
import { UnansweredQuestions } from "./unansweredQuestions.ts";

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

const SAVE_INTERVAL_MS = 2_000;
const PUSH_TIMEOUT_MS = 3_000;
const MAX_PROMPT_SUMMARIES = 50;
/** Other tabs and devices take a turn of which they hear nothing for a minute for broken off. */
const HEARTBEAT_MS = 30_000;

/** Not needed to open the app, and soon after. */
const loadAnswerMemory = () => loadModule(import("./answerMemory.ts"));

interface RunningAnswer {
  stop: AbortController;
  /** Of the waiting for files. */
  skipFiles: AbortController;
  ended: Promise<unknown>;
}

const DRAFT_INTERVAL_MS = 250; // each time the Markdown is parsed
const LEADING_AND_TRAILING = { leading: true, trailing: true };

type Answer = Pick<EpisodeDoc, "aiResponse" | "citations" | "status" | "model">;

export class AnswerService {
  /** What is being written in this tab, by the id of its turn. */
  readonly drafts$ = new BehaviorSubject<Record<string, AnswerDraft>>({});
  /** The same, as often as it is drawn. */
  readonly throttledDrafts$ = this.drafts$.pipe(
    throttleTime(DRAFT_INTERVAL_MS, asyncScheduler, LEADING_AND_TRAILING),
  );
  readonly #context: AccountContext;
  readonly #sync: SyncCoordinator;
  readonly #searcher: () => Promise<DocumentSearch>;
  readonly #incomingFiles: IncomingFiles;
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
  readonly #deferredQuestions: DeferredQuestions;

  constructor(
    context: AccountContext,
    sync: SyncCoordinator,
    searcher: () => Promise<DocumentSearch>,
    arrivals: IncomingFiles,
  ) {
    this.#context = context;
    this.#sync = sync;
    this.#searcher = searcher;
    this.#incomingFiles = arrivals;
    // While there is a network: one that hangs gives nothing, and a question would wait for it.
    for (const load of [searcher, loadAnswerMemory]) load().catch(() => {});
    this.#unanswered = new UnansweredQuestions(context);
    this.#deferredQuestions = new DeferredQuestions(context, {
      isAway: () => isAway(sync.summary$.value.kind),
      isAvailable: () => this.#isAssistantAvailable(),
      answer: (episodeId) => this.#replaceAnswer(episodeId, () => this.#reloadTurn(episodeId)),
      onChange: () => this.#refreshAssistant(),
    });
    sync.summary$
      .pipe(
        map(({ kind }) => kind),
        distinctUntilChanged(),
      )
      .subscribe(
        (kind) => void (kind === "live" ? this.#deferredQuestions.answerAll() : this.#refreshAssistant()),
      );
    context.database.episodes.$.subscribe(({ documentId }) => {
      const { [documentId]: why, ...kept } = this.assistant$.value.keptAnswers;
      if (why !== undefined) this.#updateAssistant({ keptAnswers: kept }); // another answer came, here or elsewhere
    });
    context.forgotten$.subscribe(() => {
      this.#promptSummaries.clear();
      void this.#refreshAssistant();
    });
  }

  /** The id of the turn; its answer follows. */
  async ask(sessionId: string, userMessage: string): Promise<string> {
    const row: EpisodeDoc = {
      ...newRow(this.#context),
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
    for (const episodeId of await this.#unanswered.adoptOrphans()) {
      if (await this.#unanswered.isUnanswered(episodeId))
        void this.regenerate(episodeId).catch(console.error);
      else void this.#unanswered.remove(episodeId);
    }
  }

  /** Answers a turn anew, with other words if they are given. What came after it stays. Resolves when it has begun. */
  regenerate(episodeId: string, userMessage?: string): Promise<void> {
    return this.#start(episodeId, () => this.#reloadTurn(episodeId, userMessage));
  }

  stop(episodeId: string): void {
    this.#running.get(episodeId)?.stop.abort();
  }

  /** Without the files that it waits for. */
  answerWithoutWaiting(episodeId: string): void {
    this.#running.get(episodeId)?.skipFiles.abort();
  }

  /** Whether the assistant shall answer a turn of quotations once the server is back. */
  defer(episodeId: string, wanted: boolean): Promise<void> {
    return this.#deferredQuestions.set(episodeId, wanted);
  }

  /** What went into the prompt of a turn that was answered since the app was opened. */
  promptSummary(episodeId: string): PromptSummary | null {
    return this.#promptSummaries.get(episodeId) ?? null;
  }

  /** The turn, with the answer that it has until there is a better one; other words have none. Null: it is gone. */
  async #reloadTurn(episodeId: string, userMessage?: string): Promise<EpisodeDoc | null> {
    const found = await this.#context.database.episodes.findOne(episodeId).exec();
    if (!found) return null;
    if (userMessage !== undefined && userMessage !== found.userMessage) {
      await editRow<EpisodeDoc>(found, ({ model: _, ...row }) => ({
        ...row,
        ...{ userMessage, aiResponse: "", citations: [], status: "queued", updatedAt: now() },
      }));
    }
    const asked = found.getLatest();
    return asked.deleted ? null : (asked.toMutableJSON() as EpisodeDoc);
  }

  async #refreshAssistant(): Promise<void> {
    const { account, device } = this.#context;
    const known = (await device.accounts.get(account.userId))?.assistant ?? null;
    this.#updateAssistant({ assistant: known, deferred: await this.#deferredQuestions.ids() });
  }

  #updateAssistant(change: Partial<AssistantState>): void {
    this.assistant$.next({ ...this.assistant$.value, ...change });
  }

  /** Resolves when the turn is ready; its answer follows. */
  #start(episodeId: string, prepare: () => Promise<EpisodeDoc | null>): Promise<void> {
    return new Promise((begun, failed) => {
      const prepared = async () => {
        const row = await prepare();
        begun();
        return row;
      };
      this.#replaceAnswer(episodeId, prepared).then(() => begun(), failed);
    });
  }

  /** One answer a turn: the one before is stopped, and has ended before `prepare` makes the turn ready for this one. */
  #replaceAnswer(episodeId: string, prepare: () => Promise<EpisodeDoc | null>): Promise<Answer | null> {
    const before = this.#running.get(episodeId);
    before?.stop.abort();
    const [stop, enough] = [new AbortController(), new AbortController()];
    stop.signal.addEventListener("abort", () => enough.abort());
    const write = async () => {
      await before?.ended.catch(() => {}); // told to whoever asked for it
      try {
        if (stop.signal.aborted) return null;
        this.#updateDraft(episodeId, {}); // from now on it can be seen, and stopped
        const row = await prepare();
        return row && (await this.#answerLocked(row, stop.signal, enough.signal));
      } finally {
        const { [episodeId]: _, ...others } = this.drafts$.value;
        this.drafts$.next(others);
        if (this.#running.get(episodeId)?.stop === stop) this.#running.delete(episodeId);
        void this.#unanswered.remove(episodeId);
      }
    };
    const ended = write();
    this.#running.set(episodeId, { stop, skipFiles: enough, ended });
    return ended;
  }

  /** While the lock is held the turn is being answered here: no other tab of this device takes it up. */
  #answerLocked(row: EpisodeDoc, signal: AbortSignal, enough: AbortSignal): Promise<Answer> {
    if (row.status === "done" && !this.#countedDocuments.has(row.id)) {
      this.#countedDocuments.set(row.id, new Set(row.citations.map(({ documentId }) => documentId)));
    }
    return navigator.locks.request(lockNames.answer(row.id), async () => {
      try {
        const stopped = () => ({ ...this.#draftAnswer(row.id), status: "stopped" as const });
        const answering = this.#answerWithFiles(row, signal, enough);
        const answered = await Promise.race([answering, whenAborted(signal).then(stopped)]);
        await this.#finish(row.id, answered);
        return answered;
      } catch (error) {
        await this.#finish(row.id, { ...this.#draftAnswer(row.id), status: "failed" }); // it must not wait for ever
        throw error;
      }
    });
  }

  /** What comes to less than the answer before is not kept; who asked is told. */
  async #finish(episodeId: string, answered: Answer): Promise<void> {
    if ((await this.#save(episodeId, answered)) || answered.status === "stopped") return;
    const why = answered.model ? "" : answered.aiResponse;
    this.#updateAssistant({ keptAnswers: { ...this.assistant$.value.keptAnswers, [episodeId]: why } });
  }

  /** When the files are here that the conversation is taking in; of those that do not come, or not yet, it speaks. */
  async #answerWithFiles(row: EpisodeDoc, signal: AbortSignal, enough: AbortSignal): Promise<Answer> {
    const missing = await this.#waitForFiles(row, enough);
    signal.throwIfAborted();
    this.#updateDraft(row.id, { pendingFiles: [] });
    const answered = await this.#answer(row, signal);
    const said = [answered.aiResponse, ...unfinishedFilenames(missing)];
    return { ...answered, aiResponse: said.filter(Boolean).join("\n\n") };
  }

  async #waitForFiles({ id, sessionId }: EpisodeDoc, enough: AbortSignal): Promise<Task[]> {
    if (!this.#context.account.limits.searchesDocuments) return [];
    const alive = setInterval(() => void this.#sendHeartbeat(id), HEARTBEAT_MS);
    const tell = (awaits: string[]) => this.#updateDraft(id, { pendingFiles: awaits });
    try {
      return await waitForUploads(this.#context, this.#incomingFiles, sessionId, tell, enough);
    } finally {
      clearInterval(alive);
    }
  }

  async #sendHeartbeat(episodeId: string): Promise<void> {
    const found = await this.#context.database.episodes.findOne(episodeId).exec();
    const touched = (row: EpisodeDoc) => (row.status === "queued" ? { ...row, updatedAt: now() } : row);
    if (found) await editRow<EpisodeDoc>(found, touched);
  }

  async #answer(row: EpisodeDoc, signal: AbortSignal): Promise<Answer> {
    if (!(await this.#isAssistantAvailable())) return this.#answerWithQuotations(row);
    try {
      return await this.#askAssistant(row, signal);
    } catch (error) {
      if (signal.aborted) throw error; // nobody waits for it any more
      if (isTemporary(error)) return this.#answerWithQuotations(row);
      if (error instanceof ApiError && error.status < 500 && error.status !== 401) {
        return { ...this.#draftAnswer(row.id), aiResponse: error.message, status: "failed" };
      }
      return this.#answerWithQuotations(row); // the server is away, or its assistant: the documents are here
    }
  }

  /** Whether the assistant can be asked now. Only who knows that the server is away need not ask it. */
  async #isAssistantAvailable(): Promise<boolean> {
    if (isAway(this.#sync.summary$.value.kind)) return false;
    const { account, device, server } = this.#context;
    try {
      const known = await fetchAssistant(server);
      await device.accounts.update(account.userId, { assistant: known });
      return known.available;
    } catch {
      return false;
    }
  }

  async #askAssistant(row: EpisodeDoc, signal: AbortSignal): Promise<Answer> {
    await this.#sync.waitUntilPushed(PUSH_TIMEOUT_MS); // the server tells the assistant what it has of this session
    let saved = performance.now();
    const write = (change: Partial<AnswerDraft>) => {
      if (signal.aborted) return;
      this.#updateDraft(row.id, change);
      if (performance.now() - saved < SAVE_INTERVAL_MS) return;
      saved = performance.now();
      void this.#save(row.id, { ...this.#draftAnswer(row.id), status: "streaming" });
    };
    const question = { query: row.userMessage, sessionId: row.sessionId, episodeId: row.id };
    const listener = {
      onContext: (told: PromptSummary) => {
        this.#keepPromptSummary(row.id, told);
        write({ promptSummary: told, citations: told.citations.map(citationOf) });
      },
      onDelta: (text: string) => write({ aiResponse: this.#draft(row.id).aiResponse + text }),
      onRestart: () => write({ aiResponse: "" }),
    };
    const asked = () => streamAnswer(this.#context.server, question, listener, signal);
    // Not saved: a question that nothing has come of is asked again when the app is opened anew.
    const waits = (waitsS: number) => signal.aborted || this.#updateDraft(row.id, { retryInS: waitsS });
    const ending = await retryWhileBusy(asked, signal, waits);
    const draft = this.#draftAnswer(row.id);
    if (ending === "whole") return { ...draft, status: "done" };
    if (!draft.aiResponse) return this.#answerWithQuotations(row);
    return { ...draft, status: ending === "cut" ? "stopped" : "failed" };
  }

  async #answerWithQuotations(row: EpisodeDoc): Promise<Answer> {
    const [{ aiResponse, citations }, remembered] = await Promise.all([
      this.#quotations(row),
      this.#memoryText(row),
    ]);
    const said = [aiResponse, remembered].filter(Boolean).join("\n\n");
    return { aiResponse: said, citations, status: "done", model: QUOTES };
  }

  async #quotations({ userMessage, sessionId }: EpisodeDoc): Promise<QuotationAnswer> {
    if (!this.#context.account.limits.searchesDocuments)
      return { aiResponse: storedSentences.noSearch, citations: [] };
    const searcher = await this.#searcher();
    return quotationAnswer(userMessage, await searcher.search(userMessage, sessionId, MAX_QUOTED));
  }

  /** The answer is worth more than what memory adds to it, and does not fail with it. */
  async #memoryText(row: EpisodeDoc): Promise<string> {
    try {
      return await (await loadAnswerMemory()).rememberedFacts(this.#context, row);
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
    const used = this.#countedDocuments.get(episodeId) ?? new Set();
    const cited = citations.map(({ documentId }) => documentId);
    this.#countedDocuments.set(episodeId, new Set([...used, ...cited]));
    const first = new Set(cited.filter((id) => !used.has(id)));
    await countUse(this.#context, first).catch(console.error); // the answer matters more
  }

  #updateDraft(episodeId: string, change: Partial<AnswerDraft>): void {
    const writing = { ...this.#draft(episodeId), ...change };
    this.drafts$.next({ ...this.drafts$.value, [episodeId]: writing });
  }

  #draft(episodeId: string): AnswerDraft {
    const begun = {
      episodeId,
      aiResponse: "",
      citations: [],
      promptSummary: null,
      pendingFiles: [],
      retryInS: 0,
    };
    return this.drafts$.value[episodeId] ?? begun;
  }

  #draftAnswer(episodeId: string): Omit<Answer, "status"> {
    const { aiResponse, citations, promptSummary: told } = this.#draft(episodeId);
    return { aiResponse, citations, ...(told?.model ? { model: told.model } : {}) };
  }

  /** One after the other: what was saved on the way must not come after the end. False: the answer before stays. */
  #save(episodeId: string, answered: Answer): Promise<boolean> {
    const save = async () => {
      const found = await this.#context.database.episodes.findOne(episodeId).exec();
      if (found && answerPriority(found) > answerPriority(answered)) return false;
      if (found && answered.status === "done") await this.#countUse(found.id, answered.citations);
      const change = ({ model: _, ...row }: EpisodeDoc) => ({ ...row, ...answered, updatedAt: now() });
      if (found) await editRow<EpisodeDoc>(found, change);
      return true;
    };
    return (this.#saving = this.#saving.catch(() => false).then(save));
  }
}

function citationOf(told: PromptSummary["citations"][number]): Citation {
  return toCitation({ ...told, page: told.page ?? null });
}
