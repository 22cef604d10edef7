import { Alert, Badge, Button, Group, Progress, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { countDocuments } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { suggestCleanup, WARN_FROM } from "../../core/documents/cleanup_candidates.ts";
import type { Usage } from "../../backend/api.ts";
import { unusedSince } from "./unusedSince.ts";
import { useAccountApi, useSync } from "../../client/backendClient.tsx";
import { ago, bytes } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Maximum number of documents that are suggested for deletion. */
export const SUGGESTED = 5;

interface QuotaMeterProps {
  documents: readonly DocumentDoc[];
  onChoose: () => void;
}

/** Show how much of its limits the account uses. Near the limit of documents, suggest documents to delete. */
export function QuotaMeter({ documents, onChoose }: QuotaMeterProps) {
  const { account } = useAccountApi();
  const isLive = useSync()?.kind === "live";
  const { held, onlyHere } = countDocuments(documents);
  const usage = useUsage(`${held} ${isLive}`);
  const { limits, tier } = account;
  const amounts = [
    t("documents.countOfLimit", { n: held, limit: limits.documents }),
    usage && storageText(usage, limits.storageBytes, isLive),
  ].filter(Boolean);
  return (
    <Stack gap="xs" component="section" aria-label={t("documents.storage")}>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{amounts.join(" · ")}</Text>
        <Badge variant="default" tt="none">
          {t("documents.tier", { tier })}
        </Badge>
      </Group>
      <Progress
        size="sm"
        value={(100 * held) / limits.documents}
        color={held >= WARN_FROM ? "orange" : "teal"}
        aria-label={t("documents.countOfLimit", { n: held, limit: limits.documents })}
      />
      {onlyHere > 0 && (
        <Text size="sm" c="dimmed">
          {t("documents.onDeviceOnlyCount", { n: onlyHere })}
        </Text>
      )}
      {held >= WARN_FROM && (
        <Warning documents={documents} remaining={limits.documents - held} onChoose={onChoose} />
      )}
    </Stack>
  );
}

function storageText(usage: Usage, limitBytes: number, isLive: boolean): string {
  const [used, limit] = [bytes(usage.bytes), bytes(limitBytes)];
  return isLive
    ? t("documents.bytes", { used, limit })
    : t("documents.bytesAsOf", { used, limit, when: ago(usage.at) });
}

function Warning({ documents, remaining, onChoose }: QuotaMeterProps & { remaining: number }) {
  const unused = suggestCleanup(
    documents.filter(({ syncError }) => !syncError),
    SUGGESTED,
  );
  const lastUse = unused
    .map(({ lastAccessedAt }) => lastAccessedAt)
    .sort()
    .at(-1);
  return (
    <Alert variant="default" p="sm">
      <Text size="sm">
        {t("documents.remaining", { n: Math.max(0, remaining) })}{" "}
        {lastUse && unusedSince(unused.length, lastUse)}
      </Text>
      <Text size="sm" c="dimmed" lineClamp={2}>
        {unused.map(({ filename }) => filename).join(", ")}
      </Text>
      <Button size="sm" variant="default" mt="xs" onClick={onChoose}>
        {t("documents.chooseDelete")}
      </Button>
    </Alert>
  );
}

/** Return the account's usage as counted by the server. The request is repeated when `key` changes. */
function useUsage(key: string): Usage | null {
  const { api } = useAccountApi();
  const [usage, setUsage] = useState<Usage | null>(null);
  useEffect(() => {
    let isStale = false;
    void api.usage().then((usage) => void (isStale || setUsage(usage)));
    return () => void (isStale = true);
  }, [api, key]);
  return usage;
}
