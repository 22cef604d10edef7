/** What can be done with projects and with what is remembered: the part of the desk that is loaded when it is wanted. */

import { follow } from "./proxySubscription.ts";
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
import { Overviews, type Overview } from "../memory/projectOverviews.ts";
import { addProject, changeProject, moveSession } from "../memory/projects.ts";
import { timeline, type Where } from "../memory/timeline.ts";

export class MemoryDesk {
  readonly #house: House;
  readonly #overviews: Overviews;

  constructor(house: House) {
    this.#house = house;
    this.#overviews = new Overviews(house);
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

  writeOverview(projectId: string) {
    return this.#overviews.write(projectId);
  }

  stopOverview(projectId: string) {
    this.#overviews.stop(projectId);
  }

  watchOverviews(listener: (overviews: Record<string, Overview>) => void) {
    return follow(this.#overviews.state$, listener);
  }

  // -- what is remembered -----------------------------------------------------------------------------------

  addMemory(text: string, projectId: string | null) {
    return addMemory(this.#house, text, projectId);
  }

  rewordMemory(id: string, text: string) {
    return rewordMemory(this.#house, id, text);
  }

  pinMemory(id: string, pinned: boolean) {
    return pinMemory(this.#house, id, pinned);
  }

  chooseEarlier(id: string) {
    return chooseEarlier(this.#house, id);
  }

  deleteMemory(id: string) {
    return deleteMemory(this.#house, id);
  }

  noteEntity(id: string, notes: string) {
    return noteEntity(this.#house, id, notes);
  }

  timeline(query: string, where: Where, most: number) {
    return timeline(this.#house, query, where, most);
  }

  // -- what agents did --------------------------------------------------------------------------------------

  agentProjects() {
    return agentProjects(this.#house);
  }

  agentWork(projectId: string) {
    return agentWork(this.#house, projectId);
  }

  observations(projectId: string, wanted: Wanted, cursor: string | null) {
    return observations(this.#house, projectId, wanted, cursor);
  }

  pinObservation(row: Observation, pinned: boolean) {
    return pinObservation(this.#house, row, pinned);
  }

  deleteObservation(row: Observation) {
    return deleteObservation(this.#house, row);
  }

  // -- behind the answers -----------------------------------------------------------------------------------

  jobs() {
    return jobs(this.#house);
  }

  retryJobs(id?: string) {
    return retryJobs(this.#house, id);
  }
}
