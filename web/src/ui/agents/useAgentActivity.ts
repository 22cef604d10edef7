import { useCallback, useEffect, useState } from "react";
import type { AgentProject, AgentActivity } from "../../backend/memory/observations.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useRetry } from "./useRetry.ts";

/** The projects in which agents have worked, by their ids; null: the server does not answer. */
export function useAgentProjects(): ReadonlyMap<string, AgentProject> | null | undefined {
  const { api } = useAccountApi();
  const [looks, setLooks] = useState(0);
  const [found, setFound] = useState<ReadonlyMap<string, AgentProject> | null>();
  useEffect(() => {
    let late = false;
    void api.memory.listAgentProjects().then(
      (all) => late || setFound(new Map(worked(all).map((one) => [one.project.id, one]))),
      () => late || setFound(null),
    );
    return () => void (late = true);
  }, [api, looks]);
  useRetry(
    found === null,
    useCallback(() => setLooks((looks) => looks + 1), []),
  );
  return found;
}

function worked(all: readonly AgentProject[]): AgentProject[] {
  return all.filter(({ observations }) => observations > 0);
}

/** The sessions of agents in a project, and what is to be known of its folders; undefined while the server is silent. */
export function useAgentActivity(projectId: string, looks: unknown): AgentActivity | undefined {
  const { api } = useAccountApi();
  const [work, setWork] = useState<AgentActivity>();
  useEffect(() => {
    let late = false;
    void api.memory.agentActivity(projectId).then(
      (found) => late || setWork(found),
      () => {}, // told by the list, which asks as well
    );
    return () => void (late = true);
  }, [api, projectId, looks]);
  return work;
}
