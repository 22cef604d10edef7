/**
 * Where the names of a graph stand: those that are connected near each other, all of them apart (Fruchterman and
 * Reingold, 1991). Without chance: the same graph is drawn the same way each time.
 */

export interface Point {
  x: number;
  y: number;
}

export interface Edge {
  from: string;
  to: string;
}

export interface Room {
  width: number;
  height: number;
  /** Kept free at each side, for the names. */
  margin: Point;
}

const STEPS = 200;
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

export function layout(
  ids: readonly string[],
  edges: readonly Edge[],
  room: Room,
): ReadonlyMap<string, Point> {
  const inner = { width: room.width - 2 * room.margin.x, height: room.height - 2 * room.margin.y };
  const points = ids.map((_, at) => sunflower(at, ids.length, inner));
  const at = new Map(ids.map((id, index) => [id, index]));
  const pairs = edges.flatMap(({ from, to }) => {
    const [a, b] = [at.get(from), at.get(to)];
    return a === undefined || b === undefined || a === b ? [] : [[a, b] as const];
  });
  const apart = 0.8 * Math.sqrt((inner.width * inner.height) / Math.max(1, ids.length));
  for (let step = 0; step < STEPS; step++) {
    const furthest = (1 - step / STEPS) * (Math.min(inner.width, inner.height) / 10);
    move(points, forces(points, pairs, apart), furthest, inner);
  }
  return new Map(
    ids.map((id, index) => {
      const { x, y } = points[index]!;
      return [id, { x: x + room.width / 2, y: y + room.height / 2 }];
    }),
  );
}

/** Evenly spread around the middle, which is where it begins. */
function sunflower(at: number, of: number, { width, height }: Pick<Room, "width" | "height">): Point {
  const distance = Math.sqrt((at + 0.5) / of) / 2;
  const angle = at * GOLDEN_ANGLE;
  return { x: Math.cos(angle) * distance * width, y: Math.sin(angle) * distance * height };
}

/** All push each other away; those that are connected pull each other near. */
function forces(points: readonly Point[], pairs: readonly (readonly [number, number])[], apart: number) {
  const pulled = points.map((): Point => ({ x: 0, y: 0 }));
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

function move(
  points: Point[],
  pulled: readonly Point[],
  furthest: number,
  { width, height }: Pick<Room, "width" | "height">,
): void {
  points.forEach((point, at) => {
    const { x, y } = pulled[at]!;
    const length = Math.max(1e-6, Math.hypot(x, y));
    const by = Math.min(length, furthest) / length;
    point.x = within(point.x + x * by, width / 2);
    point.y = within(point.y + y * by, height / 2);
  });
}

function within(value: number, most: number): number {
  return Math.max(-most, Math.min(most, value));
}
