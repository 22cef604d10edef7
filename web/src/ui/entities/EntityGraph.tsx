/** The connections of people, places and things as a picture; what is known of the chosen one stands below. */

import { Box, Flex, Paper, Stack, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useMemo, useState, type KeyboardEvent } from "react";
import { best } from "../../core/memory/mostConnected.ts";
import { layout } from "../../core/memory/graphLayout.ts";
import { EntityCard } from "./EntityCard.tsx";
import classes from "./EntityGraph.module.css";
import { GraphEdge } from "./GraphEdge.tsx";
import { GraphNode } from "./GraphNode.tsx";
import type { Known } from "./useEntities.ts";
import { t } from "../../locale/t.ts";

const DRAWN_MOST = 80;
/** Many names take more room than few: they would be written over each other. */
const HEIGHT_OF_NAME = 9;
const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function EntityGraph({ known }: { known: Known }) {
  const { ref, width } = useElementSize();
  const [chosen, setChosen] = useState<string>();
  const [focused, setFocused] = useState<string>();
  const { nodes, edges } = best(known.entities, known.relationships, DRAWN_MOST);
  const height = Math.round(Math.max(340, Math.min(480, width * 0.7), nodes.length * HEIGHT_OF_NAME));
  const graph = `${nodes.map(({ id }) => id).join()} ${edges.map(({ id }) => id).join()}`;
  const places = useMemo(
    () =>
      layout(
        nodes.map(({ id }) => id),
        edges.map(({ fromId, toId }) => ({ from: fromId, to: toId })),
        { width, height, margin: { x: Math.min(90, width / 5), y: 36 } },
      ),
    // `nodes` and `edges` are made anew at every drawing; `graph` says when they are others.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [graph, width, height],
  );
  const entity = known.entities.find(({ id }) => id === chosen);
  const reachable = nodes.some(({ id }) => id === focused) ? focused : nodes[0]?.id;

  function onKey(event: KeyboardEvent<SVGElement>) {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const at = nodes.findIndex(({ id }) => id === reachable);
    const next = nodes[(at + step + nodes.length) % nodes.length];
    if (next) event.currentTarget.querySelector<SVGElement>(`[data-id="${CSS.escape(next.id)}"]`)?.focus();
  }

  return (
    <Stack gap="sm">
      {nodes.length < known.entities.length && (
        <Text size="sm" c="dimmed">
          {t("entities.graphPart", { shown: nodes.length, total: known.entities.length })}
        </Text>
      )}
      <Flex direction={{ base: "column", md: "row" }} gap="sm" align={{ md: "start" }}>
        <Paper withBorder flex={1} miw={0}>
          <Box ref={ref}>
            {width > 0 && (
              <svg
                className={classes["graph"]}
                width={width}
                height={height}
                role="group"
                aria-label={t("entities.graphLabel", { n: nodes.length, edges: edges.length })}
                onKeyDown={onKey}
              >
                {edges.map((edge) => (
                  <GraphEdge
                    key={edge.id}
                    label={edge.label}
                    from={places.get(edge.fromId)!}
                    to={places.get(edge.toId)!}
                    marked={edge.fromId === chosen || edge.toId === chosen}
                  />
                ))}
                {nodes.map(({ id, name, type }) => (
                  <GraphNode
                    key={id}
                    id={id}
                    name={name}
                    type={type}
                    at={places.get(id)!}
                    edges={edges.filter(({ fromId, toId }) => fromId === id || toId === id).length}
                    chosen={id === chosen}
                    reachable={id === reachable}
                    onFocus={setFocused}
                    onChoose={setChosen}
                  />
                ))}
              </svg>
            )}
          </Box>
        </Paper>
        <Box aria-live="polite" w={{ md: 300 }}>
          {entity ? (
            <EntityCard key={entity.id} entity={entity} known={known} />
          ) : (
            <Text c="dimmed">{t("entities.choose")}</Text>
          )}
        </Box>
      </Flex>
    </Stack>
  );
}
