/** Lay out the entity graph, and select which entities are drawn. */

import { mostConnected } from "../../../../web/src/core/memory/mostConnected.ts";
import { layout, type Point } from "../../../../web/src/core/memory/graphLayout.ts";

const ROOM = { width: 600, height: 400, margin: { x: 40, y: 40 } };
const IDS = Array.from({ length: 30 }, (_, at) => `e${at}`);
const distance = (a: Point, b: Point) => Math.hypot(a.x - b.x, a.y - b.y);

test("the graph layout keeps nodes apart and in bounds, and is deterministic", () => {
  const edges = IDS.slice(1).map((to) => ({ from: "e0", to }));
  const places = layout(IDS, edges, ROOM);
  const points = [...places.values()];
  for (const { x, y } of points) {
    expect(x).toBeGreaterThanOrEqual(ROOM.margin.x);
    expect(x).toBeLessThanOrEqual(ROOM.width - ROOM.margin.x);
    expect(y).toBeGreaterThanOrEqual(ROOM.margin.x);
    expect(y).toBeLessThanOrEqual(ROOM.height - ROOM.margin.x);
  }
  const apart = points.flatMap((a, at) => points.slice(0, at).map((b) => distance(a, b)));
  expect(Math.min(...apart)).toBeGreaterThan(15);
  expect([...layout(IDS, edges, ROOM)]).toEqual([...places]);
});

test("nodes do not cluster or line up along the border", () => {
  const random = numbers(7);
  const below = (n: number) => Math.floor(random() * n);
  for (const frame of [ROOM, { width: 326, height: 340, margin: { x: 65, y: 36 } }]) {
    const { width, height, margin } = frame;
    for (const many of [2, 5, 20, 60, 120]) {
      for (const edges of [0, many / 4, many - 1, 2 * many]) {
        const ids = Array.from({ length: many }, (_, at) => `e${at}`);
        const some = Array.from({ length: edges }, () => ({
          from: `e${below(many)}`,
          to: `e${below(random() < 0.3 ? 3 : many)}`, // some nodes have many edges
        }));
        const points = [...layout(ids, some, frame).values()];
        const evenly = Math.sqrt(((width - 2 * margin.x) * (height - 2 * margin.y)) / many);
        const apart = points.flatMap((a, at) => points.slice(0, at).map((b) => distance(a, b)));
        const label = `${many} with ${some.length} edges on ${width} pixels`;
        expect(Math.min(...apart), label).toBeGreaterThan(evenly / 6);
        const inside = points.map(({ x, y }) =>
          Math.min(x - margin.x, width - margin.x - x, y - margin.y, height - margin.y - y),
        );
        expect(Math.min(...inside), label).toBeGreaterThan(-1e-6);
        expect(inside.filter((gap) => gap < 1).length, label).toBeLessThanOrEqual(4);
      }
    }
  }
});

/** A random number generator (Lehmer's) with a seed, so that failures are reproducible. */
function numbers(seed: number): () => number {
  let last = seed;
  return () => (last = (last * 48_271) % 2_147_483_647) / 2_147_483_647;
}

test("connected nodes are closer than unconnected ones", () => {
  const places = layout(
    ["a", "b", "c", "d"],
    [
      { from: "a", to: "b" },
      { from: "c", to: "d" },
    ],
    ROOM,
  );
  const between = (one: string, other: string) => distance(places.get(one)!, places.get(other)!);
  const near = Math.max(between("a", "b"), between("c", "d"));
  const far = Math.min(between("a", "c"), between("a", "d"), between("b", "c"), between("b", "d"));
  expect(near).toBeLessThan(far);
});

test("a single node, a dangling edge and an empty graph can be laid out", () => {
  const alone = layout(
    ["a"],
    [
      { from: "a", to: "a" },
      { from: "a", to: "gone" },
    ],
    ROOM,
  ).get("a")!;
  expect(Number.isFinite(alone.x + alone.y)).toBe(true);
  expect(layout([], [], ROOM).size).toBe(0);
});

test("only the most connected nodes are drawn", () => {
  const nodes = ["a", "b", "c", "d"].map((id) => ({ id }));
  const edges = [
    { fromId: "d", toId: "b" },
    { fromId: "d", toId: "c" },
    { fromId: "c", toId: "b" },
  ];
  const drawn = mostConnected(nodes, edges, 2);
  expect(drawn.nodes.map(({ id }) => id)).toEqual(["b", "c"]);
  expect(drawn.edges).toEqual([edges[2]]);
});
