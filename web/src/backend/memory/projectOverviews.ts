/** Project overviews, which the server's LLM generates on request. */

import { BehaviorSubject } from "rxjs";
import { requestJson } from "../../lib/http.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** State of a project's overview. `name` and `message` come from the error. */
export type OverviewState =
  { kind: "writing"; since: string } | { kind: "failed"; name: string; message: string };

/** Idle timeout of the request. The server sends nothing while the LLM works. */
const GENERATION_TIMEOUT_MS = 600_000;

export class OverviewService {
  /**
   * Maps project ids to states. Only projects whose overview is being generated, or could not be, have a state. The
   * sync delivers the finished overview.
   */
  readonly state$ = new BehaviorSubject<Record<string, OverviewState>>({});
  readonly #context: AccountContext;
  readonly #stops = new Map<string, AbortController>();

  constructor(context: AccountContext) {
    this.#context = context;
  }

  async generate(projectId: string): Promise<void> {
    if (this.#stops.has(projectId)) return;
    const stop = new AbortController();
    this.#stops.set(projectId, stop);
    this.#setState(projectId, { kind: "writing", since: new Date().toISOString() });
    const path = `/v1/projects/${encodeURIComponent(projectId)}/summarize`;
    try {
      await requestJson(
        this.#context.server,
        path,
        { method: "POST", signal: stop.signal },
        GENERATION_TIMEOUT_MS,
      );
      this.#setState(projectId);
    } catch (error) {
      const { name, message } = error as Error;
      this.#setState(projectId, stop.signal.aborted ? undefined : { kind: "failed", name, message });
    } finally {
      this.#stops.delete(projectId);
    }
  }

  /** Stop the generation on this device and the server. An earlier overview is kept. */
  stop(projectId: string): void {
    this.#stops.get(projectId)?.abort();
  }

  #setState(projectId: string, overview?: OverviewState): void {
    const { [projectId]: _, ...others } = this.state$.value;
    this.state$.next(overview ? { ...others, [projectId]: overview } : others);
  }
}
