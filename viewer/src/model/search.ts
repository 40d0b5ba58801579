import { escapePattern } from "./filters.ts";
import type { View } from "./view.ts";

/** The functions that a search finds, and how much time they have without counting any twice. */
export interface Found {
  frames: Uint8Array;
  /** How many functions match. */
  count: number;
  total: number;
  base: number;
}

/** What is wrong with a pattern, or the pattern. */
export function searchPattern(text: string, regexp: boolean): RegExp | string {
  if (text.length > 200) return "longer than 200 characters";
  try {
    return new RegExp(regexp ? text : escapePattern(text), "i");
  } catch (error) {
    return (error as Error).message;
  }
}

/** Time for the names of one search. A pattern that takes longer is given up. */
const TIME_LIMIT_MS = 2000;

export function search(view: View, pattern: RegExp): Found | "too slow" {
  const { tree, target, base } = view;
  const { name, file, path } = tree.frames;
  const frames = new Uint8Array(name.length);
  let count = 0;
  const start = performance.now();
  for (let i = 0; i < name.length; i++) {
    if (i % 64 === 0 && performance.now() - start > TIME_LIMIT_MS) return "too slow";
    if (pattern.test(name[i]) || pattern.test(file[i]) || pattern.test(path[i])) {
      frames[i] = 1;
      count++;
    }
  }
  const inside = new Uint8Array(tree.size);
  let total = 0;
  let baseTotal = 0;
  for (let node = 1; node < tree.size; node++) {
    const above = inside[tree.parent[node]];
    const match = frames[tree.frame[node]];
    inside[node] = above | match;
    if (match && !above) {
      total += target.total[node];
      if (base) baseTotal += base.total[node];
    }
  }
  return { frames, count, total, base: baseTotal };
}
