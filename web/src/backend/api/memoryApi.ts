/**
 * The part of the worker's API for projects, memories, agent observations and jobs. It is loaded on first
 * use.
 */

import { proxySubscription } from "./proxySubscription.ts";
import type { Observation, ObservationFilter } from "../../core/agents/observations.ts";
import { editEntityNotes } from "../memory/entities.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { listJobs, retryJobs } from "../memory/jobs.ts";
import { addMemory, restoreMemoryVersion, deleteMemory, pinMemory, editMemory } from "../memory/memories.ts";
import {
  listAgentProjects,
  agentActivity,
  deleteObservation,
  observations,
  pinObservation,
} from "../memory/observations.ts";
import { OverviewService, type OverviewState } from "../memory/projectOverviews.ts";
import { addProject, changeProject, moveSession } from "../memory/projects.ts";
import { searchTimeline, type MemoryPlace } from "../memory/timeline.ts";

export class MemoryApi {
  readonly #context: AccountContext;
  readonly #overviews: OverviewService;

  constructor(context: AccountContext) {
    this.#context = context;
    this.#overviews = new OverviewService(context);
  }

  // -- projects ---------------------------------------------------------------------------------------------

  addProject(name: string, description?: string) {
    return addProject(this.#context, name, description);
  }

  changeProject(id: string, change: Parameters<typeof changeProject>[2]) {
    return changeProject(this.#context, id, change);
  }

  moveSession(id: string, projectId: string | null) {
    return moveSession(this.#context, id, projectId);
  }

  generateOverview(projectId: string) {
    return this.#overviews.generate(projectId);
  }

  stopOverview(projectId: string) {
    this.#overviews.stop(projectId);
  }

  watchOverviews(listener: (overviews: Record<string, OverviewState>) => void) {
    return proxySubscription(this.#overviews.state$, listener);
  }

  // -- memories ---------------------------------------------------------------------------------------------

  addMemory(text: string, projectId: string | null) {
    return addMemory(this.#context, text, projectId);
  }

  editMemory(id: string, text: string) {
    return editMemory(this.#context, id, text);
  }

  pinMemory(id: string, pinned: boolean) {
    return pinMemory(this.#context, id, pinned);
  }

  restoreMemoryVersion(id: string) {
    return restoreMemoryVersion(this.#context, id);
  }

  deleteMemory(id: string) {
    return deleteMemory(this.#context, id);
  }

  editEntityNotes(id: string, notes: string) {
    return editEntityNotes(this.#context, id, notes);
  }

  searchTimeline(query: string, where: MemoryPlace, most: number) {
    return searchTimeline(this.#context, query, where, most);
  }

  // -- agent observations -----------------------------------------------------------------------------------

  listAgentProjects() {
    return listAgentProjects(this.#context);
  }

  agentActivity(projectId: string) {
    return agentActivity(this.#context, projectId);
  }

  listObservations(projectId: string, wanted: ObservationFilter, cursor: string | null) {
    return observations(this.#context, projectId, wanted, cursor);
  }

  pinObservation(row: Observation, pinned: boolean) {
    return pinObservation(this.#context, row, pinned);
  }

  deleteObservation(row: Observation) {
    return deleteObservation(this.#context, row);
  }

  // -- background jobs --------------------------------------------------------------------------------------

  listJobs() {
    return listJobs(this.#context);
  }

  retryJobs(id?: string) {
    return retryJobs(this.#context, id);
  }
}
