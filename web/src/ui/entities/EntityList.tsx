/** People, places and things by their type: what the graph shows, in words. */

import { Stack, Title } from "@mantine/core";
import { grouped } from "../../lib/groupBy.ts";
import type { EntityDoc } from "../../core/schema/rows.ts";
import { PlainList } from "../components/PlainList.tsx";
import { entities as words } from "../words/entities.ts";
import { EntityCard } from "./EntityCard.tsx";
import type { Known } from "./useEntities.ts";

const TYPES = Object.keys(words.types) as EntityDoc["type"][];

export function EntityList({ known }: { known: Known }) {
  const byType = grouped(known.entities, ({ type }) => type);
  return TYPES.filter((type) => byType.has(type)).map((type) => (
    <Stack key={type} gap="xs">
      <Title order={4} size="h5">
        {words.types[type]}
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
