/** A box to place, by its size. */
export interface Size {
  width: number;
  height: number;
}

/** An arrow between two boxes, by their numbers; the heavier, the straighter. */
export interface Arrow {
  from: number;
  to: number;
  weight: number;
}

export interface Layout {
  width: number;
  height: number;
  sizes: Size[];
  /** The middle of each box. */
  x: number[];
  y: number[];
  /** The row of each box, and the boxes of each row from left to right. */
  row: number[];
  rows: number[][];
  /** The points of each arrow, from its beginning to its head: two for each space between rows. None for a loop. */
  points: [x: number, y: number][][];
}

const GAP = 26;
const ROW_GAP = 56;
/** Room for an arrow that passes between boxes. */
const LANE = 10;
const SWEEPS = 16;
/** Sweeps in which boxes are moved to where callers and callees pull them. */
const MOVES = 80;

/** A box, or a place in a row where an arrow passes. */
interface Spot {
  row: number;
  width: number;
  x: number;
  /** Spots above and below, with the weights of the arrows there. */
  up: [Spot, number][];
  down: [Spot, number][];
}

/**
 * Boxes in rows, callers above what they call, as far as recursion allows: the method of Sugiyama. Arrows that go up
 * are turned for the time being, those over several rows get a spot in each; rows are sorted so that few arrows cross,
 * and then each spot is moved to where its arrows pull it.
 */
export function layout(sizes: Size[], arrows: Arrow[]): Layout {
  const turned = upward(sizes.length, arrows);
  const row = rowsOf(sizes.length, arrows, turned);
  const boxes = sizes.map(({ width }, i): Spot => ({ row: row[i], width, x: 0, up: [], down: [] }));
  const rows: Spot[][] = Array.from({ length: Math.max(0, ...row) + 1 }, () => []);
  for (const box of boxes) rows[box.row].push(box);
  const ways = arrows.map(({ from, to, weight }, i) => {
    if (from === to) return [];
    const [above, below] = turned.has(i) ? [to, from] : [from, to];
    const way = [boxes[above]];
    for (let at = row[above] + 1; at < row[below]; at++) {
      const spot: Spot = { row: at, width: LANE, x: 0, up: [], down: [] };
      rows[at].push(spot);
      way.push(spot);
    }
    way.push(boxes[below]);
    for (let i = 1; i < way.length; i++) {
      // Bends catch the eye more than a long way does.
      const pull = weight * (1 + (way[i - 1].width === LANE ? 2 : 0) + (way[i].width === LANE ? 2 : 0));
      way[i - 1].down.push([way[i], pull]);
      way[i].up.push([way[i - 1], pull]);
    }
    return turned.has(i) ? way.reverse() : way;
  });
  const sorted = fewCrossings(rows);
  place(sorted);
  return drawn(sizes, boxes, sorted, ways, row);
}

/** The arrows that lead back to where they came from: without them there is no circle. */
function upward(count: number, arrows: Arrow[]): Set<number> {
  const out: number[][] = Array.from({ length: count }, () => []);
  const called = new Set<number>();
  arrows.forEach(({ from, to }, i) => {
    if (from === to) return;
    out[from].push(i);
    called.add(to);
  });
  const turned = new Set<number>();
  const state = new Uint8Array(count);
  const visit = (first: number) => {
    const path: [node: number, next: number][] = [[first, 0]];
    state[first] = 1;
    for (let top = path[0]; top; top = path[path.length - 1]) {
      const arrow = out[top[0]][top[1]++];
      if (arrow === undefined) {
        state[top[0]] = 2;
        path.pop();
      } else if (state[arrows[arrow].to] === 1) turned.add(arrow);
      else if (state[arrows[arrow].to] === 0) {
        state[arrows[arrow].to] = 1;
        path.push([arrows[arrow].to, 0]);
      }
    }
  };
  // What nothing calls comes first.
  for (let node = 0; node < count; node++) if (!called.has(node)) visit(node);
  for (let node = 0; node < count; node++) if (state[node] === 0) visit(node);
  return turned;
}

/** The row of each box: below all that call it. */
function rowsOf(count: number, arrows: Arrow[], turned: Set<number>): number[] {
  const row = new Array<number>(count).fill(0);
  // As many rounds as there are rows, at most.
  for (let moved = true; moved; ) {
    moved = false;
    arrows.forEach(({ from, to }, i) => {
      const [above, below] = turned.has(i) ? [to, from] : [from, to];
      if (from === to || row[below] > row[above]) return;
      row[below] = row[above] + 1;
      moved = true;
    });
  }
  return row;
}

/** The rows, sorted so that few arrows cross: the best of some sweeps down and up. */
function fewCrossings(rows: Spot[][]): Spot[][] {
  let best = rows.map((row) => [...row]);
  let fewest = Number.POSITIVE_INFINITY;
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      row.forEach((spot, i) => {
        spot.x = i;
      });
      const wanted = new Map(row.map((spot) => [spot, pulledTo(down ? spot.up : spot.down, spot.x)]));
      row.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
      row.forEach((spot, i) => {
        // Rows of different lengths compare by their middles.
        spot.x = i - row.length / 2;
      });
    }
    const crossings = rows.reduce((sum, row) => sum + crossingsBelow(row), 0);
    if (crossings < fewest) {
      fewest = crossings;
      best = rows.map((row) => [...row]);
    }
  }
  return best;
}

function pulledTo(others: [Spot, number][], otherwise: number): number {
  const sum = others.reduce((sum, [, weight]) => sum + weight, 0);
  return sum === 0 ? otherwise : others.reduce((at, [{ x }, weight]) => at + (x * weight) / sum, 0);
}

function crossingsBelow(row: Spot[]): number {
  const ends = row.map(({ down }) => down.map(([spot, weight]): [number, number] => [spot.x, weight]));
  let crossings = 0;
  for (let i = 0; i < ends.length; i++)
    for (let j = i + 1; j < ends.length; j++)
      for (const [a, weight] of ends[i])
        for (const [b, other] of ends[j]) if (a > b) crossings += Math.min(weight, other);
  return crossings;
}

/** Moves all spots to where their arrows pull them, as far as they have room. */
function place(rows: Spot[][]) {
  for (const row of rows) {
    let x = 0;
    for (const spot of row) {
      spot.x = x + spot.width / 2;
      x += spot.width + GAP;
    }
    for (const spot of row) spot.x -= x / 2;
  }
  for (let sweep = 0; sweep < SWEEPS + MOVES; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      const both = sweep >= SWEEPS;
      const pulls = row.map(({ up, down: below }) => (both ? [...up, ...below] : down ? up : below));
      settle(
        row,
        row.map((spot, i) => pulledTo(pulls[i], spot.x)),
        pulls.map((pull) => pull.reduce((sum, [, weight]) => sum + weight, 0.01)),
      );
    }
  }
}

/** Places a row as near to `wanted` as its order and gaps allow, by least squares: what collides moves together. */
function settle(row: Spot[], wanted: number[], weights: number[]) {
  const blocks: { at: number; weight: number; first: number }[] = [];
  const offsets: number[] = [];
  row.forEach((spot, i) => {
    const before = row[i - 1];
    offsets[i] = before ? offsets[i - 1] + (before.width + spot.width) / 2 + GAP : 0;
    let block = { at: wanted[i] - offsets[i], weight: weights[i], first: i };
    for (let last = blocks.at(-1); last && last.at > block.at; last = blocks.at(-1)) {
      const weight = last.weight + block.weight;
      block = { at: (last.at * last.weight + block.at * block.weight) / weight, weight, first: last.first };
      blocks.pop();
    }
    blocks.push(block);
  });
  let block = -1;
  row.forEach((spot, i) => {
    if (blocks[block + 1]?.first === i) block++;
    spot.x = blocks[block].at + offsets[i];
  });
}

function drawn(sizes: Size[], boxes: Spot[], sorted: Spot[][], ways: Spot[][], row: number[]): Layout {
  const heights = sorted.map(() => 0);
  sizes.forEach(({ height }, i) => {
    heights[row[i]] = Math.max(heights[row[i]], height);
  });
  const middles: number[] = [];
  let height = GAP;
  heights.forEach((tallest, i) => {
    middles[i] = height + tallest / 2;
    height += tallest + ROW_GAP;
  });
  const spots = sorted.flat();
  const left = spots.reduce((left, { x, width }) => Math.min(left, x - width / 2), spots[0]?.x ?? 0) - GAP;
  // With room for loops, which are on this side.
  const right = spots.reduce((right, { x, width }) => Math.max(right, x + width / 2), left) + 2 * GAP;
  const numbers = new Map(boxes.map((box, i) => [box, i]));
  const half = (spot: Spot) => (sizes[numbers.get(spot) ?? -1]?.height ?? 0) / 2;
  const points = ways.map((way) => {
    const ends = way.length - 1;
    const sign = way.length > 0 && way[0].row < way[ends].row ? 1 : -1;
    return way.flatMap((spot, i): [number, number][] => {
      const at = (offset: number): [number, number] => [spot.x - left, middles[spot.row] + sign * offset];
      if (i === 0) return [at(half(spot))];
      // Through a row it goes straight, so that it stays clear of the boxes.
      return i === ends ? [at(-half(spot))] : [at(-heights[spot.row] / 2), at(heights[spot.row] / 2)];
    });
  });
  return {
    width: right - left,
    height: Math.max(0, height - ROW_GAP) + GAP,
    sizes,
    x: boxes.map(({ x }) => x - left),
    y: boxes.map((box) => middles[box.row]),
    row,
    rows: sorted.map((spots) => spots.flatMap((spot) => numbers.get(spot) ?? [])),
    points,
  };
}
