import { Stack, Title } from "@mantine/core";
import { groupBy } from "../../lib/groupBy.ts";
import type { EntityDoc } from "../../core/schema/rows.ts";
import { PlainList } from "../components/PlainList.tsx";
import { EntityCard } from "./EntityCard.tsx";
import type { EntityNetwork } from "./useEntities.ts";
import { t } from "../../locale/t.ts";

const TYPES: EntityDoc["type"][] = ["person", "organization", "place", "project", "technology", "concept"];

/** Show the entities by type, with the same information as the graph. */
export function EntityList({ network }: { network: EntityNetwork }) {
  const byType = groupBy(network.entities, ({ type }) => type);
  return TYPES.filter((type) => byType.has(type)).map((type) => (
    <Stack key={type} gap="xs">
      <Title order={4} size="h5">
        {t(`entities.types.${type}`)}
      </Title>
      <PlainList>
        {byType.get(type)?.map((entity) => (
          <li key={entity.id}>
            <EntityCard entity={entity} network={network} />
          </li>
        ))}
      </PlainList>
    </Stack>
  ));
}
