/**
 * Answer questions: by the assistant if there is one and the server is reachable, otherwise by quotations from the
 * documents. The turn is stored as a row before it is answered, so it reaches every device and survives a closed page.
 */

import { asyncScheduler, BehaviorSubject, distinctUntilChanged, map, throttleTime } from "rxjs";
import { lockNames } from "../../lib/locks.ts";
import { ApiError } from "../../lib/http.ts";
import { QUOTES, toCitation, type Citation } from "../../core/chat/citation.ts";
import { isAway } from "../../core/sync/syncStatus.ts";
import { MAX_QUOTED, quotationAnswer, type QuotationAnswer } from "../../core/chat/quotationAnswer.ts";
import { editRow } from "../../storage/editRow.ts";
import type { EpisodeDoc } from "../../core/schema/rows.ts";
import { usedDocuments } from "../../core/chat/answers.ts";
import { answerPriority } from "../../core/chat/answerPriority.ts";
import { notice, noticesField } from "../../core/chat/notices.ts";
import { unfinishedNotices, type Task } from "../../core/documents/uploadTask.ts";
import { countUse } from "../library/documents.ts";
import { whenAborted, waitForUploads, type IncomingFiles } from "../uploads/waitForUploads.ts";
import { streamAnswer, fetchAssistant, type Assistant, type PromptSummary } from "./assistantClient.ts";
import { newRow, now, type AccountContext } from "../account/accountContext.ts";
import { DeferredQuestions } from "./deferredQuestions.ts";
import { loadModule } from "../loadModule.ts";
import { isTemporary, retryWhileBusy } from "../../lib/backoff.ts";
import type { DocumentSearch } from "../library/documentSearch.ts";
import type { TabCoordinator } from "../sync/tabCoordinator.ts";
import { UnansweredQuestions } from "./unansweredQuestions.ts";

/** An answer that is being written. Its stored row is updated less often. */
export interface AnswerDraft {
  episodeId: string;
  aiResponse: string;
  citations: Citation[];
  promptSummary: PromptSummary | null;
  /** Names of the files that the answer waits for. */
  pendingFiles: string[];
  /** Seconds until the request to a busy assistant is retried, or 0. */
  retryInS: number;
}

export interface AssistantState {
  assistant: Assistant | null;
  /** Ids of the turns that wait for the assistant. */
  deferred: string[];
  /**
   * Maps the id of each turn that kept its previous answer to the reason why the new answer did not replace it. A
   * reason can be empty.
   */
  keptAnswers: Record<string, string>;
}

const SAVE_INTERVAL_MS = 2_000;
const PUSH_TIMEOUT_MS = 3_000;
const MAX_PROMPT_SUMMARIES = 50;
/**
 * Interval between updates of a turn that waits for files. After a minute without an update, other devices show an
 * unfinished turn as interrupted.
 */
const HEARTBEAT_MS = 30_000;

/**
 * Load the module that recalls memories. It is first loaded when the app opens, while the network is likely to work.
 */
const loadAnswerMemory = () => loadModule(import("./answerMemory.ts"));

interface RunningAnswer {
  stop: AbortController;
  /** Controller that ends the wait for files. */
  skipFiles: AbortController;
  ended: Promise<unknown>;
}

const DRAFT_INTERVAL_MS = 250; // limited, because the page parses the whole Markdown again at each update
const LEADING_AND_TRAILING = { leading: true, trailing: true };

type Answer = Pick<EpisodeDoc, "aiResponse" | "citations" | "status" | "model" | "notices">;

export class AnswerService {
  /** The answers that this tab is writing, by turn id. */
  readonly drafts$ = new BehaviorSubject<Record<string, AnswerDraft>>({});
  /** The drafts, throttled to the rate at which the page renders them. */
  readonly throttledDrafts$ = this.drafts$.pipe(
    throttleTime(DRAFT_INTERVAL_MS, asyncScheduler, LEADING_AND_TRAILING),
  );
  readonly #context: AccountContext;
  readonly #sync: TabCoordinator;
  readonly #searcher: () => Promise<DocumentSearch>;
  readonly #incomingFiles: IncomingFiles;
  /** The last known assistant, the turns that wait for it, and the turns that kept their previous answer. */
  readonly assistant$ = new BehaviorSubject<AssistantState>({
    assistant: null,
    deferred: [],
    keptAnswers: {},
  });
  /** Maps the id of a turn to its latest answer, which is running or waits for the turn's previous answer to end. */
  readonly #running = new Map<string, RunningAnswer>();
  #saving: Promise<boolean> = Promise.resolve(true);
  /** Maps the id of a turn to the ids of the documents that were counted as used by the turn. */
  readonly #countedDocuments = new Map<string, Set<string>>();
  /** Summaries of the last prompts, by turn id. */
  readonly #promptSummaries = new Map<string, PromptSummary>();
  readonly #unanswered: UnansweredQuestions;
  readonly #deferredQuestions: DeferredQuestions;

  constructor(
    context: AccountContext,
    sync: TabCoordinator,
    searcher: () => Promise<DocumentSearch>,
    arrivals: IncomingFiles,
  ) {
    this.#context = context;
    this.#sync = sync;
    this.#searcher = searcher;
    this.#incomingFiles = arrivals;
    // Load the modules now. Later the network may hang, and a question would wait for the modules.
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
      // The turn has a new answer from this device or another, so the reason no longer applies.
      if (why !== undefined) this.#updateAssistant({ keptAnswers: kept });
    });
    context.forgotten$.subscribe(() => {
      this.#promptSummaries.clear();
      void this.#refreshAssistant();
    });
  }

  /** Store a question and start its answer. Return the id of the turn. */
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

  /** Answer the questions that closed pages left unanswered. */
  async resume(): Promise<void> {
    for (const episodeId of await this.#unanswered.adoptOrphans()) {
      if (await this.#unanswered.isUnanswered(episodeId))
        void this.regenerate(episodeId).catch(console.error);
      else void this.#unanswered.remove(episodeId);
    }
  }

  /** Answer a turn again, optionally with an edited question. Later turns stay. Resolve when the answer has started. */
  regenerate(episodeId: string, userMessage?: string): Promise<void> {
    return this.#start(episodeId, () => this.#reloadTurn(episodeId, userMessage));
  }

  stop(episodeId: string): void {
    this.#running.get(episodeId)?.stop.abort();
  }

  /** Answer without the files that the turn waits for. */
  answerWithoutWaiting(episodeId: string): void {
    this.#running.get(episodeId)?.skipFiles.abort();
  }

  /** Set whether the assistant replaces the quotation answer of a turn once the assistant is available. */
  defer(episodeId: string, wanted: boolean): Promise<void> {
    return this.#deferredQuestions.set(episodeId, wanted);
  }

  /**
   * Return the prompt summary of a turn. Return null if the assistant has not answered the turn since the app was
   * opened, or has answered too many other turns after it (see MAX_PROMPT_SUMMARIES).
   */
  promptSummary(episodeId: string): PromptSummary | null {
    return this.#promptSummaries.get(episodeId) ?? null;
  }

  /**
   * Return the turn with its current answer or, if the question was edited, with the new question and no answer. Return
   * null if the turn was deleted.
   */
  async #reloadTurn(episodeId: string, userMessage?: string): Promise<EpisodeDoc | null> {
    const found = await this.#context.database.episodes.findOne(episodeId).exec();
    if (!found) return null;
    if (userMessage !== undefined && userMessage !== found.userMessage) {
      await editRow<EpisodeDoc>(found, ({ model: _, notices: __, ...row }) => ({
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

  /** Start an answer and resolve when the turn is stored. */
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

  /** Stop the turn's running answer, wait for its end, then prepare the turn and answer it. */
  #replaceAnswer(episodeId: string, prepare: () => Promise<EpisodeDoc | null>): Promise<Answer | null> {
    const before = this.#running.get(episodeId);
    before?.stop.abort();
    const [stop, enough] = [new AbortController(), new AbortController()];
    stop.signal.addEventListener("abort", () => enough.abort());
    const write = async () => {
      await before?.ended.catch(() => {}); // the caller that started the previous answer gets its error
      try {
        if (stop.signal.aborted) return null;
        this.#updateDraft(episodeId, {}); // create a draft: the page shows it and can stop the answer
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

  /** Answer a turn while holding its lock, so that no other tab of this device answers it. */
  #answerLocked(row: EpisodeDoc, signal: AbortSignal, enough: AbortSignal): Promise<Answer> {
    if (row.status === "done" && !this.#countedDocuments.has(row.id)) {
      this.#countedDocuments.set(row.id, new Set(usedDocuments(row)));
    }
    return navigator.locks.request(lockNames.answer(row.id), async () => {
      try {
        const stopped = () => ({ ...this.#draftAnswer(row.id), status: "stopped" as const });
        const answering = this.#answerWithFiles(row, signal, enough);
        const answered = await Promise.race([answering, whenAborted(signal).then(stopped)]);
        await this.#finish(row.id, answered);
        return answered;
      } catch (error) {
        // Store the failure, because the turn must not stay queued.
        await this.#finish(row.id, { ...this.#draftAnswer(row.id), status: "failed" });
        throw error;
      }
    });
  }

  /**
   * Store the final answer. If the previous answer has a higher priority, keep the previous answer and publish the
   * reason.
   */
  async #finish(episodeId: string, answered: Answer): Promise<void> {
    if ((await this.#save(episodeId, answered)) || answered.status === "stopped") return;
    const why = answered.model ? "" : answered.aiResponse;
    this.#updateAssistant({ keptAnswers: { ...this.assistant$.value.keptAnswers, [episodeId]: why } });
  }

  /** Wait for the files of the chat, then answer. The answer names the files that are missing. */
  async #answerWithFiles(row: EpisodeDoc, signal: AbortSignal, enough: AbortSignal): Promise<Answer> {
    const missing = await this.#waitForFiles(row, enough);
    signal.throwIfAborted();
    this.#updateDraft(row.id, { pendingFiles: [] });
    const answered = await this.#answer(row, signal);
    return { ...answered, ...noticesField([...(answered.notices ?? []), ...unfinishedNotices(missing)]) };
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
      if (signal.aborted) throw error; // the user stopped the answer
      if (isTemporary(error)) return this.#answerWithQuotations(row);
      if (error instanceof ApiError && error.status < 500 && error.status !== 401) {
        return { ...this.#draftAnswer(row.id), aiResponse: error.message, status: "failed" };
      }
      // The server or its LLM is unreachable, but the documents are on this device.
      return this.#answerWithQuotations(row);
    }
  }

  /** Return whether the assistant is available, without a request if the server is known to be unreachable. */
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
    // Push first, because the server builds the prompt from its own rows of this chat.
    await this.#sync.waitUntilPushed(PUSH_TIMEOUT_MS);
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
    // Change only the draft: the stored turn must stay queued, so that it is answered when the app is reopened.
    const waits = (waitsS: number) => signal.aborted || this.#updateDraft(row.id, { retryInS: waitsS });
    const ending = await retryWhileBusy(asked, signal, waits);
    const draft = this.#draftAnswer(row.id);
    if (ending === "whole") return { ...draft, status: "done" };
    if (!draft.aiResponse) return this.#answerWithQuotations(row);
    return { ...draft, status: ending === "cut" ? "stopped" : "failed" };
  }

  async #answerWithQuotations(row: EpisodeDoc): Promise<Answer> {
    const [{ aiResponse, citations, notices }, remembered] = await Promise.all([
      this.#quotations(row),
      this.#memoryText(row),
    ]);
    const said = [aiResponse, remembered].filter(Boolean).join("\n\n");
    return { aiResponse: said, citations, status: "done", model: QUOTES, ...noticesField(notices) };
  }

  async #quotations({ userMessage, sessionId }: EpisodeDoc): Promise<QuotationAnswer> {
    if (!this.#context.account.limits.searchesDocuments)
      return { aiResponse: "", citations: [], notices: [notice("no_search")] };
    const searcher = await this.#searcher();
    return quotationAnswer(userMessage, await searcher.search(userMessage, sessionId, MAX_QUOTED));
  }

  /**
   * Return the memory section of a quotation answer. Return an empty string after a failure, which must not fail the
   * answer.
   */
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

  /** Count each used document once per turn, even if the turn is answered again. */
  async #countUse(episodeId: string, cited: readonly string[]): Promise<void> {
    const used = this.#countedDocuments.get(episodeId) ?? new Set();
    this.#countedDocuments.set(episodeId, new Set([...used, ...cited]));
    const first = new Set(cited.filter((id) => !used.has(id)));
    await countUse(this.#context, first).catch(console.error); // a failed count must not fail the answer
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

  /**
   * Save an answer, after all earlier saves, so that no partial answer overwrites the final one. Return false if the
   * stored answer has a higher priority and is kept.
   */
  #save(episodeId: string, answered: Answer): Promise<boolean> {
    const save = async () => {
      const found = await this.#context.database.episodes.findOne(episodeId).exec();
      if (found && answerPriority(found) > answerPriority(answered)) return false;
      if (found && answered.status === "done") await this.#countUse(found.id, usedDocuments(answered));
      const change = ({ model: _, notices: __, ...row }: EpisodeDoc) => ({
        ...row,
        ...answered,
        updatedAt: now(),
      });
      if (found) await editRow<EpisodeDoc>(found, change);
      return true;
    };
    return (this.#saving = this.#saving.catch(() => false).then(save));
  }
}

function citationOf(passage: PromptSummary["citations"][number]): Citation {
  return toCitation({ ...passage, page: passage.page ?? null }, passage.n);
}
