/** Asks before documents go, and says what goes and what stays. */

import { List, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { ConfirmDialog } from "../components/ConfirmDialog.tsx";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

interface DeleteDialogProps {
  documents: readonly DocumentDoc[];
  /** Which are to go; none: nothing is asked. */
  ids: readonly string[];
  onClose: () => void;
  onDeleted?: () => void;
}

const NAMED = 8;

export function DeleteDialog({ documents, ids, onClose, onDeleted }: DeleteDialogProps) {
  const { api } = useAccountApi();
  const facts = useFactsOf(ids);
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
          {names.slice(0, NAMED).map((name, at) => (
            <List.Item key={at}>{name}</List.Item>
          ))}
          {names.length > NAMED && <List.Item>{t("common.more", { n: names.length - NAMED })}</List.Item>}
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

/** How many facts were drawn from these documents. */
function useFactsOf(ids: readonly string[]): number {
  const { api } = useAccountApi();
  const [facts, setFacts] = useState(0);
  const key = ids.join();
  useEffect(() => {
    if (!key) return;
    let gone = false;
    const selector = { sourceDocumentId: { $in: key.split(",") } };
    void api.rows("facts", { selector }).then((rows) => void (gone || setFacts(rows.length)));
    return () => void (gone = true);
  }, [api, key]);
  return facts;
}
