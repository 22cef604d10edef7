import { useCallback, useEffect, useState } from "react";
import { appendPage, type Observation, type ObservationFilter } from "../../core/agents/observations.ts";
import type { ObservationPage } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useRetry } from "./useRetry.ts";

/** The result of loading steps: a page from the server, or the error of the request. */
export type StepsResult =
  { kind: "loaded"; page: ObservationPage; isSearch: boolean } | { kind: "failed"; error: unknown };

/**
 * Load the steps of agents in a project. Return the result, which is undefined until the first request has ended, and
 * functions that change it.
 */
export function useSteps(projectId: string, filters: ObservationFilter) {
  const { api } = useAccountApi();
  const [result, setResult] = useState<StepsResult>();
  const [attempt, setAttempt] = useState(0);
  const { words, kind, agentSession, pinned } = filters;

  useEffect(() => {
    let isStale = false;
    const filters = { words, kind, agentSession, pinned };
    void api.memory.listObservations(projectId, filters, null).then(
      (page) => isStale || setResult({ kind: "loaded", page, isSearch: words !== "" }),
      (error: unknown) => isStale || setResult({ kind: "failed", error }),
    );
    return () => void (isStale = true);
  }, [api, projectId, words, kind, agentSession, pinned, attempt]);
  const refresh = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  useRetry(result?.kind === "failed", refresh);

  function updateSteps(update: (steps: Observation[]) => Observation[]): void {
    setResult((result) =>
      result?.kind === "loaded"
        ? { ...result, page: { ...result.page, observations: update(result.page.observations) } }
        : result,
    );
  }

  async function loadMore(): Promise<void> {
    if (result?.kind !== "loaded") return;
    const cursor = result.page.next;
    const { observations, next } = await api.memory.listObservations(projectId, filters, cursor);
    // Drop the page if the filters have changed during the request.
    setResult((current) =>
      current?.kind === "loaded" && current.page.next === cursor
        ? { ...current, page: { observations: appendPage(current.page.observations, observations), next } }
        : current,
    );
  }

  async function togglePin(step: Observation): Promise<Observation> {
    const changed = await api.memory.pinObservation(step, !step.pinned);
    updateSteps((steps) => steps.map((step) => (step.id === changed.id ? changed : step)));
    return changed;
  }

  async function remove(step: Observation): Promise<void> {
    await api.memory.deleteObservation(step);
    updateSteps((steps) => steps.filter(({ id }) => id !== step.id));
  }

  return { result, refresh, loadMore, togglePin, remove };
}
