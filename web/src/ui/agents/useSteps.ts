import { useCallback, useEffect, useState } from "react";
import { continued, type Observation, type Wanted } from "../../core/agents/observations.ts";
import type { ObservationPage } from "../../backend/memory/observations.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useRetry } from "./useRetry.ts";

/** What the server said last, and whether words were searched for; or the error in place of it. */
export type Asked =
  { kind: "shown"; page: ObservationPage; searched: boolean } | { kind: "failed"; error: unknown };

/** What agents did in a project, and what can be done with it. Undefined until the server has answered or not. */
export function useSteps(projectId: string, wanted: Wanted) {
  const { api } = useAccountApi();
  const [asked, setAsked] = useState<Asked>();
  const [looks, setLooks] = useState(0);
  const { words, kind, agentSession, pinned } = wanted;

  useEffect(() => {
    let late = false;
    const wanted = { words, kind, agentSession, pinned };
    void api.memory.listObservations(projectId, wanted, null).then(
      (page) => late || setAsked({ kind: "shown", page, searched: words !== "" }),
      (error: unknown) => late || setAsked({ kind: "failed", error }),
    );
    return () => void (late = true);
  }, [api, projectId, words, kind, agentSession, pinned, looks]);
  const look = useCallback(() => setLooks((looks) => looks + 1), []);
  useRetry(asked?.kind === "failed", look);

  const change = useCallback((changed: (steps: Observation[]) => Observation[]) => {
    setAsked((asked) =>
      asked?.kind === "shown"
        ? { ...asked, page: { ...asked.page, observations: changed(asked.page.observations) } }
        : asked,
    );
  }, []);

  async function more(): Promise<void> {
    if (asked?.kind !== "shown") return;
    const before = asked.page;
    const { observations, next } = await api.memory.listObservations(projectId, wanted, before.next);
    // Unless something else was asked for meanwhile: these would not fit it.
    setAsked((now) =>
      now?.kind === "shown" && now.page.next === before.next
        ? { ...now, page: { observations: continued(now.page.observations, observations), next } }
        : now,
    );
  }

  async function pin(step: Observation): Promise<Observation> {
    const pinned = await api.memory.pinObservation(step, !step.pinned);
    change((steps) => steps.map((one) => (one.id === pinned.id ? pinned : one)));
    return pinned;
  }

  async function remove(step: Observation): Promise<void> {
    await api.memory.deleteObservation(step);
    change((steps) => steps.filter(({ id }) => id !== step.id));
  }

  return { asked, look, more, pin, remove };
}
