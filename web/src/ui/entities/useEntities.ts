import type { EntityDoc, RelationshipDoc } from "../../core/schema/rows.ts";
import { useRows } from "../../client/backendClient.tsx";
import { usePending } from "../pendingDeletes.ts";

/** Whom and what a project knows, by name, and the connections between them. */
export interface Known {
  entities: EntityDoc[];
  relationships: RelationshipDoc[];
}

export function useEntities(projectId: string): Known | undefined {
  const pending = usePending();
  const found = useRows("entities", { selector: { projectId } });
  const connected = useRows("relationships");
  if (!found || !connected) return undefined;
  const entities = found
    .filter(({ id }) => !pending.has(id))
    .toSorted((a, b) => a.name.localeCompare(b.name));
  const ids = new Set(entities.map(({ id }) => id));
  return {
    entities,
    relationships: connected.filter(({ fromId, toId }) => ids.has(fromId) && ids.has(toId)),
  };
}
