/** A rectangle, in pixels. */
export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A tree whose rows have sizes. */
export interface Sized {
  children(row: number): number[];
  weight(row: number): number;
}

/** A row's box. Boxes of what is below it are inside of it. */
export interface Box extends Rect {
  row: number;
  /** How much of its upper edge its own words have; 0 where boxes take all of it, or there are none inside. */
  head: number;
  hasBoxes: boolean;
}

/** The height of a line of words in a box. */
export const LINE = 17;
/** What a box has to be so that its words have a line above the boxes in it. */
const LEAST_FOR_HEAD = { width: 56, height: 44 };
/** Boxes aren't divided below this, and narrower ones aren't shown. */
const LEAST_TO_DIVIDE = 12;
const LEAST_SIDE = 3;
const EDGE = 2;
/** More boxes than anybody sees. */
const MAX_BOXES = 6000;

/**
 * Divides a rectangle into parts with areas in proportion to the weights, with sides of similar length: the algorithm
 * of Bruls, Huizing and van Wijk ("Squarified Treemaps", 2000). Weights must not increase.
 */
export function squarify(weights: number[], { x, y, width, height }: Rect): Rect[] {
  const rects: Rect[] = [];
  let left = weights.reduce((sum, weight) => sum + weight, 0);
  const [right, bottom] = [x + width, y + height];
  let [atX, atY] = [x, y];
  for (let from = 0; from < weights.length; ) {
    const [freeWidth, freeHeight] = [right - atX, bottom - atY];
    const isColumn = freeWidth >= freeHeight;
    const side = isColumn ? freeHeight : freeWidth;
    const scale = left > 0 ? (freeWidth * freeHeight) / left : 0;
    let sum = weights[from];
    let to = from + 1;
    let best = worst(sum * scale, weights[from] * scale, weights[from] * scale, side);
    for (; to < weights.length; to++) {
      const next = worst((sum + weights[to]) * scale, weights[from] * scale, weights[to] * scale, side);
      if (next > best) break;
      best = next;
      sum += weights[to];
    }
    const isLast = to === weights.length;
    const thickness = isLast ? (isColumn ? freeWidth : freeHeight) : side > 0 ? (sum * scale) / side : 0;
    let at = isColumn ? atY : atX;
    for (let i = from; i < to; i++) {
      const length = sum > 0 ? (side * weights[i]) / sum : 0;
      rects.push(
        isColumn
          ? { x: atX, y: at, width: thickness, height: length }
          : { x: at, y: atY, width: length, height: thickness },
      );
      at += length;
    }
    if (isColumn) atX = Math.min(right, atX + thickness);
    else atY = Math.min(bottom, atY + thickness);
    left -= sum;
    from = to;
  }
  return rects;
}

/** The worst ratio of the sides of a row's parts, of which these are the sum, the largest and the smallest area. */
function worst(sum: number, largest: number, smallest: number, side: number): number {
  if (!(smallest > 0) || side === 0) return Number.POSITIVE_INFINITY;
  const ratio = (side / sum) ** 2;
  return Math.max(ratio * largest, 1 / (ratio * smallest));
}

/** Boxes of what is in a row, and in that, down to those too small to see; each after the one that it is in. */
export function treemap(tree: Sized, zoom: number, room: Rect): Box[] {
  const boxes: Box[] = [];
  // The zoomed row is the whole map, without a box of its own, if there is something in it.
  const areas: { row: number; rect: Rect }[] = [{ row: zoom, rect: room }];
  for (let i = 0; i < areas.length; i++) {
    for (const part of parts(tree, areas[i].row, areas[i].rect)) {
      const { row, rect } = part;
      if (rect.width < LEAST_SIDE || rect.height < LEAST_SIDE) continue;
      const inside = tree.children(row).length > 0 ? insideOf(rect) : null;
      if (boxes.length >= MAX_BOXES) break;
      boxes.push({ ...rect, row, head: inside?.head ?? 0, hasBoxes: inside !== null });
      if (inside) areas.push({ row, rect: inside.rect });
    }
  }
  return boxes;
}

/** How a row's room is divided. What it has itself stays free. */
function parts(tree: Sized, row: number, rect: Rect): { row: number; rect: Rect }[] {
  const kids = tree.children(row).map((kid) => ({ row: kid, weight: tree.weight(kid) }));
  const sum = kids.reduce((sum, { weight }) => sum + weight, 0);
  const own = tree.weight(row) - sum;
  const all = [...kids, ...(own > 0 ? [{ row: -1, weight: own }] : [])].filter(({ weight }) => weight > 0);
  all.sort((a, b) => b.weight - a.weight);
  const rects = squarify(
    all.map(({ weight }) => weight),
    rect,
  );
  return all.map(({ row }, i) => ({ row, rect: rects[i] })).filter(({ row }) => row >= 0);
}

function insideOf({ x, y, width, height }: Rect): { rect: Rect; head: number } | null {
  if (Math.min(width, height) < LEAST_TO_DIVIDE) return null;
  const head = width >= LEAST_FOR_HEAD.width && height >= LEAST_FOR_HEAD.height ? LINE : 0;
  const edge = Math.max(EDGE, head);
  return { rect: { x: x + EDGE, y: y + edge, width: width - 2 * EDGE, height: height - edge - EDGE }, head };
}

/** The innermost box at a point, or null. */
export function boxAt(boxes: Box[], x: number, y: number): Box | null {
  for (let i = boxes.length - 1; i >= 0; i--) {
    const box = boxes[i];
    if (x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height) return box;
  }
  return null;
}
