import { useCallback, useEffect, useState } from "react";
import type { AgentActivity, AgentProject } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useRetry } from "./useRetry.ts";

/**
 * Map project ids to the projects with agent activity. Return undefined until the server responds, and null, while
 * retrying, if the request failed.
 */
export function useAgentProjects(): ReadonlyMap<string, AgentProject> | null | undefined {
  const { api } = useAccountApi();
  const [attempt, setAttempt] = useState(0);
  const [projects, setProjects] = useState<ReadonlyMap<string, AgentProject> | null>();
  useEffect(() => {
    let isStale = false;
    void api.memory.listAgentProjects().then(
      (all) => {
        const active = all.filter(({ observations }) => observations > 0);
        if (!isStale) setProjects(new Map(active.map((project) => [project.project.id, project])));
      },
      () => isStale || setProjects(null),
    );
    return () => void (isStale = true);
  }, [api, attempt]);
  useRetry(
    projects === null,
    useCallback(() => setAttempt((attempt) => attempt + 1), []),
  );
  return projects;
}

/**
 * Return the sessions of agents in a project and the server's notice about its folders. Return undefined until the
 * server responds. The request is repeated when `refreshKey` changes.
 */
export function useAgentActivity(projectId: string, refreshKey: unknown): AgentActivity | undefined {
  const { api } = useAccountApi();
  const [activity, setActivity] = useState<AgentActivity>();
  useEffect(() => {
    let isStale = false;
    void api.memory.agentActivity(projectId).then(
      (activity) => isStale || setActivity(activity),
      () => {}, // ignored: the request for the list of steps fails, too, and the list shows the error
    );
    return () => void (isStale = true);
  }, [api, projectId, refreshKey]);
  return activity;
}
