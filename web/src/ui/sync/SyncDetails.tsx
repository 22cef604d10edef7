import { Box, Button, Divider, List, Popover, ScrollArea, Stack, Text, Title } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import type { ConflictLoser, RejectedRow, SyncSummary } from "../../backend/api.ts";
import type { SyncStatus } from "../../core/sync/syncStatus.ts";
import type { Collections } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { ConflictLosers } from "./ConflictLosers.tsx";
import { ModelStatus } from "./ModelStatus.tsx";
import { UpdateRequired } from "./UpdateRequired.tsx";
import { RejectedRows } from "./RejectedRows.tsx";
import { SignInAgain } from "./SignInAgain.tsx";
import { dateTime } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

interface Props {
  sync: SyncSummary;
  refused: RejectedRow[];
  lost: ConflictLoser[];
  status: SyncStatus;
  onClose: () => void;
}

/** Show the details of the sync status: waiting, rejected and replaced data, each with its actions. */
export default function SyncDetails({ sync, refused, lost, status, onClose }: Props) {
  const { api } = useAccountApi();
  // On the document, so that Escape works even after the focused element was removed.
  useHotkeys([["Escape", onClose]], []);
  return (
    <Popover
      opened
      onChange={(opened) => opened || onClose()}
      position="bottom-end"
      trapFocus
      returnFocus
      withRoles={false}
    >
      <Popover.Target>
        {/* This box covers the status line, so that a click on the line closes the details. */}
        <Box pos="absolute" inset={0} onClick={onClose} />
      </Popover.Target>
      <Popover.Dropdown w="min(26rem, 94vw)" p={0} role="dialog" aria-label={t("sync.title")}>
        <ScrollArea.Autosize mah="75dvh">
          <Stack p="md" gap="md">
            <Text size="sm">{t(`sync.detail.${status}`)}</Text>
            {sync.kind === "signed-out" && <SignInAgain />}
            {sync.kind === "outdated" && <UpdateRequired />}
            <Waiting waitingOf={sync.waitingOf} />
            {refused.length > 0 && <RejectedRows rows={refused} onNavigate={onClose} />}
            {lost.length > 0 && <ConflictLosers losers={lost} />}
            <Divider />
            <ModelStatus />
            {sync.syncedAt && (
              <Text size="sm" c="dimmed">
                {t("sync.lastSynced", { when: dateTime(sync.syncedAt) })}
              </Text>
            )}
            <Button variant="default" onClick={() => void api.syncNow()}>
              {t("sync.now")}
            </Button>
          </Stack>
        </ScrollArea.Autosize>
      </Popover.Dropdown>
    </Popover>
  );
}

function Waiting({ waitingOf }: Pick<SyncSummary, "waitingOf">) {
  const counts = Object.entries(waitingOf) as [keyof Collections, number][];
  if (counts.length === 0) return null;
  return (
    <Box component="section">
      <Title order={2} size="h6">
        {t("sync.waitingTitle")}
      </Title>
      <List size="sm">
        {counts.map(([collection, n]) => (
          <List.Item key={collection}>{t(`sync.count.${collection}`, { n })}</List.Item>
        ))}
      </List>
    </Box>
  );
}
