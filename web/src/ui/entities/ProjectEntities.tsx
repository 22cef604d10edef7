import { SegmentedControl, Skeleton, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Section } from "../components/Section.tsx";
import { EntityGraph } from "./EntityGraph.tsx";
import { EntityList } from "./EntityList.tsx";
import { useEntities } from "./useEntities.ts";
import { t } from "../../locale/t.ts";

/** Show the entities of a project, as a list or as a graph. */
export function ProjectEntities({ projectId }: { projectId: string }) {
  const network = useEntities(projectId);
  const [view, setView] = useState("list");
  return (
    <Section title={t("entities.title")} hint={t("entities.hint")}>
      {!network && <Skeleton h={120} />}
      {network?.entities.length === 0 && <Text c="dimmed">{t("entities.none")}</Text>}
      {network && network.entities.length > 0 && (
        <Stack gap="md">
          <SegmentedControl
            aria-label={t("entities.view")}
            value={view}
            onChange={setView}
            style={{ alignSelf: "start" }}
            data={[
              { value: "list", label: t("entities.list") },
              { value: "graph", label: t("entities.graph") },
            ]}
          />
          {view === "list" ? <EntityList network={network} /> : <EntityGraph network={network} />}
        </Stack>
      )}
    </Section>
  );
}
