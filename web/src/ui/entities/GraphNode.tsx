import type { KeyboardEvent } from "react";
import type { Point } from "../../core/memory/graphLayout.ts";
import type { EntityDoc } from "../../core/schema/rows.ts";
import classes from "./EntityGraph.module.css";
import { t } from "../../locale/t.ts";

interface Props extends Pick<EntityDoc, "id" | "name" | "type"> {
  position: Point;
  /** Number of the entity's connections. */
  edges: number;
  chosen: boolean;
  /** Whether Tab moves the focus to this node. From there, the arrow keys move the focus between nodes. */
  isTabStop: boolean;
  onFocus(id: string): void;
  onChoose(id: string): void;
}

const NAME_MAX = 22;
const RADIUS = 8;

/** Show an entity as a circle whose size grows with the number of the entity's connections. */
export function GraphNode(props: Props) {
  const { id, name, type, position, edges, chosen, isTabStop, onFocus, onChoose } = props;
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
      transform={`translate(${position.x} ${position.y})`}
      onClick={() => onChoose(id)}
    >
      <g
        data-id={id}
        role="button"
        tabIndex={isTabStop ? 0 : -1}
        aria-label={t("entities.node", { name, type: t(`entities.type.${type}`), n: edges })}
        aria-pressed={chosen}
        onFocus={() => onFocus(id)}
        onKeyDown={onKey}
      >
        <circle r={22} className={classes["target"]} />
        <circle r={radius} className={classes["dot"]} />
      </g>
      {/* Hidden from screen readers: the label of the button has the full name. */}
      <text y={radius + 15} aria-hidden>
        {short}
      </text>
    </g>
  );
}
