import { Box, Text, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { Suspense, useEffect, useState } from "react";
import { besides, headline, told, type Said, type Told } from "../../core/sync/syncStatus.ts";
import { useConflictLosers, useRejectedRows, useSync } from "../../client/backendClient.tsx";
import classes from "./SyncStatusLine.module.css";
import { useNow } from "../useNow.ts";
import { lazyComponent } from "../lazyComponent.ts";
import { ago } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const SyncDetails = lazyComponent(() => import("./SyncDetails.tsx"));
/** A state that ends sooner, such as sending a change, is not announced to screen readers. */
const ANNOUNCE_AFTER_MS = 2_000;
const ATTENTION: Said[] = ["signed-out", "outdated", "full", "only-here", "refused", "lost"];

/** The sync status in one line. A click opens the details. */
export function SyncStatusLine() {
  const sync = useSync();
  const refused = useRejectedRows() ?? [];
  const lost = useConflictLosers() ?? [];
  const now = Math.max(useNow(), Date.parse(sync?.syncedAt ?? "") || 0);
  const [opened, setOpened] = useState(false);
  if (!sync) return null;
  const known = { ...sync, refused: refused.map((row) => row.collection), lost: lost.length };
  const [{ said }, others] = [headline(known), besides(known)];
  const when = sync.syncedAt ? ago(sync.syncedAt, now) : "";
  const line = [headline(known), ...others]
    .map(({ said, n }) => t(`sync.line.${said}`, { n, when }))
    .join(" · ");
  const isUrgent = [said, ...others.map(({ said }) => said)].some((said) => ATTENTION.includes(said));
  return (
    <Box pos="relative" miw={0}>
      <UnstyledButton
        className={classes["line"]!}
        data-attention={isUrgent || undefined}
        title={line}
        data-status={said}
        aria-haspopup="dialog"
        aria-expanded={opened}
        onClick={() => setOpened(true)}
      >
        <Text span size="sm" lh={1.25} lineClamp={2}>
          {line}
        </Text>
      </UnstyledButton>
      <Announcement said={said} />
      {opened && (
        <Suspense>
          <SyncDetails {...{ sync, refused, lost, said }} onClose={() => setOpened(false)} />
        </Suspense>
      )}
    </Box>
  );
}

/** The status for screen readers, without times, which would be announced every 30 seconds. */
function Announcement({ said }: { said: Said }) {
  const [before, setBefore] = useState<Told>({ said, holds: true });
  const now = told(before, said);
  if (now !== before) setBefore(now);
  useEffect(() => {
    const timer = setTimeout(
      () => setBefore((before) => (before.said === said ? before : { said, holds: true })),
      ANNOUNCE_AFTER_MS,
    );
    return () => clearTimeout(timer);
  }, [said]);
  return <VisuallyHidden role="status">{now.holds && t(`sync.detail.${now.said}`)}</VisuallyHidden>;
}
