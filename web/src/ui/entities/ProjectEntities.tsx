/** People, places and things of one project, as a list or as a graph. */

import { SegmentedControl, Skeleton, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Section } from "../components/Section.tsx";
import { entities as words } from "../words/entities.ts";
import { EntityGraph } from "./EntityGraph.tsx";
import { EntityList } from "./EntityList.tsx";
import { useEntities } from "./useEntities.ts";

export function ProjectEntities({ projectId }: { projectId: string }) {
  const known = useEntities(projectId);
  const [shown, setShown] = useState("list");
  return (
    <Section title={words.title} hint={words.hint}>
      {!known && <Skeleton h={120} />}
      {known?.entities.length === 0 && <Text c="dimmed">{words.none}</Text>}
      {known && known.entities.length > 0 && (
        <Stack gap="md">
          <SegmentedControl
            aria-label={words.show}
            value={shown}
            onChange={setShown}
            style={{ alignSelf: "start" }}
            data={[
              { value: "list", label: words.list },
              { value: "graph", label: words.graph },
            ]}
          />
          {shown === "list" ? <EntityList known={known} /> : <EntityGraph known={known} />}
        </Stack>
      )}
    </Section>
  );
}
