import type { EntityDoc, RelationshipDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { usePendingDeletes } from "../pendingDeletes.ts";

/** The entities of a project, sorted by name, and the connections between them. */
export interface EntityNetwork {
  entities: EntityDoc[];
  relationships: RelationshipDoc[];
}

export function useEntities(projectId: string): EntityNetwork | undefined {
  const pending = usePendingDeletes();
  const rows = useRows("entities", { selector: { projectId } });
  const relationships = useRows("relationships");
  if (!rows || !relationships) return undefined;
  const entities = rows.filter(({ id }) => !pending.has(id)).toSorted((a, b) => a.name.localeCompare(b.name));
  const ids = new Set(entities.map(({ id }) => id));
  return {
    entities,
    relationships: relationships.filter(({ fromId, toId }) => ids.has(fromId) && ids.has(toId)),
  };
}
