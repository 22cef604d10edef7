import { Blockquote, Box, Button, CopyButton, Group, Text, Title } from "@mantine/core";
import { useState } from "react";
import type { ConflictLoser } from "../../backend/api.ts";
import type { Collections } from "../../core/schema/rows.ts";
import { nameOf } from "../../core/schema/rowText.ts";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { errorMessage } from "../errorMessage.ts";
import { t } from "../../locale/t.ts";

/**
 * Show the conflict losers: texts of this device that another device replaced or deleted. Each is shown until the user
 * restores or dismisses it.
 */
export function ConflictLosers({ losers }: { losers: ConflictLoser[] }) {
  return (
    <Box component="section">
      <Title order={2} size="h6">
        {t("sync.replacedTitle")}
      </Title>
      <PlainList gap="md">
        {losers.map((loser) => (
          <LoserItem key={loser.id} loser={loser} />
        ))}
      </PlainList>
    </Box>
  );
}

function LoserItem({ loser }: { loser: ConflictLoser }) {
  const { api } = useAccountApi();
  const [problem, setProblem] = useState<string>();
  const collection = loser.collection as keyof Collections;
  const text = Object.values(loser.fields).join("\n\n");
  // The row's current state: the source of the item's name if the replaced fields lack it.
  const row = useRows(collection, { selector: { id: loser.rowId } })?.[0];
  const name =
    nameOf(collection, loser.fields) || nameOf(collection, { ...row }) || t(`sync.item.${collection}`);
  const restore = () =>
    void api.restoreConflictLoser(loser.id).catch((error: unknown) => setProblem(errorMessage(error)));
  return (
    <li>
      <Text size="sm">{explanation(loser, name)}</Text>
      <Blockquote p="xs" my={4} fz="sm" style={{ whiteSpace: "pre-wrap" }}>
        <Text size="sm" lineClamp={6}>
          {text}
        </Text>
      </Blockquote>
      <Group gap="xs">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button size="compact-sm" variant="light" onClick={copy}>
              {copied ? t("common.copied") : t("common.copy")}
            </Button>
          )}
        </CopyButton>
        {!loser.gone && (
          <Button size="compact-sm" variant="light" onClick={restore}>
            {t("sync.restore")}
          </Button>
        )}
        <Button size="compact-sm" variant="subtle" onClick={() => void api.dismissConflictLoser(loser.id)}>
          {t("sync.dismiss")}
        </Button>
      </Group>
      {problem && (
        <Text role="alert" size="sm">
          {problem}
        </Text>
      )}
    </li>
  );
}

/** Return a sentence that says why a text is kept. An unsent question is kept because its chat was deleted. */
function explanation({ gone, collection }: ConflictLoser, name: string): string {
  if (!gone) return t("sync.replaced", { name });
  return gone === "unsent" && collection === "episodes"
    ? t("sync.replacedQuestion", { name })
    : t("sync.replacedByDelete", { name });
}
