import type { SessionDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useUndoableDelete } from "../useUndoableDelete.tsx";
import { t } from "../../locale/t.ts";

/** Return a function that deletes a chat. The user can undo the deletion for some seconds. */
export function useDeleteSession({ id, title }: Pick<SessionDoc, "id" | "title">): () => void {
  const { api } = useAccountApi();
  const deleteUndoably = useUndoableDelete();
  return () =>
    deleteUndoably({
      id,
      message: t("sidebar.chatDeleted", { title }),
      path: `/s/${id}`,
      commit: () => api.deleteSession(id),
    });
}
