/** How much room there is: documents of the most, bytes of the tier. From 90 on, what to delete. */

import { Alert, Badge, Button, Group, Progress, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { counted } from "../../core/documents/documentList.ts";
import type { DocumentDoc } from "../../core/schema/rows.ts";
import { suggested, WARN_FROM } from "../../core/documents/cleanup_candidates.ts";
import type { Usage } from "../../storage/deviceDatabase.ts";
import { unusedSince } from "./unusedSince.ts";
import { useAccountApi, useSync } from "../../client/backendClient.tsx";
import { ago, bytes } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

export const SUGGESTED = 5;

interface QuotaMeterProps {
  documents: readonly DocumentDoc[];
  onChoose: () => void;
}

export function QuotaMeter({ documents, onChoose }: QuotaMeterProps) {
  const { account } = useAccountApi();
  const live = useSync()?.kind === "live";
  const { held, onlyHere } = counted(documents);
  const usage = useUsage(`${held} ${live}`);
  const { limits, tier } = account;
  const said = [
    t("documents.countOfLimit", { n: held, limit: limits.documents }),
    usage && t("documents.bytes", { used: bytes(usage.bytes), limit: bytes(limits.storageBytes) }),
  ].filter(Boolean);
  return (
    <Stack gap="xs" component="section" aria-label={t("documents.storage")}>
      <Group justify="space-between" gap="xs">
        <Text size="sm">
          {said.join(" · ")}
          {usage && !live && (
            <Text span c="dimmed">
              {` (${t("documents.bytesAsOf", { when: ago(usage.at) })})`}
            </Text>
          )}
        </Text>
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
          {t("documents.onlyHereCount", { n: onlyHere })}
        </Text>
      )}
      {held >= WARN_FROM && (
        <Warning documents={documents} left={limits.documents - held} onChoose={onChoose} />
      )}
    </Stack>
  );
}

function Warning({ documents, left, onChoose }: QuotaMeterProps & { left: number }) {
  const unused = suggested(
    documents.filter(({ syncError }) => !syncError),
    SUGGESTED,
  );
  const latest = unused
    .map(({ lastAccessedAt }) => lastAccessedAt)
    .sort()
    .at(-1);
  return (
    <Alert variant="default" p="sm">
      <Text size="sm">
        {t("documents.room", { n: Math.max(0, left) })} {latest && unusedSince(unused.length, latest)}
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

/** As the server counts; asked again when `key` changes. */
function useUsage(key: string): Usage | null {
  const { api } = useAccountApi();
  const [usage, setUsage] = useState<Usage | null>(null);
  useEffect(() => {
    let gone = false;
    void api.usage().then((answer) => void (gone || setUsage(answer)));
    return () => void (gone = true);
  }, [api, key]);
  return usage;
}
