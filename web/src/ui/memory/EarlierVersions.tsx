/** What a statement said before: each can be used again. */

import { Button, Group, Paper } from "@mantine/core";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { ExpandableText } from "../components/ExpandableText.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { useAccountApi } from "../../client/backendClient.tsx";
import { StatementSource } from "./StatementSource.tsx";
import { t } from "../../locale/t.ts";

export function EarlierVersions({ earlier }: { earlier: readonly MemoryDoc[] }) {
  const { api } = useAccountApi();
  return (
    <PlainList mt="xs">
      {earlier.map((one) => (
        <Paper key={one.id} component="li" bg="var(--mantine-color-default-hover)" p="sm">
          <ExpandableText text={one.text} />
          <StatementSource memory={one} placed={false} />
          <Group justify="end" mt={4}>
            <Button
              size="compact-sm"
              variant="default"
              aria-label={t("common.actionOn", { action: t("memory.restoreVersion"), name: one.text })}
              onClick={() => void api.memory.restoreMemoryVersion(one.id)}
            >
              {t("memory.restoreVersion")}
            </Button>
          </Group>
        </Paper>
      ))}
    </PlainList>
  );
}
