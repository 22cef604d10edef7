import { ActionIcon, Alert, Anchor, Box, Button, Checkbox, Group, Text } from "@mantine/core";
import { IconTrash } from "@tabler/icons-react";
import { memo } from "react";
import { Link } from "wouter";
import { needsRoom, stateOf, type Progress } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import type { SyncSummary } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { useDismissed } from "../sync/useDismissed.ts";
import { DocumentDetails } from "./DocumentDetails.tsx";
import { UsedIn } from "./UsedIn.tsx";
import classes from "./documents.module.css";
import { StateBadge } from "./StateBadge.tsx";
import { t } from "../../locale/t.ts";
import { rejectionMessage } from "../rejectionMessage.ts";
import { failureText } from "./failureText.ts";

interface DocumentRowProps {
  document: DocumentDoc;
  progress: Progress | undefined;
  titles: ReadonlyMap<string, string>;
  sync: SyncSummary | undefined;
  selected: boolean;
  onSelect: (id: string) => void;
  onDelete: (ids: string[]) => void;
  onChoose: () => void;
}

/** Show a document in the list. */
export const DocumentRow = memo(function DocumentRow(props: DocumentRowProps) {
  const { document, progress, titles, sync, selected, onSelect, onDelete, onChoose } = props;
  const { id, filename } = document;
  const state = stateOf(document, progress);
  return (
    <li className={classes.row} data-selected={selected || undefined}>
      <label className={classes.check}>
        <Checkbox
          checked={selected}
          onChange={() => onSelect(id)}
          aria-label={t("documents.select", { name: filename })}
        />
      </label>
      <Box miw={0} py={10}>
        <Group gap="xs">
          <Anchor
            component={Link}
            href={`/documents/${id}`}
            fw={600}
            c="bright"
            dir="auto"
            className={classes.name}
          >
            {filename}
          </Anchor>
          <StateBadge state={state} />
        </Group>
        <DocumentDetails document={document} sync={sync} />
        <UsedIn ids={document.activeSessions} titles={titles} />
        {state.kind === "failed" && (
          <Text size="sm" c="red">
            {failureText(state.detail)}
          </Text>
        )}
        {state.kind === "refused" && <Rejection document={document} state={state} onChoose={onChoose} />}
      </Box>
      <ActionIcon
        size={44}
        variant="subtle"
        color="gray"
        aria-label={t("common.deleteName", { name: filename })}
        onClick={() => onDelete([id])}
      >
        <IconTrash size={18} />
      </ActionIcon>
    </li>
  );
});

interface RejectionProps {
  document: DocumentDoc;
  state: { code: string; message: string };
  onChoose: () => void;
}

/** Show why the server did not accept the document, and what the user can do. */
function Rejection({ document, state, onChoose }: RejectionProps) {
  const { api } = useAccountApi();
  const { id, filename, syncError } = document;
  const [isDismissed, dismiss] = useDismissed(`documents/${id}`, syncError?.at);
  return (
    <Alert variant="default" mt="xs" p="sm">
      {!isDismissed && (
        <Text size="sm" mb="xs">
          {rejectionMessage(state)}
        </Text>
      )}
      <Group gap="xs">
        {needsRoom(state) && !isDismissed && (
          <>
            <Button size="sm" variant="default" onClick={onChoose}>
              {t("documents.chooseDelete")}
            </Button>
            <Button
              size="sm"
              variant="default"
              aria-label={t("common.actionOn", { action: t("documents.keepOnDevice"), name: filename })}
              onClick={dismiss}
            >
              {t("documents.keepOnDevice")}
            </Button>
          </>
        )}
        <Button
          size="sm"
          variant="default"
          aria-label={t("common.actionOn", { action: t("common.retry"), name: filename })}
          onClick={() => void api.retryRejectedRows({ collection: "documents", id })}
        >
          {t("common.retry")}
        </Button>
      </Group>
    </Alert>
  );
}
