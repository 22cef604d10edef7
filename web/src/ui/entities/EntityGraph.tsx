import { Box, Flex, Paper, Stack, Text } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { useMemo, useState, type KeyboardEvent } from "react";
import { mostConnected } from "../../core/memory/mostConnected.ts";
import { layout } from "../../core/memory/graphLayout.ts";
import { EntityCard } from "./EntityCard.tsx";
import classes from "./EntityGraph.module.css";
import { GraphEdge } from "./GraphEdge.tsx";
import { GraphNode } from "./GraphNode.tsx";
import type { EntityNetwork } from "./useEntities.ts";
import { t } from "../../locale/t.ts";

const NODES_MAX = 80;
/** Minimum height of the graph in pixels per node, so that the names of many nodes do not overlap. */
const HEIGHT_PER_NODE = 9;
const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Show the entities and their connections as a graph, with the details of the selected entity. */
export function EntityGraph({ network }: { network: EntityNetwork }) {
  const { ref, width } = useElementSize();
  const [chosen, setChosen] = useState<string>();
  const [focused, setFocused] = useState<string>();
  const { nodes, edges } = mostConnected(network.entities, network.relationships, NODES_MAX);
  const height = Math.round(Math.max(340, Math.min(480, width * 0.7), nodes.length * HEIGHT_PER_NODE));
  const graphKey = `${nodes.map(({ id }) => id).join()} ${edges.map(({ id }) => id).join()}`;
  const positions = useMemo(
    () =>
      layout(
        nodes.map(({ id }) => id),
        edges.map(({ fromId, toId }) => ({ from: fromId, to: toId })),
        { width, height, margin: { x: Math.min(90, width / 5), y: 36 } },
      ),
    // `nodes` and `edges` are new objects at every render, so the layout depends on `graphKey`, which has their ids.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [graphKey, width, height],
  );
  const entity = network.entities.find(({ id }) => id === chosen);
  const tabStop = nodes.some(({ id }) => id === focused) ? focused : nodes[0]?.id;

  function onKey(event: KeyboardEvent<SVGElement>) {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const index = nodes.findIndex(({ id }) => id === tabStop);
    const next = nodes[(index + step + nodes.length) % nodes.length];
    if (next) event.currentTarget.querySelector<SVGElement>(`[data-id="${CSS.escape(next.id)}"]`)?.focus();
  }

  return (
    <Stack gap="sm">
      {nodes.length < network.entities.length && (
        <Text size="sm" c="dimmed">
          {t("entities.graphPart", { shown: nodes.length, total: network.entities.length })}
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
                    from={positions.get(edge.fromId)!}
                    to={positions.get(edge.toId)!}
                    highlighted={edge.fromId === chosen || edge.toId === chosen}
                  />
                ))}
                {nodes.map(({ id, name, type }) => (
                  <GraphNode
                    key={id}
                    id={id}
                    name={name}
                    type={type}
                    position={positions.get(id)!}
                    edges={edges.filter(({ fromId, toId }) => fromId === id || toId === id).length}
                    chosen={id === chosen}
                    isTabStop={id === tabStop}
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
            <EntityCard key={entity.id} entity={entity} network={network} />
          ) : (
            <Text c="dimmed">{t("entities.choose")}</Text>
          )}
        </Box>
      </Flex>
    </Stack>
  );
}
