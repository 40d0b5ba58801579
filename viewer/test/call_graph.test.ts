import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, heatColour, TEXT } from "../src/flame/colours.ts";
import { type CallGraph, callGraph } from "../src/model/call_graph.ts";
import { layout } from "../src/model/graph_layout.ts";
import { type View, Views } from "../src/model/view.ts";
import { random } from "./support/generate.ts";
import { each, query } from "./support/small.ts";

const ALL = 1000;

/** The frames of a node's stack, the root's first. */
function stack({ tree }: View, node: number): number[] {
  const frames = [];
  for (let at = node; at !== 0; at = tree.parent[at]) frames.unshift(tree.frame[at]);
  return frames;
}

/** The edges as they are defined, stack by stack, as `caller callee residual`, with their values. */
function edgesByDefinition(view: View, kept: Set<number>): Map<string, number> {
  const values = new Map<string, { value: number; residual: boolean }>();
  for (let node = 1; node < view.tree.size; node++) {
    const value = view.target.self[node];
    if (value === 0) continue;
    const frames = stack(view, node);
    const places = frames.map((_, i) => i).filter((i) => kept.has(frames[i]));
    const seen = new Set<string>();
    for (let i = 1; i < places.length; i++) {
      const key = `${frames[places[i - 1]]} ${frames[places[i]]}`;
      const edge = values.get(key) ?? { value: 0, residual: true };
      edge.residual &&= places[i] > places[i - 1] + 1;
      if (!seen.has(key)) edge.value += value;
      seen.add(key);
      values.set(key, edge);
    }
  }
  return new Map([...values].map(([key, { value, residual }]) => [`${key} ${residual}`, value]));
}

function edgesOf({ nodes, edges }: CallGraph): Map<string, number> {
  return new Map(
    edges.map(({ caller, callee, value, residual }) => [
      `${nodes[caller].frame} ${nodes[callee].frame} ${residual}`,
      value,
    ]),
  );
}

test("a call graph has the sums of the stacks, and connects what is left", () => {
  each((file) => {
    const view = new Views(file).view(query());
    const graph = callGraph(view, "method", ALL);
    for (const { frame, self, total } of graph.nodes) {
      let [own, all] = [0, 0];
      for (let node = 1; node < view.tree.size; node++) {
        if (view.tree.frame[node] === frame) own += view.target.self[node];
        if (stack(view, node).includes(frame)) all += view.target.self[node];
      }
      assert.deepEqual([self, total], [own, all]);
    }
    const few = callGraph(view, "method", 3);
    assert.equal(few.nodes.length + few.cut.further + few.cut.small, graph.nodes.length + graph.cut.small);
    for (const some of [graph, few]) {
      const expected = edgesByDefinition(view, new Set(some.nodes.map(({ frame }) => frame)));
      const edges = edgesOf(some);
      for (const [key, value] of edges) assert.equal(value, expected.get(key), key);
      for (const key of expected.keys()) {
        if (edges.has(key)) continue;
        // A residual one that is left out leads where others lead.
        const [caller, callee, residual] = key.split(" ");
        const reached = new Set([caller]);
        for (const at of reached)
          for (const other of edges.keys()) if (other.startsWith(`${at} `)) reached.add(other.split(" ")[1]);
        assert.ok((residual === "true" && reached.has(callee)) || some.cut.edges > 0, key);
      }
    }
  });
});

test("boxes don't overlap, and callers are above what they call", () => {
  const next = random(7);
  for (let round = 0; round < 40; round++) {
    const count = 1 + Math.floor(next() * 30);
    const sizes = Array.from({ length: count }, () => ({ width: 20 + 100 * next(), height: 20 + 40 * next() }));
    const pick = () => Math.floor(next() * count);
    // Without circles in every other round.
    const arrows = Array.from({ length: Math.floor(next() * 60) }, () => {
      const [a, b] = [pick(), pick()];
      return { from: round % 2 ? a : Math.min(a, b), to: round % 2 ? b : Math.max(a, b), weight: next() };
    });
    const { x, y, row, rows, points, width, height } = layout(sizes, arrows);
    assert.deepEqual(
      rows.flat().sort((a, b) => a - b),
      sizes.map((_, i) => i),
    );
    for (const boxes of rows)
      for (let i = 1; i < boxes.length; i++) {
        const [a, b] = [boxes[i - 1], boxes[i]];
        assert.ok(x[b] - x[a] >= (sizes[a].width + sizes[b].width) / 2);
      }
    sizes.forEach((size, i) => {
      assert.ok(x[i] - size.width / 2 >= 0 && x[i] + size.width / 2 <= width);
      assert.ok(y[i] - size.height / 2 >= 0 && y[i] + size.height / 2 <= height);
    });
    arrows.forEach(({ from, to }, i) => {
      if (from === to) {
        assert.deepEqual(points[i], []);
        return;
      }
      if (round % 2 === 0) assert.ok(row[from] < row[to]);
      assert.notEqual(row[from], row[to]);
      assert.equal(points[i].length, 2 * Math.abs(row[from] - row[to]));
      const [first, last] = [points[i][0], points[i][points[i].length - 1]];
      assert.deepEqual([first[0], last[0]], [x[from], x[to]]);
      const sign = row[from] < row[to] ? 1 : -1;
      assert.ok(Math.abs(first[1] - (y[from] + (sign * sizes[from].height) / 2)) < 1e-6);
      assert.ok(Math.abs(last[1] - (y[to] - (sign * sizes[to].height) / 2)) < 1e-6);
    });
    assert.deepEqual(layout(sizes, arrows), layout(sizes, arrows));
  }
  assert.deepEqual(layout([], []).points, []);
});

test("text on every heat can be read", () => {
  for (const dark of [false, true])
    for (let step = 0; step <= 20; step++)
      assert.ok(contrast(heatColour(step / 20, dark), TEXT[dark ? "dark" : "light"]) >= 4.5, `${step} ${dark}`);
});
