/**
 * The part of the worker's API for projects, memories, agent observations and jobs. It is loaded on first
 * use.
 */

import { bindContext } from "./bindContext.ts";
import { proxySubscription } from "./proxySubscription.ts";
import { editEntityNotes } from "../memory/entities.ts";
import type { AccountContext } from "../account/accountContext.ts";
import { listJobs, retryJobs } from "../memory/jobs.ts";
import { addMemory, restoreMemoryVersion, deleteMemory, pinMemory, editMemory } from "../memory/memories.ts";
import {
  listAgentProjects,
  agentActivity,
  deleteObservation,
  listObservations,
  pinObservation,
} from "../memory/observations.ts";
import { OverviewService, type OverviewState } from "../memory/projectOverviews.ts";
import { addProject, changeProject, moveSession } from "../memory/projects.ts";
import { searchTimeline } from "../memory/timeline.ts";

export function memoryApi(context: AccountContext) {
  const overviews = new OverviewService(context);
  return {
    ...bindContext(context, { addProject, changeProject, moveSession }),
    generateOverview: (projectId: string) => overviews.generate(projectId),
    stopOverview: (projectId: string) => overviews.stop(projectId),
    watchOverviews: (listener: (overviews: Record<string, OverviewState>) => void) =>
      proxySubscription(overviews.state$, listener),
    ...bindContext(context, { addMemory, editMemory, pinMemory, restoreMemoryVersion, deleteMemory }),
    ...bindContext(context, { editEntityNotes, searchTimeline }),
    ...bindContext(context, { listAgentProjects, agentActivity, listObservations }),
    ...bindContext(context, { pinObservation, deleteObservation }),
    ...bindContext(context, { listJobs, retryJobs }),
  };
}
