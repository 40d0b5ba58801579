import type { CallTree } from "./call_tree.ts";
import type { View } from "./view.ts";

/** A caller or callee of a function, with the lines of the calls. */
export interface Neighbour {
  /** -1 stands for "nothing": the function is the first of its stack. */
  frame: number;
  total: number;
  base: number;
  /** The line of each call, in the calling function: 0 is not known. */
  lines: { line: number; total: number }[];
}

/** What calls `frame` (`up`), or what it calls, the heaviest first. A stack counts once for each pair of functions. */
export function neighbours(view: View, frame: number, up: boolean): Neighbour[] {
  const { tree, target, base } = view;
  const found = new Map<number, Neighbour & { sums: Map<number, number> }>();
  for (let node = 1; node < tree.size; node++) {
    if (target.total[node] === 0 && !(base && base.total[node] !== 0)) continue;
    const caller = tree.parent[node];
    const callee = up ? node : caller;
    if (callee === 0 || tree.frame[callee] !== frame) continue;
    const isTop = caller === 0;
    const other = up ? (isTop ? -1 : tree.frame[caller]) : tree.frame[node];
    let entry = found.get(other);
    if (!entry) {
      entry = { frame: other, total: 0, base: 0, lines: [], sums: new Map() };
      found.set(other, entry);
    }
    const repeat = isTop ? "none" : repeatedCall(tree, node);
    if (repeat === "none") {
      entry.total += target.total[node];
      entry.base += base ? base.total[node] : 0;
    }
    const line = isTop ? 0 : tree.line[caller];
    if (repeat !== "line") entry.sums.set(line, (entry.sums.get(line) ?? 0) + target.total[node]);
  }
  const list = [...found.values()].map(({ sums, ...entry }) => ({
    ...entry,
    lines: [...sums].map(([line, total]) => ({ line, total })).sort((a, b) => b.total - a.total),
  }));
  return list.sort((a, b) => Math.max(b.total, b.base) - Math.max(a.total, a.base));
}

/** Whether the call at `node` (its parent's function calls its own) occurs further out too: anywhere, or at the same line. */
function repeatedCall(tree: CallTree, node: number): "none" | "call" | "line" {
  const { parent, frame, line } = tree;
  const caller = parent[node];
  let repeat: "none" | "call" = "none";
  for (let at = caller; parent[at] !== 0; at = parent[at]) {
    if (frame[at] !== frame[node] || frame[parent[at]] !== frame[caller]) continue;
    if (line[parent[at]] === line[caller]) return "line";
    repeat = "call";
  }
  return repeat;
}

/** Self and total of each line of a file, recursion counted once. */
export interface FileLines {
  lines: Map<number, { self: number; total: number }>;
  /** Highest line that has a value. */
  last: number;
}

export function fileLines(view: View, file: string): FileLines {
  const { tree, target } = view;
  const inFile = Uint8Array.from(tree.frames.file, (path) => (path === file ? 1 : 0));
  const lines: FileLines["lines"] = new Map();
  let last = 0;
  for (let node = 1; node < tree.size; node++) {
    const line = tree.line[node];
    if (!inFile[tree.frame[node]] || line === 0 || target.total[node] === 0) continue;
    const entry = lines.get(line) ?? { self: 0, total: 0 };
    lines.set(line, entry);
    entry.self += target.self[node];
    last = Math.max(last, line);
    let outer = tree.parent[node];
    while (outer !== 0 && !(tree.line[outer] === line && inFile[tree.frame[outer]])) outer = tree.parent[outer];
    if (outer === 0) entry.total += target.total[node];
  }
  return { lines, last };
}
