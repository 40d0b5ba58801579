import type { ProfileFile, ProfileRows } from "../format/decode.ts";
import { Boot } from "./boot.ts";
import { CallTree, type Shape, withoutFrames } from "./call_tree.ts";
import { type Filter, hiddenFrames, labelKeys, matchFrames, rowFilter, tagText } from "./filters.ts";
import { withLabelFrames } from "./label_frames.ts";

/** What to look at. */
export interface Query {
  target: number;
  /** The profile to compare with, or null. */
  base: number | null;
  /** The factor for the base's values. */
  baseScale: number;
  type: number;
  filters: Filter[];
  /** Whether the time of idle threads counts. */
  idle: boolean;
}

/** One profile's values over the tree. */
export interface Side {
  rows: ProfileRows;
  /** The node of each row in the tree as shown. */
  node: Uint32Array;
  /** Whether each row passes the filters. */
  kept: Uint8Array;
  /** The same but for filters of the kind "boot". */
  keptForBoot: Uint8Array;
  scale: number;
  self: Float64Array;
  total: Float64Array;
  /** The sum of the rows that pass, and of all rows that count. */
  sum: number;
  all: number;
  /** The sum of the rows of idle threads, whether they count or not. */
  idle: number;
}

/** Which rows pass the filters. */
type Kept = Pick<Side, "kept" | "keptForBoot">;

/** What all parts of the page show: a tree with the values of one or two profiles. */
export interface View {
  file: ProfileFile;
  query: Query;
  tree: CallTree;
  target: Side;
  base: Side | null;
}

/** Values of each node, and of all kept rows, all rows that count, and those of idle threads. */
export interface Sums {
  self: Float64Array;
  total: Float64Array;
  sum: number;
  all: number;
  idle: number;
}

/** Makes views, and keeps the parts of the last one that the next one shares. A view is good until the next is made. */
export class Views {
  private readonly plain: CallTree;
  private shape: { key: string; value: Shape } | null = null;
  private kept: { key: string; value: Kept[] } | null = null;
  private readonly sums = new Map<string, Sums>();
  /** Columns of earlier views: to clear them is much quicker than to get new memory for each filter. */
  private spare: Sums[] = [];

  constructor(readonly file: ProfileFile) {
    const { parent, frame, line } = file.nodes;
    this.plain = new CallTree(file.frames, parent, frame, line);
  }

  view(query: Query): View {
    const sides = query.base === null ? [query.target] : [query.target, query.base];
    const rows = sides.map((profile) => this.file.profiles[profile]);
    const shape = this.shaped(query, rows);
    const kept = this.keptRows(query, rows);
    const side = (index: number, scale: number): Side => ({
      rows: rows[index],
      node: shape.rowNodes[index],
      ...kept[index],
      scale,
      ...this.summed(query, shape, rows[index], index, kept[index].kept, scale),
    });
    return {
      file: this.file,
      query,
      tree: shape.tree,
      target: side(0, 1),
      base: query.base === null ? null : side(1, query.baseScale),
    };
  }

  /** Stacks after tagroot, tagleaf, hide and show. */
  private shaped(query: Query, rows: ProfileRows[]): Shape {
    const structural = query.filters.filter(({ kind }) => ["tagroot", "tagleaf", "hide", "show"].includes(kind));
    const key = JSON.stringify([query.target, query.base, structural]);
    if (this.shape?.key !== key) {
      const labelled = this.labelled(query, rows);
      const hidden = hiddenFrames(labelled.tree.frames, query.filters);
      this.shape = { key, value: hidden ? withoutFrames(labelled.tree, hidden, labelled.rowNodes) : labelled };
      this.clearSums();
    }
    return this.shape.value;
  }

  private labelled(query: Query, rows: ProfileRows[]): Shape {
    const shape = { tree: this.plain, rowNodes: rows.map(({ node }) => node) };
    const labels = (kind: "tagroot" | "tagleaf") => {
      const keys = labelKeys(query.filters, kind);
      if (keys.length === 0) return null;
      const known = new Map<number, (string | null)[]>();
      const { states, threads } = this.file;
      return {
        keys,
        texts: (side: number, row: number) => {
          const { labelSet, state, thread } = rows[side];
          const tags = (labelSet[row] * states.length + state[row]) * threads.length + thread[row];
          let texts = known.get(tags);
          if (!texts) {
            texts = keys.map((key) => tagText(this.file, rows[side], row, key));
            known.set(tags, texts);
          }
          return texts;
        },
      };
    };
    const roots = labels("tagroot");
    const leaves = labels("tagleaf");
    return roots || leaves ? withLabelFrames(shape, roots, leaves) : shape;
  }

  /** Rows that pass focus, ignore and the filters of labels, threads and processes. */
  private keptRows(query: Query, rows: ProfileRows[]): Kept[] {
    const key = JSON.stringify([query.target, query.base, query.filters, query.idle]);
    if (this.kept?.key !== key) {
      const labelled = this.labelledForFocus(query, rows);
      const hides = query.filters.some(({ kind }) => kind === "hide" || kind === "show");
      const shape = hides ? this.shaped(query, rows) : null;
      const value = rows.map((side, index) => {
        const passes = rowFilter(this.file, side, query.filters);
        const nodes = labelled?.rowNodes[index];
        const focused = labelled?.focused;
        const kept = new Uint8Array(side.node.length);
        for (let row = 0; row < kept.length; row++) {
          const inFocus = !nodes || !focused || focused[nodes[row]] === 1;
          // As in pprof, a stack of which nothing is left is dropped.
          const isLeft = shape?.rowNodes[index][row] !== 0;
          const counts = query.idle || side.idle[row] === 0;
          kept[row] = counts && inFocus && isLeft && (!passes || passes(row)) ? 1 : 0;
        }
        return { kept: this.keptOfBoot(query, side, kept), keptForBoot: kept };
      });
      this.kept = { key, value };
      this.clearSums();
    }
    return this.kept.value;
  }

  /** Of the kept rows those that pass the filters of the kind "boot". */
  private keptOfBoot({ filters }: Query, rows: ProfileRows, kept: Uint8Array): Uint8Array {
    const texts = filters.filter(({ kind }) => kind === "boot").map(({ text }) => text);
    if (texts.length === 0) return kept;
    const boot = new Boot(this.file, rows, kept, null);
    const tests = texts.map((text) => boot.rowFilter(text));
    return kept.map((isKept, row) => (isKept && tests.every((test) => test(row)) ? 1 : 0));
  }

  /** Which nodes focus and ignore let pass. As in pprof they see the frames of labels, and the hidden ones. */
  private labelledForFocus(query: Query, rows: ProfileRows[]): { focused: Uint8Array; rowNodes: Uint32Array[] } | null {
    const filters = query.filters.filter(({ kind }) => kind === "focus" || kind === "ignore");
    if (filters.length === 0) return null;
    const hides = query.filters.some(({ kind }) => kind === "hide" || kind === "show");
    const { tree, rowNodes } = hides ? this.labelled(query, rows) : this.shaped(query, rows);
    const focused = new Uint8Array(tree.size).fill(1);
    for (const { kind, text } of filters) {
      const frames = matchFrames(tree.frames, text);
      const matched = new Uint8Array(tree.size);
      for (let node = 1; node < tree.size; node++)
        matched[node] = frames[tree.frame[node]] | matched[tree.parent[node]];
      const wanted = kind === "focus" ? 1 : 0;
      for (let node = 0; node < tree.size; node++) if (matched[node] !== wanted) focused[node] = 0;
    }
    return { focused, rowNodes };
  }

  private clearSums() {
    this.spare = [...this.sums.values()].slice(0, 2);
    this.sums.clear();
  }

  private summed(query: Query, shape: Shape, rows: ProfileRows, side: number, kept: Uint8Array, scale: number) {
    const key = `${side} ${query.type} ${scale}`;
    let sums = this.sums.get(key);
    if (!sums) {
      const values = rows.values[query.type];
      sums = sumRows(shape.tree, values, shape.rowNodes[side], kept, scale, this.spare.pop());
      // All shares are of what counts.
      for (let row = 0; values && row < values.length; row++)
        if (rows.idle[row] === 1) sums.idle += values[row] * scale;
      if (!query.idle) sums.all -= sums.idle;
      this.sums.set(key, sums);
    }
    return sums;
  }
}

/** Values of the kept rows at their nodes (self), and with those of all callees (total); in the columns of `spare`. */
export function sumRows(
  tree: CallTree,
  values: Float64Array | null,
  node: Uint32Array,
  kept: Uint8Array,
  scale = 1,
  spare?: Sums,
): Sums {
  const old = spare?.self.length === tree.size ? spare : undefined;
  const self = old ? old.self.fill(0) : new Float64Array(tree.size);
  let sum = 0;
  let all = 0;
  for (let row = 0; values && row < values.length; row++) {
    const value = values[row] * scale;
    all += value;
    if (kept[row]) {
      self[node[row]] += value;
      sum += value;
    }
  }
  return { self, total: tree.totals(self, old?.total), sum, all, idle: 0 };
}

/** Another value type over the same tree and rows, in the columns of `old`: CPU beside wall, samples beside time. */
export function otherType(view: View, side: Side, type: number, old?: Sums): Sums {
  return sumRows(view.tree, side.rows.values[type], side.node, side.kept, side.scale, old);
}
