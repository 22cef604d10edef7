/** People, places and things by their type: what the graph shows, in words. */

import { Stack, Title } from "@mantine/core";
import { grouped } from "../../lib/groupBy.ts";
import type { EntityDoc } from "../../core/schema/rows.ts";
import { PlainList } from "../components/PlainList.tsx";
import { EntityCard } from "./EntityCard.tsx";
import type { Known } from "./useEntities.ts";
import { t } from "../../locale/t.ts";

const TYPES: EntityDoc["type"][] = ["person", "organization", "place", "project", "technology", "concept"];

export function EntityList({ known }: { known: Known }) {
  const byType = grouped(known.entities, ({ type }) => type);
  return TYPES.filter((type) => byType.has(type)).map((type) => (
    <Stack key={type} gap="xs">
      <Title order={4} size="h5">
        {t(`entities.types.${type}`)}
      </Title>
      <PlainList>
        {byType.get(type)?.map((entity) => (
          <li key={entity.id}>
            <EntityCard entity={entity} known={known} />
          </li>
        ))}
      </PlainList>
    </Stack>
  ));
}
