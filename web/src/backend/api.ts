/** Types of the worker's API that the page uses. */

export type { ReportOpening } from "./account/accountLocks.ts";
export type { Profile } from "./account/accounts.ts";
export type { ErasureReceipt } from "./account/forgetEverything.ts";
export type { StorageLoss } from "./account/storageLoss.ts";
export type { AccountApi, Streams } from "./api/accountApi.ts";
export type { SignInApi } from "./api/signInApi.ts";
export type { AnswerDraft, AssistantState } from "./chat/answerQuestion.ts";
export type { PromptSummary } from "./chat/assistantClient.ts";
export type { PromptPreview } from "./chat/prompt_context.ts";
export type { ModelState } from "./library/embeddingModel.ts";
export type { QuickSearchHit } from "./library/quickSearch.ts";
export type { Job, JobList } from "./memory/jobs.ts";
export type { AgentActivity, AgentProject, AgentSession, ObservationPage } from "./memory/observations.ts";
export type { OverviewState } from "./memory/projectOverviews.ts";
export type { MemoryPlace, Timeline, TimelineTurn } from "./memory/timeline.ts";
export type { RejectedRow } from "./sync/rejectedRows.ts";
export type { SyncSummary } from "./sync/tabCoordinator.ts";
export type { ConflictLoser, DeviceAccount, Usage } from "../storage/deviceDatabase.ts";
export type { Code as UnreadableCode } from "../parsers/result.ts";
