import { Button, Group, Paper } from "@mantine/core";
import type { MemoryDoc } from "../../core/schema/rows.ts";
import { ExpandableText } from "../components/ExpandableText.tsx";
import { PlainList } from "../components/PlainList.tsx";
import { useAccountApi } from "../../client/backendClient.tsx";
import { StatementSource } from "./StatementSource.tsx";
import { t } from "../../locale/t.ts";

/** Show the earlier versions of a memory. Each version has a button that restores it. */
export function EarlierVersions({ earlier }: { earlier: readonly MemoryDoc[] }) {
  const { api } = useAccountApi();
  return (
    <PlainList mt="xs">
      {earlier.map((version) => (
        <Paper key={version.id} component="li" bg="var(--mantine-color-default-hover)" p="sm">
          <ExpandableText text={version.text} />
          <StatementSource memory={version} showProject={false} />
          <Group justify="end" mt={4}>
            <Button
              size="compact-sm"
              variant="default"
              aria-label={t("common.actionOn", { action: t("memory.restoreVersion"), name: version.text })}
              onClick={() => void api.memory.restoreMemoryVersion(version.id)}
            >
              {t("memory.restoreVersion")}
            </Button>
          </Group>
        </Paper>
      ))}
    </PlainList>
  );
}
