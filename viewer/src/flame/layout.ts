import type { BoxTree } from "../model/box_tree.ts";

/** One row of a flame graph: boxes from left to right, in pixels. Box -1 stands for several too narrow to show. */
export interface Row {
  x: number[];
  width: number[];
  box: number[];
}

/** Narrower boxes are not laid out one by one; nor is what is below them. */
const MIN_WIDTH = 1;

/**
 * Lays out what is below `zoom`, which has the whole width; its callers are above it, one in each row. Only boxes
 * that are seen are made, however large the tree is.
 */
export function layout(tree: BoxTree, zoom: number, width: number, weight: (box: number) => number): Row[] {
  const rows: Row[] = tree.path(zoom).map((box) => ({ x: [0], width: [width], box: [box] }));
  let above: Row = { x: [0], width: [width], box: [zoom] };
  for (;;) {
    const row = childRow(tree, above, weight);
    if (row.box.length === 0) return rows;
    rows.push(row);
    above = row;
  }
}

function childRow(tree: BoxTree, above: Row, weight: (box: number) => number): Row {
  const row: Row = { x: [], width: [], box: [] };
  for (let i = 0; i < above.box.length; i++) {
    const parent = above.box[i];
    if (parent < 0) continue;
    const whole = weight(parent);
    if (!(whole > 0)) continue;
    const scale = above.width[i] / Math.max(whole, childSum(tree, parent, weight));
    let x = above.x[i];
    let narrow = 0;
    for (const kid of tree.children(parent)) {
      const width = weight(kid) * scale;
      if (!(width > 0)) continue;
      if (width < MIN_WIDTH) {
        narrow += width;
        continue;
      }
      add(row, x, width, kid);
      x += width;
    }
    if (narrow >= MIN_WIDTH) add(row, x, narrow, -1);
  }
  return row;
}

/** More than the parent's own where some values are negative. */
function childSum(tree: BoxTree, parent: number, weight: (box: number) => number): number {
  let sum = 0;
  for (const kid of tree.children(parent)) sum += Math.max(0, weight(kid));
  return sum;
}

function add(row: Row, x: number, width: number, box: number) {
  row.x.push(x);
  row.width.push(width);
  row.box.push(box);
}

/** The position in the row of what is at `x`, or -1. */
export function hit(row: Row, x: number): number {
  let low = 0;
  let high = row.x.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (x < row.x[middle]) high = middle - 1;
    else if (x >= row.x[middle] + row.width[middle]) low = middle + 1;
    else return middle;
  }
  return -1;
}
