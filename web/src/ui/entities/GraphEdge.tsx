import type { Point } from "../../core/memory/graphLayout.ts";
import classes from "./EntityGraph.module.css";

interface Props {
  label: string;
  from: Point;
  to: Point;
  /** Whether one of the two entities is selected. Only then is the label visible. */
  highlighted: boolean;
}

/** Show a connection between two entities. */
export function GraphEdge({ label, from, to, highlighted }: Props) {
  return (
    <g aria-hidden data-highlighted={highlighted || undefined} className={classes["edge"]}>
      <line x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      {highlighted && (
        <text x={(from.x + to.x) / 2} y={(from.y + to.y) / 2 - 4}>
          {label}
        </text>
      )}
    </g>
  );
}
