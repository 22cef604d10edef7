/** Reduce a large graph to its best connected nodes, so that it stays readable. */

import type { EntityDoc, RelationshipDoc } from "../schema/rows.ts";

type Node = Pick<EntityDoc, "id">;
type Edge = Pick<RelationshipDoc, "fromId" | "toId">;

/** Return the `most` nodes with the most edges, in their original order, and the edges between these nodes. */
export function mostConnected<N extends Node, E extends Edge>(
  nodes: readonly N[],
  edges: readonly E[],
  most: number,
) {
  const degree = new Map<string, number>();
  for (const id of edges.flatMap(({ fromId, toId }) => [fromId, toId])) {
    degree.set(id, (degree.get(id) ?? 0) + 1);
  }
  const ranked = nodes.toSorted((a, b) => (degree.get(b.id) ?? 0) - (degree.get(a.id) ?? 0));
  const drawn = new Set(ranked.slice(0, most).map(({ id }) => id));
  return {
    nodes: nodes.filter(({ id }) => drawn.has(id)),
    edges: edges.filter(({ fromId, toId }) => drawn.has(fromId) && drawn.has(toId)),
  };
}
