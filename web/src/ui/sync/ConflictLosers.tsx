/** Words that gave way to another device's change or delete. They are kept until somebody has decided. */

import { Blockquote, Box, Button, CopyButton, Group, Text, Title } from "@mantine/core";
import { useState } from "react";
import type { ConflictLoser } from "../../storage/deviceDatabase.ts";
import type { Collections } from "../../core/schema/rows.ts";
import { nameOf } from "../../core/schema/rowText.ts";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { said } from "../errorMessage.ts";
import { t } from "../../locale/t.ts";

export function ConflictLosers({ lost }: { lost: ConflictLoser[] }) {
  return (
    <Box component="section">
      <Title order={2} size="h6">
        {t("sync.replacedTitle")}
      </Title>
      <PlainList gap="md">
        {lost.map((one) => (
          <Lost key={one.id} lost={one} />
        ))}
      </PlainList>
    </Box>
  );
}

function Lost({ lost }: { lost: ConflictLoser }) {
  const { api } = useAccountApi();
  const [problem, setProblem] = useState<string>();
  const collection = lost.collection as keyof Collections;
  const text = Object.values(lost.fields).join("\n\n");
  // A value or a note alone does not say whose it is: its row does, as it is now.
  const row = useRows(collection, { selector: { id: lost.rowId } })?.[0];
  const name =
    nameOf(collection, lost.fields) || nameOf(collection, { ...row }) || t(`sync.item.${collection}`);
  return (
    <li>
      <Text size="sm">{told(lost, name)}</Text>
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
        {!lost.gone && (
          <Button
            size="compact-sm"
            variant="light"
            onClick={() =>
              void api.restoreConflictLoser(lost.id).catch((error: unknown) => setProblem(said(error)))
            }
          >
            {t("sync.restore")}
          </Button>
        )}
        <Button size="compact-sm" variant="subtle" onClick={() => void api.dismissConflictLoser(lost.id)}>
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

/** Why it is kept here. A question that the server never had was not deleted itself: its conversation was. */
function told({ gone, collection }: ConflictLoser, name: string): string {
  if (!gone) return t("sync.replaced", { name });
  return gone === "unsent" && collection === "episodes"
    ? t("sync.replacedQuestion", { name })
    : t("sync.replacedByDelete", { name });
}
