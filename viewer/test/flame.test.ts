import assert from "node:assert/strict";
import { test } from "node:test";
import { categoryColour, changeColour, contrast, cpuColour, TEXT, TINTS, tintOf } from "../src/flame/colours.ts";
import { hit, layout } from "../src/flame/layout.ts";
import { rowAt, rowTop } from "../src/flame/painter.ts";
import { decode } from "../src/format/decode.ts";
import { BoxTree } from "../src/model/box_tree.ts";
import { Views } from "../src/model/view.ts";
import { encode } from "./support/encode.ts";
import { CATEGORIES, generateTree } from "./support/generate.ts";

const WIDTH = 1600;

function generated(nodes: number) {
  const view = new Views(decode(encode(generateTree({ nodes })))).view({
    target: 0,
    base: null,
    baseScale: 1,
    type: 1,
    filters: [],
    idle: false,
  });
  return { view, tree: BoxTree.topDown(view) };
}

test("children lie within their parents, side by side, the heaviest first", () => {
  const { tree } = generated(5000);
  const place = new Map<number, [number, number]>([[0, [0, WIDTH]]]);
  for (const row of layout(tree, 0, WIDTH, (box) => tree.total[box])) {
    let end = 0;
    row.box.forEach((box, i) => {
      assert.ok(row.x[i] >= end - 1e-6);
      end = row.x[i] + row.width[i];
      if (box < 0) return;
      const [left, right] = place.get(tree.parent[box]) as [number, number];
      assert.ok(row.x[i] >= left - 1e-6 && end <= right + 1e-6);
      const [, whole] = [left, right - left];
      assert.ok(Math.abs(row.width[i] - (whole * tree.total[box]) / tree.total[tree.parent[box]]) < 1e-6);
      place.set(box, [row.x[i], end]);
    });
  }
  assert.ok(place.size > 100);
});

test("only what can be seen is made, however large the tree", () => {
  const { tree, view } = generated(100_000);
  const rows = layout(tree, 0, WIDTH, (box) => tree.total[box]);
  const boxes = rows.reduce((sum, row) => sum + row.box.length, 0);
  assert.ok(boxes < 2 * WIDTH * rows.length);
  assert.ok(tree.parent.length < view.tree.size, `${tree.parent.length} of ${view.tree.size} boxes were made`);
});

test("zooming gives a box the whole width, with its callers above it", () => {
  const { tree } = generated(2000);
  const kid = tree.children(0)[0];
  const grandchild = tree.children(kid)[0];
  const rows = layout(tree, grandchild, WIDTH, (box) => tree.total[box]);
  assert.deepEqual([rows[0].box, rows[1].box], [[kid], [grandchild]]);
  assert.deepEqual([rows[0].width, rows[1].width], [[WIDTH], [WIDTH]]);
});

test("a point finds its box", () => {
  const row = { x: [0, 10, 30], width: [10, 15, 5], box: [1, 2, 3] };
  const cases: [number, number][] = [
    [0, 0],
    [9.9, 0],
    [10, 1],
    [24.9, 1],
    [26, -1],
    [30, 2],
    [35, -1],
    [-1, -1],
  ];
  for (const [x, at] of cases) assert.equal(hit(row, x), at);
  for (const flipped of [false, true]) {
    for (const height of [40, 400]) {
      for (let depth = 0; depth < 7; depth++)
        assert.equal(rowAt(rowTop(depth, 7, height, flipped) + 5, 7, height, flipped), depth);
    }
  }
  assert.equal(rowAt(5, 3, 400, true), -1);
});

test("text on every colour has a contrast of 4.5 at least, in both themes", () => {
  const steps = Array.from({ length: 41 }, (_, i) => i / 20 - 1);
  for (const dark of [false, true]) {
    const text = TEXT[dark ? "dark" : "light"];
    const colours = [
      ...[...CATEGORIES, "native", "label"].flatMap((category) =>
        Array.from({ length: TINTS }, (_, tint) => categoryColour(category, tint, dark)),
      ),
      ...steps.map((step) => changeColour(step, dark)),
      ...steps.map((step) => cpuColour(step, dark)),
    ];
    for (const colour of colours)
      assert.ok(contrast(text, colour) >= 4.5, `${colour} ${dark ? "dark" : "light"}: ${contrast(text, colour)}`);
  }
});

test("methods of one class have one tint", () => {
  assert.equal(tintOf("A::B#x"), tintOf("A::B#y"));
  assert.equal(tintOf("A::B.x"), tintOf("A::B#y"));
  assert.ok(new Set(["A#x", "B#x", "C#x", "D#x", "E#x"].map(tintOf)).size > 1);
});
