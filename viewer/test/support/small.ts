import { decode, type ProfileFile } from "../../src/format/decode.ts";
import type { Filter } from "../../src/model/filters.ts";
import { type Grouping, groupView } from "../../src/model/groups.ts";
import type { Query, View } from "../../src/model/view.ts";
import { type Draft, encode } from "./encode.ts";
import { CATEGORIES, random, STATES } from "./generate.ts";
import { type PlainRow, sumBy } from "./plain.ts";

/** A small random profile with much recursion, and a second one over the same tree. */
export function randomDraft(seed: number): Draft {
  const next = random(seed);
  const pick = (count: number) => Math.floor(next() * count);
  const nodes = Array.from({ length: 60 }, (_, i) => ({
    parent: next() < 0.8 ? Math.max(0, i - pick(3)) : 0,
    frame: pick(7),
    line: pick(4),
  }));
  const rows = () =>
    Array.from({ length: 50 }, () => ({
      node: pick(61),
      thread: pick(3),
      labelSet: pick(4),
      state: pick(3),
      values: [1, 1 + pick(100)],
    }));
  return {
    valueTypes: [
      { name: "samples", unit: "count" },
      { name: "wall", unit: "nanoseconds" },
    ],
    defaultType: 1,
    states: STATES,
    categories: CATEGORIES,
    frames: Array.from({ length: 7 }, (_, i) => ({
      name: `m${i}`,
      file: `f${i % 3}.rb`,
      path: `/srv/f${i % 3}.rb`,
      line: i,
      category: 1 + (i % 2),
      library: i % 2 ? "gem" : "",
    })),
    nodes,
    labelSets: [
      [],
      [["endpoint", "a"]],
      [
        ["endpoint", "b"],
        ["%pid", "1"],
      ],
      [
        ["endpoint", "ab"],
        ["%pid", "2"],
      ],
    ],
    threads: [
      { number: 0, name: "" },
      { number: 1, name: "main" },
      { number: 2, name: "worker" },
    ],
    profiles: [{ rows: rows() }, { rows: rows() }],
  };
}

export const query = (filters: Filter[] = [], more: Partial<Query> = {}): Query => ({
  target: 0,
  base: null,
  baseScale: 1,
  type: 1,
  idle: false,
  filters,
  ...more,
});
export const each = (check: (file: ProfileFile, seed: number) => void) => {
  for (let seed = 1; seed <= 40; seed++) check(decode(encode(randomDraft(seed))), seed);
};

/** The groups of a view that are not 0. */
export function sums(view: View, grouping: Grouping, column: "self" | "total" | "baseSelf" | "baseTotal") {
  const groups = groupView(view, grouping);
  return sumBy(
    [...groups.name.keys()],
    (i) => [grouping === "line" ? `${groups.name[i]} ${groups.place[i]}` : groups.name[i]],
    (i) => groups[column][i],
  );
}

/** Stacks as text, with their sums: what a tree holds, whatever its form. */
export function treeStacks(view: View) {
  const { tree, target } = view;
  const path = (node: number): string =>
    node === 0 ? "" : `${path(tree.parent[node])};${tree.frames.name[tree.frame[node]]}`;
  return sumBy(
    [...Array(tree.size).keys()],
    (node) => [path(node)],
    (node) => target.self[node],
  );
}
export const plainStacks = (file: ProfileFile, rows: PlainRow[]) =>
  sumBy(
    rows,
    (row) => [row.frames.map((frame) => `;${file.frames.name[frame]}`).join("")],
    (row) => row.value,
  );
