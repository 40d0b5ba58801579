import { tagText } from "./filters.ts";
import { rowStateNames, rowStates } from "./states.ts";
import type { Side, View } from "./view.ts";

/** What the rows of the table stand for; `label:KEY` for a label of the user's. */
export type Grouping = "method" | "line" | "file" | "library" | "category" | "thread" | "state" | `label:${string}`;

/** The groups of a view: each with its own time, and with the time of all that it called. */
export interface Groups {
  /** In the order of first sight. */
  name: string[];
  /** Where the group is: file and line, or nothing. */
  place: string[];
  /** A frame of the group, or -1. */
  frame: Int32Array;
  self: Float64Array;
  total: Float64Array;
  baseSelf: Float64Array;
  baseTotal: Float64Array;
  /** The group of all that has no such label, or -1. Its name is for people: a label may have that value, too. */
  unlabelled: number;
  /** Whether self differs from total at all. */
  nested: boolean;
}

/** Words for the categories that the page knows. */
export const CATEGORY_WORDS: Record<string, string> = {
  app: "your code",
  gem: "gems",
  stdlib: "standard library",
  c: "Ruby's C code",
  native: "native code",
  gvl: "waiting",
  gc: "garbage collection",
  rperf: "rperf itself",
};

/** Sums the view by what `grouping` says. Recursion is counted once. */
export function groupView(view: View, grouping: Grouping): Groups {
  if (grouping === "thread" || grouping === "state" || grouping.startsWith("label:")) return byRows(view, grouping);
  return byNodes(view, grouping);
}

/** `file:line`, or what is known of it. */
export function place(file: string, line: number): string {
  return line > 0 && file !== "" ? `${file}:${line}` : file;
}

const BLOCK = /^block\b.* in /;

/** The same of a method, by the line where it begins. Of a block it is the file: other blocks have its name, too. */
export function methodPlace(name: string, file: string, line: number): string {
  return place(file, BLOCK.test(name) ? 0 : line);
}

interface NodeGroups {
  group: Uint32Array;
  name: string[];
  place: string[];
  frame: number[];
}

const grouped = new WeakMap<object, Map<string, NodeGroups & { outermost: Uint8Array }>>();

/** The group of each node, and which nodes are the outermost of theirs. */
export function nodeGroups(view: View, grouping: Grouping): NodeGroups & { outermost: Uint8Array } {
  const { tree } = view;
  const known = grouped.get(tree) ?? new Map<string, NodeGroups & { outermost: Uint8Array }>();
  grouped.set(tree, known);
  let groups = known.get(grouping);
  if (!groups) {
    const made = grouping === "line" ? lineGroups(view) : frameGroups(view, grouping);
    groups = { ...made, outermost: tree.outermost(made.group, made.name.length) };
    known.set(grouping, groups);
  }
  return groups;
}

function byNodes(view: View, grouping: Grouping): Groups {
  const { tree, target, base } = view;
  const groups = nodeGroups(view, grouping);
  const { group, outermost, name } = groups;
  const sums = (side: Side | null) => {
    const self = new Float64Array(name.length);
    const total = new Float64Array(name.length);
    for (let node = 1; side && node < tree.size; node++) {
      if (side.self[node] !== 0) self[group[node]] += side.self[node];
      if (side.total[node] !== 0 && outermost[node]) total[group[node]] += side.total[node];
    }
    return { self, total };
  };
  const now = sums(target);
  const before = sums(base);
  return {
    name,
    place: groups.place,
    frame: Int32Array.from(groups.frame),
    self: now.self,
    total: now.total,
    baseSelf: before.self,
    baseTotal: before.total,
    unlabelled: -1,
    nested: true,
  };
}

function frameGroups({ file, tree }: View, grouping: Grouping): NodeGroups {
  const { frames } = tree;
  const ids = new Map<string, number>();
  const name: string[] = [];
  const where: string[] = [];
  const frame: number[] = [];
  const groupOf = Uint32Array.from(frames.name, (_, i) => {
    const [text, at] = frameGroup(frames, file.categories, i, grouping);
    const key = grouping === "method" ? String(i) : text;
    let id = ids.get(key);
    if (id === undefined) {
      id = name.length;
      ids.set(key, id);
      name.push(text);
      where.push(at);
      frame.push(i);
    }
    return id;
  });
  const group = new Uint32Array(tree.size);
  // As `--by gem` does it: methods that Ruby itself has count for the gem that calls them.
  const inherits = Uint8Array.from(frames.name, (_, i) => (grouping === "library" && isCore(file, frames, i) ? 1 : 0));
  for (let node = 1; node < tree.size; node++) {
    const caller = tree.parent[node];
    group[node] = inherits[tree.frame[node]] && caller !== 0 ? group[caller] : groupOf[tree.frame[node]];
  }
  return { group, name, place: where, frame };
}

/** Whether it is a method of C, or one that Ruby has built in. */
function isCore(file: View["file"], frames: View["tree"]["frames"], frame: number): boolean {
  return file.categories[frames.category[frame]] === "c" || frames.file[frame].startsWith("<internal:");
}

function frameGroup(
  frames: View["tree"]["frames"],
  categories: string[],
  frame: number,
  grouping: Grouping,
): [string, string] {
  switch (grouping) {
    case "file":
      return [frames.file[frame] || "(no file)", ""];
    case "library":
      return [frames.library[frame] || `(no gem: ${categoryWords(categories[frames.category[frame]])})`, ""];
    case "category":
      return [categoryWords(categories[frames.category[frame]]), ""];
    default:
      return [frames.name[frame], methodPlace(frames.name[frame], frames.file[frame], frames.line[frame])];
  }
}

export function categoryWords(category: string): string {
  return CATEGORY_WORDS[category] ?? "other";
}

function lineGroups({ tree }: View): NodeGroups {
  const { frames } = tree;
  const ids = new Map<number, number>();
  const name: string[] = [];
  const where: string[] = [];
  const frame: number[] = [];
  const group = new Uint32Array(tree.size);
  for (let node = 1; node < tree.size; node++) {
    const key = tree.frame[node] * 2 ** 22 + (tree.line[node] % 2 ** 22);
    let id = ids.get(key);
    if (id === undefined) {
      id = name.length;
      ids.set(key, id);
      name.push(frames.name[tree.frame[node]]);
      where.push(place(frames.file[tree.frame[node]], tree.line[node]));
      frame.push(tree.frame[node]);
    }
    group[node] = id;
  }
  return { group, name, place: where, frame };
}

/** Groups that rows have, not methods: then a group's own time is all its time. */
function byRows(view: View, grouping: Grouping): Groups {
  const { file, target, base, query } = view;
  const ids = new Map<string | null, number>();
  const name: string[] = [];
  const sums: [number[], number[]] = [[], []];
  const stateNames = rowStateNames(file);
  [target, base].forEach((side, index) => {
    if (!side) return;
    const values = side.rows.values[query.type];
    const known = new Map<number, number>();
    const stateOf = rowStates(file, side.rows);
    for (let row = 0; values && row < values.length; row++) {
      if (!side.kept[row]) continue;
      const tags =
        (side.rows.labelSet[row] * stateNames.length + stateOf(row)) * file.threads.length + side.rows.thread[row];
      let id = known.get(tags);
      if (id === undefined) {
        const text =
          grouping === "state" ? stateNames[stateOf(row)] : rowGroup(view, index === 0 ? target : side, row, grouping);
        id = ids.get(text);
        if (id === undefined) {
          id = name.length;
          ids.set(text, id);
          name.push(text ?? "(none)");
          sums[0].push(0);
          sums[1].push(0);
        }
        known.set(tags, id);
      }
      sums[index][id] += values[row] * side.scale;
    }
  });
  const total = Float64Array.from(sums[0]);
  const baseTotal = Float64Array.from(sums[1]);
  const nothing = name.map(() => "");
  return {
    name,
    place: nothing,
    frame: new Int32Array(name.length).fill(-1),
    self: total,
    total,
    baseSelf: baseTotal,
    baseTotal,
    unlabelled: ids.get(null) ?? -1,
    nested: false,
  };
}

/** The name of the row's group; null if it has no such label. */
function rowGroup({ file }: View, side: View["target"], row: number, grouping: Grouping): string | null {
  if (grouping === "thread") return threadName(file.threads[side.rows.thread[row]]);
  const key = grouping.slice("label:".length);
  return tagText(file, side.rows, row, key);
}

/** As `--thread` finds it: the number is always there. */
export function threadName({ number, name }: { number: number; name: string }): string {
  if (number === 0 && name === "") return "0 (threads that ended early)";
  return name === "" ? String(number) : `${number} ${name}`;
}

/** Keys of the labels that occur, the user's before rperf's own. */
export function labelNames(view: View): string[] {
  const keys = new Set(view.file.labelSets.flatMap((set) => set.map(([key]) => key)));
  const own = (key: string) => (key.startsWith("%") ? 1 : 0);
  return [...keys].sort((a, b) => own(a) - own(b) || (a < b ? -1 : 1));
}
