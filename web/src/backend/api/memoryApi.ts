/** What can be done with projects and with what is remembered: the part of the desk that is loaded when it is wanted. */

import { subscribeProxied } from "./proxySubscription.ts";
import type { Observation, Wanted } from "../../core/agents/observations.ts";
import { setEntityNotes } from "../memory/entities.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { jobs, retryJobs } from "../memory/jobs.ts";
import { addMemory, restoreVersion, deleteMemory, pinMemory, editMemory } from "../memory/memories.ts";
import {
  listAgentProjects,
  fetchAgentWork,
  deleteObservation,
  observations,
  pinObservation,
} from "../memory/observations.ts";
import { ProjectOverviews, type OverviewState } from "../memory/projectOverviews.ts";
import { addProject, updateProject, moveSession } from "../memory/projects.ts";
import { searchTimeline, type TimelineScope } from "../memory/timeline.ts";

export class MemoryApi {
  readonly #context: AccountContext;
  readonly #overviews: ProjectOverviews;

  constructor(context: AccountContext) {
    this.#context = context;
    this.#overviews = new ProjectOverviews(context);
  }

  // -- projects ---------------------------------------------------------------------------------------------

  addProject(name: string, description?: string) {
    return addProject(this.#context, name, description);
  }

  updateProject(id: string, change: Parameters<typeof updateProject>[2]) {
    return updateProject(this.#context, id, change);
  }

  moveSession(id: string, projectId: string | null) {
    return moveSession(this.#context, id, projectId);
  }

  writeOverview(projectId: string) {
    return this.#overviews.write(projectId);
  }

  stopOverview(projectId: string) {
    this.#overviews.stop(projectId);
  }

  watchOverviews(listener: (overviews: Record<string, OverviewState>) => void) {
    return subscribeProxied(this.#overviews.state$, listener);
  }

  // -- what is remembered -----------------------------------------------------------------------------------

  addMemory(text: string, projectId: string | null) {
    return addMemory(this.#context, text, projectId);
  }

  editMemory(id: string, text: string) {
    return editMemory(this.#context, id, text);
  }

  pinMemory(id: string, pinned: boolean) {
    return pinMemory(this.#context, id, pinned);
  }

  restoreVersion(id: string) {
    return restoreVersion(this.#context, id);
  }

  deleteMemory(id: string) {
    return deleteMemory(this.#context, id);
  }

  setEntityNotes(id: string, notes: string) {
    return setEntityNotes(this.#context, id, notes);
  }

  searchTimeline(query: string, where: TimelineScope, most: number) {
    return searchTimeline(this.#context, query, where, most);
  }

  // -- what agents did --------------------------------------------------------------------------------------

  listAgentProjects() {
    return listAgentProjects(this.#context);
  }

  fetchAgentWork(projectId: string) {
    return fetchAgentWork(this.#context, projectId);
  }

  listObservations(projectId: string, wanted: Wanted, cursor: string | null) {
    return observations(this.#context, projectId, wanted, cursor);
  }

  pinObservation(row: Observation, pinned: boolean) {
    return pinObservation(this.#context, row, pinned);
  }

  deleteObservation(row: Observation) {
    return deleteObservation(this.#context, row);
  }

  // -- behind the answers -----------------------------------------------------------------------------------

  fetchJobs() {
    return jobs(this.#context);
  }

  retryJobs(id?: string) {
    return retryJobs(this.#context, id);
  }
}
