/** What can be done with projects and with what is remembered: the part of the desk that is loaded when it is wanted. */

import { proxySubscription } from "./proxySubscription.ts";
import type { Observation, Wanted } from "../../core/agents/observations.ts";
import { noteEntity } from "../memory/entities.ts";
import type { House } from "../account/accountContext.ts";
import { jobs, retryJobs } from "../memory/jobs.ts";
import { addMemory, chooseEarlier, deleteMemory, pinMemory, rewordMemory } from "../memory/memories.ts";
import {
  agentProjects,
  agentWork,
  deleteObservation,
  observations,
  pinObservation,
} from "../memory/observations.ts";
import { OverviewService, type OverviewState } from "../memory/projectOverviews.ts";
import { addProject, changeProject, moveSession } from "../memory/projects.ts";
import { timeline, type MemoryPlace } from "../memory/timeline.ts";

export class MemoryApi {
  readonly #house: House;
  readonly #overviews: OverviewService;

  constructor(house: House) {
    this.#house = house;
    this.#overviews = new OverviewService(house);
  }

  // -- projects ---------------------------------------------------------------------------------------------

  addProject(name: string, description?: string) {
    return addProject(this.#house, name, description);
  }

  changeProject(id: string, change: Parameters<typeof changeProject>[2]) {
    return changeProject(this.#house, id, change);
  }

  moveSession(id: string, projectId: string | null) {
    return moveSession(this.#house, id, projectId);
  }

  generateOverview(projectId: string) {
    return this.#overviews.write(projectId);
  }

  stopOverview(projectId: string) {
    this.#overviews.stop(projectId);
  }

  watchOverviews(listener: (overviews: Record<string, OverviewState>) => void) {
    return proxySubscription(this.#overviews.state$, listener);
  }

  // -- what is remembered -----------------------------------------------------------------------------------

  addMemory(text: string, projectId: string | null) {
    return addMemory(this.#house, text, projectId);
  }

  editMemory(id: string, text: string) {
    return rewordMemory(this.#house, id, text);
  }

  pinMemory(id: string, pinned: boolean) {
    return pinMemory(this.#house, id, pinned);
  }

  restoreMemoryVersion(id: string) {
    return chooseEarlier(this.#house, id);
  }

  deleteMemory(id: string) {
    return deleteMemory(this.#house, id);
  }

  editEntityNotes(id: string, notes: string) {
    return noteEntity(this.#house, id, notes);
  }

  searchTimeline(query: string, where: MemoryPlace, most: number) {
    return timeline(this.#house, query, where, most);
  }

  // -- what agents did --------------------------------------------------------------------------------------

  listAgentProjects() {
    return agentProjects(this.#house);
  }

  agentActivity(projectId: string) {
    return agentWork(this.#house, projectId);
  }

  listObservations(projectId: string, wanted: Wanted, cursor: string | null) {
    return observations(this.#house, projectId, wanted, cursor);
  }

  pinObservation(row: Observation, pinned: boolean) {
    return pinObservation(this.#house, row, pinned);
  }

  deleteObservation(row: Observation) {
    return deleteObservation(this.#house, row);
  }

  // -- behind the answers -----------------------------------------------------------------------------------

  listJobs() {
    return jobs(this.#house);
  }

  retryJobs(id?: string) {
    return retryJobs(this.#house, id);
  }
}
