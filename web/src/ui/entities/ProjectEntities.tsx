/** People, places and things of one project, as a list or as a graph. */

import { SegmentedControl, Skeleton, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Section } from "../components/Section.tsx";
import { EntityGraph } from "./EntityGraph.tsx";
import { EntityList } from "./EntityList.tsx";
import { useEntities } from "./useEntities.ts";
import { t } from "../../locale/t.ts";

export function ProjectEntities({ projectId }: { projectId: string }) {
  const known = useEntities(projectId);
  const [shown, setShown] = useState("list");
  return (
    <Section title={t("entities.title")} hint={t("entities.hint")}>
      {!known && <Skeleton h={120} />}
      {known?.entities.length === 0 && <Text c="dimmed">{t("entities.none")}</Text>}
      {known && known.entities.length > 0 && (
        <Stack gap="md">
          <SegmentedControl
            aria-label={t("entities.view")}
            value={shown}
            onChange={setShown}
            style={{ alignSelf: "start" }}
            data={[
              { value: "list", label: t("entities.list") },
              { value: "graph", label: t("entities.graph") },
            ]}
          />
          {shown === "list" ? <EntityList known={known} /> : <EntityGraph known={known} />}
        </Stack>
      )}
    </Section>
  );
}
