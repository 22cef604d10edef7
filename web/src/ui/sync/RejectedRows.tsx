import { Box, Button, Group, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import { needsRoom } from "../../core/documents/documentList.ts";
import type { RejectedRow } from "../../backend/api.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { useDismissed } from "./useDismissed.ts";
import { t } from "../../locale/t.ts";
import { rejectionMessage } from "../rejectionMessage.ts";

const SHOWN = 20;

/** Show the rejected rows, why the server rejected each, and what the user can do. */
export function RejectedRows({ rows, onNavigate }: { rows: RejectedRow[]; onNavigate: () => void }) {
  const { api } = useAccountApi();
  return (
    <Box component="section">
      <Group justify="space-between">
        <Title order={2} size="h6">
          {t("sync.rejectedTitle")}
        </Title>
        {rows.length > 1 && (
          <Button size="compact-sm" variant="subtle" onClick={() => void api.retryRejectedRows()}>
            {t("common.retryAll")}
          </Button>
        )}
      </Group>
      <PlainList gap="sm">
        {rows.slice(0, SHOWN).map((row) => (
          <RejectedItem key={`${row.collection}/${row.id}`} row={row} onNavigate={onNavigate} />
        ))}
      </PlainList>
    </Box>
  );
}

function RejectedItem({ row, onNavigate }: { row: RejectedRow; onNavigate: () => void }) {
  const { api } = useAccountApi();
  const { collection, id } = row;
  const [isDismissed, dismiss] = useDismissed(`${collection}/${id}`, row.at);
  return (
    <li>
      <Text size="sm" fw={600}>
        {row.name || t(`sync.item.${collection}`)}
      </Text>
      {!isDismissed && <Text size="sm">{rejectionMessage(row)}</Text>}
      <Group gap="xs" mt={4}>
        <Button
          size="compact-sm"
          variant="light"
          onClick={() => void api.retryRejectedRows({ collection, id })}
        >
          {t("common.retry")}
        </Button>
        {needsRoom(row) && !isDismissed && (
          <>
            <Button
              size="compact-sm"
              variant="subtle"
              component={Link}
              href="/documents"
              onClick={onNavigate}
            >
              {t("documents.chooseDelete")}
            </Button>
            <Button size="compact-sm" variant="subtle" onClick={dismiss}>
              {t("documents.keepOnDevice")}
            </Button>
          </>
        )}
      </Group>
    </li>
  );
}
