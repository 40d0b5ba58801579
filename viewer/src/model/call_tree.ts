import type { FrameTable } from "../format/decode.ts";

/** Stacks as the page shows them. Node 0 is the root; parents have lower numbers than their children. */
export class CallTree {
  private lists: { first: Uint32Array; next: Uint32Array } | null = null;

  constructor(
    readonly frames: FrameTable,
    readonly parent: Uint32Array,
    readonly frame: Uint32Array,
    readonly line: Uint32Array,
  ) {}

  /** How many nodes there are, the root among them. */
  get size(): number {
    return this.parent.length;
  }

  /** Lists of children: the first child of each node, and the next one of the same parent; 0 ends a list. */
  get children(): { first: Uint32Array; next: Uint32Array } {
    if (!this.lists) {
      const { parent, size } = this;
      const first = new Uint32Array(size);
      const next = new Uint32Array(size);
      for (let node = size - 1; node > 0; node--) {
        next[node] = first[parent[node]];
        first[parent[node]] = node;
      }
      this.lists = { first, next };
    }
    return this.lists;
  }

  /** Each node's value with those of all its callees, in `total`. */
  totals(self: Float64Array, total: Float64Array = new Float64Array(this.size)): Float64Array {
    total.set(self);
    for (let node = this.size - 1; node > 0; node--) {
      // Filters leave most nodes without a value.
      if (total[node] !== 0) total[this.parent[node]] += total[node];
    }
    return total;
  }

  /**
   * Marks the nodes that have no caller of their own group, so that sums of totals count recursion once.
   * `group` has the group of each node.
   */
  outermost(group: Uint32Array, groups: number): Uint8Array {
    const { parent } = this;
    const { first, next } = this.children;
    const open = new Uint32Array(groups);
    const marks = new Uint8Array(this.size);
    let node = first[0];
    while (node !== 0) {
      if (open[group[node]]++ === 0) marks[node] = 1;
      if (first[node] !== 0) {
        node = first[node];
        continue;
      }
      open[group[node]]--;
      while (next[node] === 0 && parent[node] !== 0) {
        node = parent[node];
        open[group[node]]--;
      }
      node = next[node];
    }
    return marks;
  }
}

/** The tree without the frames that are marked: their callees hang on the next caller that is left. */
export function withoutFrames(tree: CallTree, hidden: Uint8Array, rowNodes: Uint32Array[]): Shape {
  const { size } = tree;
  const moved = new Uint32Array(size);
  const parent = new Uint32Array(size);
  const frame = new Uint32Array(size);
  const line = new Uint32Array(size);
  let count = 1;
  for (let node = 1; node < size; node++) {
    const above = moved[tree.parent[node]];
    if (hidden[tree.frame[node]]) {
      moved[node] = above;
      continue;
    }
    parent[count] = above;
    frame[count] = tree.frame[node];
    line[count] = tree.line[node];
    moved[node] = count++;
  }
  return {
    tree: new CallTree(tree.frames, parent.slice(0, count), frame.slice(0, count), line.slice(0, count)),
    rowNodes: rowNodes.map((nodes) => nodes.map((node) => moved[node])),
  };
}

/** A tree, and where in it the rows of each side are. */
export interface Shape {
  tree: CallTree;
  rowNodes: Uint32Array[];
}
