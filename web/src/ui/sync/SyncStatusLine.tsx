import { Box, Text, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { Suspense, useEffect, useState } from "react";
import {
  mainStatus,
  nextAnnouncement,
  otherStatuses,
  type Announcement,
  type SyncStatus,
} from "../../core/sync/syncStatus.ts";
import { useConflictLosers, useRejectedRows, useSync } from "../../client/backendClient.tsx";
import classes from "./SyncStatusLine.module.css";
import { useNow } from "../useNow.ts";
import { lazyComponent } from "../lazyComponent.ts";
import { ago } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const SyncDetails = lazyComponent(() => import("./SyncDetails.tsx"));
/** Time after which screen readers announce a status that usually ends sooner, such as sending a change. */
const ANNOUNCE_AFTER_MS = 2_000;
const ATTENTION: SyncStatus[] = ["signed-out", "outdated", "full", "only-here", "refused", "lost"];

/** Show the sync status in one line. A click opens the details. */
export function SyncStatusLine() {
  const sync = useSync();
  const refused = useRejectedRows() ?? [];
  const lost = useConflictLosers() ?? [];
  const now = Math.max(useNow(), Date.parse(sync?.syncedAt ?? "") || 0);
  const [opened, setOpened] = useState(false);
  if (!sync) return null;
  const facts = { ...sync, refused: refused.map((row) => row.collection), lost: lost.length };
  const [{ status }, others] = [mainStatus(facts), otherStatuses(facts)];
  const when = sync.syncedAt ? ago(sync.syncedAt, now) : "";
  const line = [mainStatus(facts), ...others]
    .map(({ status, n }) => t(`sync.line.${status}`, { n, when }))
    .join(" · ");
  const isUrgent = [status, ...others.map(({ status }) => status)].some((status) =>
    ATTENTION.includes(status),
  );
  return (
    <Box pos="relative" miw={0}>
      <UnstyledButton
        className={classes["line"]!}
        data-attention={isUrgent || undefined}
        title={line}
        data-status={status}
        aria-haspopup="dialog"
        aria-expanded={opened}
        onClick={() => setOpened(true)}
      >
        <Text span size="sm" lh={1.25} lineClamp={2}>
          {line}
        </Text>
      </UnstyledButton>
      <AnnouncedStatus status={status} />
      {opened && (
        <Suspense>
          <SyncDetails {...{ sync, refused, lost, status }} onClose={() => setOpened(false)} />
        </Suspense>
      )}
    </Box>
  );
}

/** Show the status to screen readers. The text has no times, because each change would be announced. */
function AnnouncedStatus({ status }: { status: SyncStatus }) {
  const [before, setBefore] = useState<Announcement>({ status, isCurrent: true });
  const now = nextAnnouncement(before, status);
  if (now !== before) setBefore(now);
  useEffect(() => {
    const timer = setTimeout(
      () => setBefore((before) => (before.status === status ? before : { status, isCurrent: true })),
      ANNOUNCE_AFTER_MS,
    );
    return () => clearTimeout(timer);
  }, [status]);
  return <VisuallyHidden role="status">{now.isCurrent && t(`sync.detail.${now.status}`)}</VisuallyHidden>;
}
