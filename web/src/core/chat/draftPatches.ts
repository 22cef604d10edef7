/**
 * Patches of answer drafts. The worker sends the page only the new text of a growing answer, not the whole
 * answer.
 */

type Draft = { aiResponse: string };
export type AnswerDrafts<D extends Draft> = Readonly<Record<string, D>>;

/** The changed fields of a draft. `appended` is the new text at the end of its answer. */
type Patch<D extends Draft> = Partial<D> & { appended?: string };

/** Patches by draft id. Null means that the draft was removed. */
export type DraftPatches<D extends Draft> = Record<string, Patch<D> | null>;

/** Return the patches that turn `before` into `after`. Fields are compared by identity. */
export function diffDrafts<D extends Draft>(
  before: AnswerDrafts<D>,
  after: AnswerDrafts<D>,
): DraftPatches<D> {
  const patches: DraftPatches<D> = {};
  for (const id of Object.keys(before)) if (!(id in after)) patches[id] = null;
  for (const [id, draft] of Object.entries(after)) {
    const old = before[id];
    if (old === draft) continue;
    patches[id] = old ? patchOf(old, draft) : { ...draft };
  }
  return patches;
}

function patchOf<D extends Draft>(old: D, draft: D): Patch<D> {
  const changed = Object.entries(draft).filter(([name, value]) => old[name as keyof D] !== value);
  const patch = Object.fromEntries(changed) as Patch<D>;
  if (!patch.aiResponse?.startsWith(old.aiResponse)) return patch;
  const { aiResponse, ...rest } = patch;
  return { ...rest, appended: aiResponse.slice(old.aiResponse.length) } as Patch<D>;
}

/** Return the drafts after applying patches. */
export function applyPatches<D extends Draft>(
  drafts: AnswerDrafts<D>,
  patches: DraftPatches<D>,
): AnswerDrafts<D> {
  const patched: Record<string, D> = { ...drafts };
  for (const [id, patch] of Object.entries(patches)) {
    if (patch === null) delete patched[id];
    else {
      const { appended = "", ...changed } = patch;
      const draft = { ...patched[id], ...changed } as unknown as D;
      patched[id] = { ...draft, aiResponse: draft.aiResponse + appended };
    }
  }
  return patched;
}
