import type { CallTree } from "./call_tree.ts";
import type { View } from "./view.ts";

const NO_CHILDREN: number[] = [];

/** Nodes of the call tree, in groups: each box has a part of such a list. */
interface Members {
  nodes: Uint32Array;
  /** Going up, the node that each one began at: it has the values. Going down, the same as `nodes`. */
  origins: Uint32Array;
}

/**
 * The tree that a flame graph or a call tree shows, made as far as somebody looks: nodes of the same function below
 * the same box are one box. It goes down to callees or up to callers. Nothing is made before `children` is asked.
 */
export class BoxTree {
  /** For each box. Box 0 is the root, which has no frame. */
  readonly parent: number[] = [0];
  readonly frame: number[] = [-1];
  readonly depth: number[] = [0];
  readonly total: number[] = [];
  readonly self: number[] = [];
  /** The values in the base's profile; 0 without one. */
  readonly base: number[] = [];
  readonly baseSelf: number[] = [];

  private readonly kids: (number[] | null)[] = [null];
  /** The nodes of each box: from `start` to `end` in a list that it shares with its siblings. */
  private readonly members: Members[] = [];
  private readonly start: number[] = [0];
  private readonly end: number[] = [];
  private readonly slot: Int32Array;
  private readonly tree: CallTree;

  private constructor(
    readonly view: View,
    readonly up: boolean,
    members: Uint32Array,
    private readonly useTotals: boolean,
  ) {
    this.tree = view.tree;
    this.slot = new Int32Array(view.tree.frames.name.length).fill(-1);
    this.members.push({ nodes: members, origins: members });
    this.end.push(members.length);
    const sums = this.sums({ nodes: members, origins: members }, [members.length], !up);
    this.record(0, sums, 0);
  }

  /** All stacks, from their first caller on. */
  static topDown(view: View): BoxTree {
    return new BoxTree(view, false, new Uint32Array([0]), true);
  }

  /** All stacks, from their last callee on: the flame graph inverted. */
  static bottomUp(view: View): BoxTree {
    const { target, base } = view;
    const nodes: number[] = [];
    for (let node = 1; node < view.tree.size; node++) {
      if (target.self[node] !== 0 || (base && base.self[node] !== 0)) nodes.push(node);
    }
    return new BoxTree(view, true, Uint32Array.from(nodes), false);
  }

  /** What the calls of one function call: `nodes` are its outermost ones. Box 0 has one child, the function. */
  static callees(view: View, nodes: Uint32Array): BoxTree {
    return new BoxTree(view, false, nodes, true);
  }

  /** What calls one function, likewise. */
  static callers(view: View, nodes: Uint32Array): BoxTree {
    return new BoxTree(view, true, nodes, true);
  }

  /** The boxes below a box, the heaviest first. */
  children(box: number): number[] {
    let kids = this.kids[box];
    if (!kids) {
      kids = this.expand(box);
      this.kids[box] = kids;
    }
    return kids;
  }

  /** The child with this frame, if there is one. */
  child(box: number, frame: number): number | undefined {
    return this.children(box).find((kid) => this.frame[kid] === frame);
  }

  /** How heavy a box is for order and width, whichever profile it is in. */
  weight(box: number): number {
    return Math.max(this.total[box], this.base[box]);
  }

  /** The boxes from below the root to this one. */
  path(box: number): number[] {
    const path: number[] = [];
    for (let at = box; at !== 0; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  /** The lines within the box's function, with their totals, the heaviest first. */
  lines(box: number): { line: number; total: number }[] {
    const { line } = this.tree;
    const { target } = this.view;
    const values = this.useTotals ? target.total : target.self;
    const { nodes, origins } = this.members[box];
    const sums = new Map<number, number>();
    for (let i = this.start[box]; i < this.end[box]; i++) {
      sums.set(line[nodes[i]], (sums.get(line[nodes[i]]) ?? 0) + values[origins[i]]);
    }
    sums.delete(0);
    return [...sums].map(([line, total]) => ({ line, total })).sort((a, b) => b.total - a.total);
  }

  /** The nodes of the call tree that the box stands for. */
  nodes(box: number): Uint32Array {
    return this.members[box].nodes.subarray(this.start[box], this.end[box]);
  }

  /** The values of consecutive parts of a list; `ends` has the end of each. */
  private sums({ origins }: Members, ends: ArrayLike<number>, own: boolean) {
    const { target, base } = this.view;
    const add = (values: Float64Array | undefined) => {
      const sums = new Float64Array(ends.length);
      for (let part = 0, i = 0; values && part < ends.length; part++) {
        let sum = 0;
        for (; i < ends[part]; i++) sum += values[origins[i]];
        sums[part] = sum;
      }
      return sums;
    };
    return {
      total: add(this.useTotals ? target.total : target.self),
      base: add(this.useTotals ? base?.total : base?.self),
      self: add(own ? target.self : undefined),
      baseSelf: add(own ? base?.self : undefined),
    };
  }

  private record(box: number, sums: ReturnType<BoxTree["sums"]>, part: number) {
    this.total[box] = sums.total[part];
    this.base[box] = sums.base[part];
    this.self[box] = sums.self[part];
    this.baseSelf[box] = sums.baseSelf[part];
  }

  private expand(box: number): number[] {
    const found = this.up ? this.callerNodes(box) : this.calleeNodes(box);
    const count = found.nodes.length;
    if (count === 0) return NO_CHILDREN;
    const { slot } = this;
    const { frame } = this.tree;
    const frames: number[] = [];
    const at: number[] = [];
    for (let i = 0; i < count; i++) {
      const of = frame[found.nodes[i]];
      if (slot[of] < 0) {
        slot[of] = frames.length;
        frames.push(of);
        at.push(0);
      }
      at[slot[of]]++;
    }
    // From counts to where each group begins; filling the groups then moves that to their ends.
    let next = 0;
    for (let group = 0; group < at.length; group++) {
      const size = at[group];
      at[group] = next;
      next += size;
    }
    const nodes = new Uint32Array(count);
    const origins = this.up ? new Uint32Array(count) : nodes;
    for (let i = 0; i < count; i++) {
      const to = at[slot[frame[found.nodes[i]]]]++;
      nodes[to] = found.nodes[i];
      if (this.up) origins[to] = found.origins[i];
    }
    for (const of of frames) slot[of] = -1;
    return this.addGroups(box, frames, { nodes, origins }, at);
  }

  /** Makes a box for each group that has a value; the heaviest comes first. */
  private addGroups(parent: number, frames: number[], members: Members, ends: number[]): number[] {
    // Going up, all of a box's value is its own only where it begins.
    const sums = this.sums(members, ends, !this.up || parent === 0);
    const kids: number[] = [];
    const weights: number[] = [];
    const first = this.parent.length;
    for (let group = 0; group < frames.length; group++) {
      if (sums.total[group] === 0 && sums.base[group] === 0) continue;
      const box = this.parent.length;
      this.parent.push(parent);
      this.frame.push(frames[group]);
      this.depth.push(this.depth[parent] + 1);
      this.kids.push(null);
      this.members.push(members);
      this.start.push(group === 0 ? 0 : ends[group - 1]);
      this.end.push(ends[group]);
      this.record(box, sums, group);
      kids.push(box);
      weights.push(this.weight(box));
    }
    return kids.sort((a, b) => weights[b - first] - weights[a - first] || a - b);
  }

  private calleeNodes(box: number): { nodes: ArrayLike<number>; origins: ArrayLike<number> } {
    const members = this.members[box].nodes;
    // Below the root of a function's callees is the function itself.
    if (box === 0 && !(members.length === 1 && members[0] === 0)) return { nodes: members, origins: members };
    const { first, next } = this.tree.children;
    const { target, base } = this.view;
    const nodes: number[] = [];
    for (let i = this.start[box]; i < this.end[box]; i++) {
      for (let node = first[members[i]]; node !== 0; node = next[node]) {
        if (target.total[node] !== 0 || (base && base.total[node] !== 0)) nodes.push(node);
      }
    }
    return { nodes, origins: nodes };
  }

  private callerNodes(box: number): { nodes: ArrayLike<number>; origins: ArrayLike<number> } {
    const members = this.members[box];
    if (box === 0) return members;
    const { parent } = this.tree;
    const nodes = new Uint32Array(this.end[box] - this.start[box]);
    const origins = new Uint32Array(nodes.length);
    let count = 0;
    for (let i = this.start[box]; i < this.end[box]; i++) {
      const node = parent[members.nodes[i]];
      if (node === 0) continue;
      nodes[count] = node;
      origins[count++] = members.origins[i];
    }
    return { nodes: nodes.subarray(0, count), origins };
  }
}

/** The nodes of a function that are not below another of its own. */
export function outermostNodes(tree: CallTree, frame: number): Uint32Array {
  const inside = new Uint8Array(tree.size);
  const nodes: number[] = [];
  for (let node = 1; node < tree.size; node++) {
    const above = inside[tree.parent[node]];
    const match = tree.frame[node] === frame ? 1 : 0;
    inside[node] = above | match;
    if (match && !above) nodes.push(node);
  }
  return Uint32Array.from(nodes);
}
