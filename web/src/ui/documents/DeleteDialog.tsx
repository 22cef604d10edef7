/** Asks before documents go, and says what goes and what stays. */

import { List, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { ConfirmDialog } from "../components/ConfirmDialog.tsx";
import { useDesk } from "../../client/backendClient.tsx";
import { documents as words } from "../words/documents.ts";

interface DeleteDialogProps {
  documents: readonly DocumentDoc[];
  /** Which are to go; none: nothing is asked. */
  ids: readonly string[];
  onClose: () => void;
  onDeleted?: () => void;
}

const NAMED = 8;

export function DeleteDialog({ documents, ids, onClose, onDeleted }: DeleteDialogProps) {
  const { desk } = useDesk();
  const facts = useFactsOf(ids);
  const names = documents.flatMap(({ id, filename }) => (ids.includes(id) ? [filename] : []));
  const all = names.length > 1 && names.length === documents.length;
  const { deletion } = words;

  async function confirm() {
    onClose();
    onDeleted?.();
    await desk.deleteDocuments([...ids]);
  }

  return (
    <ConfirmDialog
      opened={ids.length > 0}
      title={all ? deletion.titleAll(names.length) : deletion.title(names)}
      cancel={deletion.cancel}
      confirm={deletion.confirm(names.length)}
      onConfirm={() => void confirm()}
      onClose={onClose}
    >
      {names.length > 1 && (
        <List size="sm">
          {names.slice(0, NAMED).map((name, at) => (
            <List.Item key={at}>{name}</List.Item>
          ))}
          {names.length > NAMED && <List.Item>{words.more(names.length - NAMED)}</List.Item>}
        </List>
      )}
      <Text size="sm">
        {deletion.goes(names.length)} {facts > 0 && deletion.facts(facts, names.length > 1)}{" "}
        {deletion.answers}
      </Text>
    </ConfirmDialog>
  );
}

/** How many facts were drawn from these documents. */
function useFactsOf(ids: readonly string[]): number {
  const { desk } = useDesk();
  const [facts, setFacts] = useState(0);
  const key = ids.join();
  useEffect(() => {
    if (!key) return;
    let gone = false;
    const selector = { sourceDocumentId: { $in: key.split(",") } };
    void desk.rows("facts", { selector }).then((rows) => void (gone || setFacts(rows.length)));
    return () => void (gone = true);
  }, [desk, key]);
  return facts;
}
