/** Overviews of projects: written by the assistant's model on the server when somebody asks for one. */

import { BehaviorSubject } from "rxjs";
import { request } from "../../lib/http.ts";
import type { AccountContext } from "../account/accountContext.ts";

/** `name` and `message` are those of the error. */
export type OverviewState =
  { kind: "writing"; since: string } | { kind: "failed"; name: string; message: string };

/** The server is silent while the model reads and writes. */
const WRITE_TIMEOUT_MS = 600_000;

export class ProjectOverviews {
  /** By project, while one is written or after it failed. What was written comes as a row, as on every device. */
  readonly state$ = new BehaviorSubject<Record<string, OverviewState>>({});
  readonly #context: AccountContext;
  readonly #aborts = new Map<string, AbortController>();

  constructor(context: AccountContext) {
    this.#context = context;
  }

  async write(projectId: string): Promise<void> {
    if (this.#aborts.has(projectId)) return;
    const stop = new AbortController();
    this.#aborts.set(projectId, stop);
    this.#setState(projectId, { kind: "writing", since: new Date().toISOString() });
    const path = `/v1/projects/${encodeURIComponent(projectId)}/summarize`;
    try {
      await request(this.#context.server, path, { method: "POST", signal: stop.signal }, WRITE_TIMEOUT_MS);
      this.#setState(projectId);
    } catch (error) {
      const { name, message } = error as Error;
      this.#setState(projectId, stop.signal.aborted ? undefined : { kind: "failed", name, message });
    } finally {
      this.#aborts.delete(projectId);
    }
  }

  /** The server ends it, too. An earlier overview stays. */
  stop(projectId: string): void {
    this.#aborts.get(projectId)?.abort();
  }

  #setState(projectId: string, overview?: OverviewState): void {
    const { [projectId]: _, ...others } = this.state$.value;
    this.state$.next(overview ? { ...others, [projectId]: overview } : others);
  }
}
