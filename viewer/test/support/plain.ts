import type { ProfileFile } from "../../src/format/decode.ts";

/** A row in the plainest form: its frames from the first caller on, with lines. */
export interface PlainRow {
  frames: number[];
  lines: number[];
  tags: [string, string][];
  value: number;
}

/** The rows of a profile, stack by stack: slow and simple, to check quick code against. */
export function plainRows(file: ProfileFile, profile: number, type: number): PlainRow[] {
  const rows = file.profiles[profile];
  return Array.from(rows.node, (leaf, row) => {
    const frames: number[] = [];
    const lines: number[] = [];
    for (let node = leaf; node !== 0; node = file.nodes.parent[node]) {
      frames.unshift(file.nodes.frame[node]);
      lines.unshift(file.nodes.line[node]);
    }
    const state = file.states[rows.state[row]];
    const thread = file.threads[rows.thread[row]];
    const tags: [string, string][] = [...file.labelSets[rows.labelSet[row]]];
    if (state.tag) tags.push(state.tag);
    if (thread.name) tags.push(["thread", thread.name]);
    tags.push(["thread_seq", String(thread.number)]);
    return { frames, lines, tags, value: rows.values[type]?.[row] ?? 0 };
  });
}

/** Sums of what `key` says, without the zeros. */
export function sumBy<T>(items: T[], key: (item: T) => Iterable<string | number>, value: (item: T) => number) {
  const sums = new Map<string | number, number>();
  for (const item of items) for (const name of key(item)) sums.set(name, (sums.get(name) ?? 0) + value(item));
  for (const [name, sum] of sums) if (sum === 0) sums.delete(name);
  return new Map([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
}
