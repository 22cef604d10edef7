import type { SessionDoc } from "../../core/schema/rows.ts";
import { useDesk } from "../../client/backendClient.tsx";
import { words } from "../words.ts";
import { useUndoable } from "../useUndoable.tsx";

/** Deletes a conversation, with a while to think again. */
export function useDeleteSession({ id, title }: Pick<SessionDoc, "id" | "title">): () => void {
  const { desk } = useDesk();
  const deleteSoon = useUndoable();
  return () =>
    deleteSoon({
      id,
      message: words.places.deleted(title),
      address: `/s/${id}`,
      commit: () => desk.deleteSession(id),
    });
}
