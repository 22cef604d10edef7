import type { SessionDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useUndoable } from "../useUndoable.tsx";
import { t } from "../../locale/t.ts";

/** Deletes a conversation, with a while to think again. */
export function useDeleteSession({ id, title }: Pick<SessionDoc, "id" | "title">): () => void {
  const { api } = useAccountApi();
  const deleteSoon = useUndoable();
  return () =>
    deleteSoon({
      id,
      message: t("sidebar.chatDeleted", { title }),
      address: `/s/${id}`,
      commit: () => api.deleteSession(id),
    });
}
