import { useCallback, useEffect, useState } from "react";
import type { AgentProject, AgentWork } from "../../backend/memory/observations.ts";
import { useMemoryApi } from "../../client/useMemoryApi.ts";
import { useRetry } from "./useRetry.ts";

/** The projects in which agents have worked, by their ids; null: the server does not answer. */
export function useAgentProjects(): ReadonlyMap<string, AgentProject> | null | undefined {
  const memory = useMemoryApi();
  const [looks, setLooks] = useState(0);
  const [found, setFound] = useState<ReadonlyMap<string, AgentProject> | null>();
  useEffect(() => {
    let late = false;
    void memory((desk) => desk.agentProjects()).then(
      (all) => late || setFound(new Map(worked(all).map((one) => [one.project.id, one]))),
      () => late || setFound(null),
    );
    return () => void (late = true);
  }, [memory, looks]);
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
export function useAgentActivity(projectId: string, looks: unknown): AgentWork | undefined {
  const memory = useMemoryApi();
  const [work, setWork] = useState<AgentWork>();
  useEffect(() => {
    let late = false;
    void memory((desk) => desk.agentWork(projectId)).then(
      (found) => late || setWork(found),
      () => {}, // told by the list, which asks as well
    );
    return () => void (late = true);
  }, [memory, projectId, looks]);
  return work;
}
