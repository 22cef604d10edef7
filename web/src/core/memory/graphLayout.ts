/**
 * Force-directed layout of a graph (Fruchterman and Reingold, 1991): connected nodes are near each other, and
 * all nodes repel each other. The layout is deterministic, so the same graph always looks the same.
 */

export interface Point {
  x: number;
  y: number;
}

interface Edge {
  from: string;
  to: string;
}

interface Room {
  width: number;
  height: number;
  /** Free space at each side for the node labels. */
  margin: Point;
}

type Frame = Pick<Room, "width" | "height">;

const STEPS = 200;
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/**
 * Strength of the pull to the center. With this value, nodes without edges evenly fill an ellipse the size of
 * the frame.
 */
const CENTER_PULL = 5;

export function layout(
  ids: readonly string[],
  edges: readonly Edge[],
  room: Room,
): ReadonlyMap<string, Point> {
  const frame = { width: room.width - 2 * room.margin.x, height: room.height - 2 * room.margin.y };
  const points = ids.map((_, at) => sunflower(at, ids.length, frame));
  const at = new Map(ids.map((id, index) => [id, index]));
  const pairs = edges.flatMap(({ from, to }) => {
    const [a, b] = [at.get(from), at.get(to)];
    return a === undefined || b === undefined || a === b ? [] : [[a, b] as const];
  });
  const apart = 0.8 * Math.sqrt((frame.width * frame.height) / Math.max(1, ids.length));
  for (let step = 0; step < STEPS; step++) {
    const furthest = (1 - step / STEPS) * (Math.min(frame.width, frame.height) / 10);
    move(points, forces(points, pairs, apart, frame), furthest);
  }
  const placed = fitted(points, frame);
  return new Map(
    ids.map((id, index) => {
      const { x, y } = placed[index]!;
      return [id, { x: x + room.width / 2, y: y + room.height / 2 }];
    }),
  );
}

/** Return the initial position of a node: a sunflower spiral spreads the nodes evenly around the center. */
function sunflower(at: number, of: number, { width, height }: Frame): Point {
  const distance = Math.sqrt((at + 0.5) / of) / 2;
  const angle = at * GOLDEN_ANGLE;
  return { x: Math.cos(angle) * distance * width, y: Math.sin(angle) * distance * height };
}

/**
 * Return the force on each node: repulsion between all nodes, attraction along edges, and a pull to the
 * center.
 */
function forces(
  points: readonly Point[],
  pairs: readonly (readonly [number, number])[],
  apart: number,
  { width, height }: Frame,
) {
  const inwards = CENTER_PULL / (width + height);
  const pulled = points.map(({ x, y }): Point => ({ x: -x * inwards * height, y: -y * inwards * width }));
  function push(a: number, b: number, force: (distance: number) => number) {
    const [dx, dy] = [points[a]!.x - points[b]!.x, points[a]!.y - points[b]!.y];
    const distance = Math.max(1, Math.hypot(dx, dy));
    const by = force(distance) / distance;
    pulled[a]!.x += dx * by;
    pulled[a]!.y += dy * by;
    pulled[b]!.x -= dx * by;
    pulled[b]!.y -= dy * by;
  }
  for (let a = 0; a < points.length; a++) {
    for (let b = 0; b < a; b++) push(a, b, (distance) => apart ** 2 / distance);
  }
  for (const [a, b] of pairs) push(a, b, (distance) => -(distance ** 2) / apart);
  return pulled;
}

function move(points: readonly Point[], pulled: readonly Point[], furthest: number): void {
  points.forEach((point, at) => {
    const { x, y } = pulled[at]!;
    const length = Math.max(1e-6, Math.hypot(x, y));
    const by = Math.min(length, furthest) / length;
    point.x += x * by;
    point.y += y * by;
  });
}

/**
 * Center the graph and scale it down to the frame. Clamping single nodes instead would pile them up at the
 * border.
 */
function fitted(points: readonly Point[], { width, height }: Frame): Point[] {
  const [left, across] = span(points.map(({ x }) => x));
  const [top, down] = span(points.map(({ y }) => y));
  const by = Math.min(1, width / across, height / down);
  return points.map(({ x, y }) => ({ x: (x - left - across / 2) * by, y: (y - top - down / 2) * by }));
}

function span(values: readonly number[]): [number, number] {
  const least = Math.min(...values);
  return [least, Math.max(1e-6, Math.max(...values) - least)];
}
