import { List, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { ConfirmDialog } from "../components/ConfirmDialog.tsx";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

interface DeleteDialogProps {
  documents: readonly DocumentDoc[];
  /** Ids of the documents to delete. If empty, the dialog is closed. */
  ids: readonly string[];
  onClose: () => void;
  onDeleted?: () => void;
}

/** Maximum number of document names in the dialog. */
const LISTED = 8;

/** Ask for confirmation before documents are deleted, and say what is deleted and what stays. */
export function DeleteDialog({ documents, ids, onClose, onDeleted }: DeleteDialogProps) {
  const { api } = useAccountApi();
  const facts = useFactCount(ids);
  const names = documents.flatMap(({ id, filename }) => (ids.includes(id) ? [filename] : []));
  const all = names.length > 1 && names.length === documents.length;

  async function confirm() {
    onClose();
    onDeleted?.();
    await api.deleteDocuments([...ids]);
  }

  return (
    <ConfirmDialog
      opened={ids.length > 0}
      title={title(names, all)}
      cancel={t("common.cancel")}
      confirm={t("documents.delete.confirm", { n: names.length })}
      onConfirm={() => void confirm()}
      onClose={onClose}
    >
      {names.length > 1 && (
        <List size="sm">
          {names.slice(0, LISTED).map((name, index) => (
            <List.Item key={index}>{name}</List.Item>
          ))}
          {names.length > LISTED && <List.Item>{t("common.more", { n: names.length - LISTED })}</List.Item>}
        </List>
      )}
      <Text size="sm">
        {t("documents.delete.effect", { n: names.length })}{" "}
        {facts > 0 && t("documents.delete.factsStay", { facts, n: names.length })}{" "}
        {t("documents.delete.answersStay")}
      </Text>
    </ConfirmDialog>
  );
}

function title(names: readonly string[], isAll: boolean): string {
  if (names.length === 1) return t("documents.delete.one", { name: names[0]! });
  return t(isAll ? "documents.delete.all" : "documents.delete.many", { n: names.length });
}

/** Return the number of facts that were extracted from these documents. */
function useFactCount(ids: readonly string[]): number {
  const { api } = useAccountApi();
  const [facts, setFacts] = useState(0);
  const key = ids.join();
  useEffect(() => {
    if (!key) return;
    let isStale = false;
    const selector = { sourceDocumentId: { $in: key.split(",") } };
    void api.rows("facts", { selector }).then((rows) => void (isStale || setFacts(rows.length)));
    return () => void (isStale = true);
  }, [api, key]);
  return facts;
}
