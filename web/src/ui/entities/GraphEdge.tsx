import type { Point } from "../../core/memory/graphLayout.ts";
import classes from "./EntityGraph.module.css";

interface Props {
  label: string;
  from: Point;
  to: Point;
  /** One of its ends is chosen: what it says is written beside it. */
  marked: boolean;
}

/** A connection of two names. */
export function GraphEdge({ label, from, to, marked }: Props) {
  return (
    <g aria-hidden data-marked={marked || undefined} className={classes["edge"]}>
      <line x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      {marked && (
        <text x={(from.x + to.x) / 2} y={(from.y + to.y) / 2 - 4}>
          {label}
        </text>
      )}
    </g>
  );
}
