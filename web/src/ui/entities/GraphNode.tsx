import type { KeyboardEvent } from "react";
import type { Point } from "../../core/memory/graphLayout.ts";
import type { EntityDoc } from "../../core/schema/rows.ts";
import classes from "./EntityGraph.module.css";
import { t } from "../../locale/t.ts";

interface Props extends Pick<EntityDoc, "id" | "name" | "type"> {
  at: Point;
  /** How many connections it has. */
  edges: number;
  chosen: boolean;
  /** The one that Tab comes to; the arrow keys go on from there. */
  reachable: boolean;
  onFocus(id: string): void;
  onChoose(id: string): void;
}

const NAME_MAX = 22;
const RADIUS = 8;

/** One name: the more connections it has, the larger it is. */
export function GraphNode(props: Props) {
  const { id, name, type, at, edges, chosen, reachable, onFocus, onChoose } = props;
  const radius = RADIUS + Math.min(8, edges * 1.5);
  const short = name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name;

  function onKey(event: KeyboardEvent) {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onChoose(id);
  }

  return (
    <g
      data-type={type}
      className={classes["node"]}
      transform={`translate(${at.x} ${at.y})`}
      onClick={() => onChoose(id)}
    >
      <g
        data-id={id}
        role="button"
        tabIndex={reachable ? 0 : -1}
        aria-label={t("entities.node", { name, type: t(`entities.type.${type}`), n: edges })}
        aria-pressed={chosen}
        onFocus={() => onFocus(id)}
        onKeyDown={onKey}
      >
        <circle r={22} className={classes["target"]} />
        <circle r={radius} className={classes["dot"]} />
      </g>
      {/* What may be cut short here is whole in the button's own name. */}
      <text y={radius + 15} aria-hidden>
        {short}
      </text>
    </g>
  );
}
