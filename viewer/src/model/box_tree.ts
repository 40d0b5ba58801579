import type { CallTree } from "./call_tree.ts";
import type { View } from "./view.ts";

const NO_CHILDREN: number[] = [];

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
  private readonly members: Uint32Array[] = [];
  /** Going up, the node that each member began at: it has the values. */
  private readonly origins: Uint32Array[] = [];
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
    this.members.push(members);
    this.origins.push(members);
    this.measure(0);
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

  /** What the calls of one function call; box 0 has one child, the function. */
  static callees(view: View, frame: number): BoxTree {
    return new BoxTree(view, false, outermostNodes(view.tree, frame), true);
  }

  /** What calls one function; box 0 has one child, the function. */
  static callers(view: View, frame: number): BoxTree {
    return new BoxTree(view, true, outermostNodes(view.tree, frame), true);
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
    const { total } = this.view.target;
    const values = this.up ? (this.useTotals ? total : this.view.target.self) : total;
    const sums = new Map<number, number>();
    this.members[box].forEach((node, i) => {
      const value = values[this.up ? this.origins[box][i] : node];
      sums.set(line[node], (sums.get(line[node]) ?? 0) + value);
    });
    sums.delete(0);
    return [...sums].map(([line, total]) => ({ line, total })).sort((a, b) => b.total - a.total);
  }

  /** The nodes of the call tree that the box stands for. */
  nodes(box: number): Uint32Array {
    return this.members[box];
  }

  private measure(box: number) {
    const { target, base } = this.view;
    const members = this.up ? this.origins[box] : this.members[box];
    const sum = (values: Float64Array) => {
      let sum = 0;
      for (let i = 0; i < members.length; i++) sum += values[members[i]];
      return sum;
    };
    this.total[box] = sum(this.useTotals ? target.total : target.self);
    this.base[box] = base ? sum(this.useTotals ? base.total : base.self) : 0;
    // Going up, all of a box's value is its own only where it begins.
    const own = !this.up || this.depth[box] === 1;
    this.self[box] = own ? sum(target.self) : 0;
    this.baseSelf[box] = own && base ? sum(base.self) : 0;
  }

  private expand(box: number): number[] {
    const found = this.up ? this.callerNodes(box) : this.calleeNodes(box);
    const { nodes, origins } = found;
    if (nodes.length === 0) return NO_CHILDREN;
    const { slot } = this;
    const { frame } = this.tree;
    const frames: number[] = [];
    const counts: number[] = [];
    for (let i = 0; i < nodes.length; i++) {
      const of = frame[nodes[i]];
      if (slot[of] < 0) {
        slot[of] = frames.length;
        frames.push(of);
        counts.push(0);
      }
      counts[slot[of]]++;
    }
    const members = counts.map((count) => new Uint32Array(count));
    const starts = this.up ? counts.map((count) => new Uint32Array(count)) : members;
    const filled = counts.map(() => 0);
    for (let i = 0; i < nodes.length; i++) {
      const group = slot[frame[nodes[i]]];
      const at = filled[group]++;
      members[group][at] = nodes[i];
      if (this.up) starts[group][at] = origins[i];
    }
    for (const of of frames) slot[of] = -1;
    const kids = frames.map((of, group) => this.add(box, of, members[group], starts[group]));
    const shown = kids.filter((kid) => this.total[kid] !== 0 || this.base[kid] !== 0);
    return shown.sort((a, b) => this.weight(b) - this.weight(a) || this.frame[a] - this.frame[b]);
  }

  private add(parent: number, frame: number, members: Uint32Array, origins: Uint32Array): number {
    const box = this.parent.length;
    this.parent.push(parent);
    this.frame.push(frame);
    this.depth.push(this.depth[parent] + 1);
    this.kids.push(null);
    this.members.push(members);
    this.origins.push(origins);
    this.measure(box);
    return box;
  }

  private calleeNodes(box: number): { nodes: number[] | Uint32Array; origins: number[] | Uint32Array } {
    const members = this.members[box];
    // Below the root of a function's callees is the function itself.
    if (box === 0 && !(members.length === 1 && members[0] === 0)) return { nodes: members, origins: members };
    const { first, next } = this.tree.children;
    const { target, base } = this.view;
    const nodes: number[] = [];
    for (let i = 0; i < members.length; i++) {
      for (let node = first[members[i]]; node !== 0; node = next[node]) {
        if (target.total[node] !== 0 || (base && base.total[node] !== 0)) nodes.push(node);
      }
    }
    return { nodes, origins: nodes };
  }

  private callerNodes(box: number): { nodes: number[] | Uint32Array; origins: number[] | Uint32Array } {
    const members = this.members[box];
    if (box === 0) return { nodes: members, origins: members };
    const { parent } = this.tree;
    const starts = this.origins[box];
    const nodes: number[] = [];
    const origins: number[] = [];
    for (let i = 0; i < members.length; i++) {
      const node = parent[members[i]];
      if (node === 0) continue;
      nodes.push(node);
      origins.push(starts[i]);
    }
    return { nodes, origins };
  }
}

/** The nodes of a function that are not below another of its own. */
function outermostNodes(tree: CallTree, frame: number): Uint32Array {
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
