import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, type ProfileFile } from "../src/format/decode.ts";
import { BoxTree, outermostNodes } from "../src/model/box_tree.ts";
import { changes } from "../src/model/changes.ts";
import type { Filter } from "../src/model/filters.ts";
import { asFlags, exactly, filterProblem } from "../src/model/filters.ts";
import { type Grouping, groupView } from "../src/model/groups.ts";
import { fileLines, neighbours } from "../src/model/neighbours.ts";
import { search, searchPattern } from "../src/model/search.ts";
import { stateShares, summary } from "../src/model/summary.ts";
import { type Query, type View, Views } from "../src/model/view.ts";
import { type Draft, encode } from "./support/encode.ts";
import { CATEGORIES, random, STATES } from "./support/generate.ts";
import { type PlainRow, plainRows, sumBy } from "./support/plain.ts";

/** A small random profile with much recursion, and a second one over the same tree. */
function randomDraft(seed: number): Draft {
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

const query = (filters: Filter[] = [], more: Partial<Query> = {}): Query => ({
  target: 0,
  base: null,
  baseScale: 1,
  type: 1,
  filters,
  ...more,
});
const each = (check: (file: ProfileFile, seed: number) => void) => {
  for (let seed = 1; seed <= 40; seed++) check(decode(encode(randomDraft(seed))), seed);
};

/** The groups of a view that are not 0. */
function sums(view: View, grouping: Grouping, column: "self" | "total" | "baseSelf" | "baseTotal") {
  const groups = groupView(view, grouping);
  return sumBy(
    [...groups.name.keys()],
    (i) => [grouping === "line" ? `${groups.name[i]} ${groups.place[i]}` : groups.name[i]],
    (i) => groups[column][i],
  );
}

/** Stacks as text, with their sums: what a tree holds, whatever its form. */
function treeStacks(view: View) {
  const { tree, target } = view;
  const path = (node: number): string =>
    node === 0 ? "" : `${path(tree.parent[node])};${tree.frames.name[tree.frame[node]]}`;
  return sumBy(
    [...Array(tree.size).keys()],
    (node) => [path(node)],
    (node) => target.self[node],
  );
}
const plainStacks = (file: ProfileFile, rows: PlainRow[]) =>
  sumBy(
    rows,
    (row) => [row.frames.map((frame) => `;${file.frames.name[frame]}`).join("")],
    (row) => row.value,
  );

test("self and total agree with stacks added up one by one; recursion counts once", () => {
  each((file) => {
    const rows = plainRows(file, 0, 1);
    const { name, file: path } = file.frames;
    const view = new Views(file).view(query());
    assert.deepEqual(
      sums(view, "method", "total"),
      sumBy(
        rows,
        (row) => new Set(row.frames.map((f) => name[f])),
        (row) => row.value,
      ),
    );
    assert.deepEqual(
      sums(view, "method", "self"),
      sumBy(
        rows,
        (row) => row.frames.slice(-1).map((f) => name[f]),
        (row) => row.value,
      ),
    );
    assert.deepEqual(
      sums(view, "file", "total"),
      sumBy(
        rows,
        (row) => new Set(row.frames.map((f) => path[f])),
        (row) => row.value,
      ),
    );
    const lines = (row: PlainRow) =>
      row.frames.map((f, i) => `${name[f]} ${path[f]}${row.lines[i] ? `:${row.lines[i]}` : ""}`);
    assert.deepEqual(
      sums(view, "line", "total"),
      sumBy(
        rows,
        (row) => new Set(lines(row)),
        (row) => row.value,
      ),
    );
    assert.deepEqual(
      sums(view, "label:endpoint", "self"),
      sumBy(
        rows,
        (row) => [row.tags.find(([key]) => key === "endpoint")?.[1] ?? "(none)"],
        (row) => row.value,
      ),
    );
    assert.equal(
      view.target.sum,
      rows.reduce((sum, row) => sum + row.value, 0),
    );
  });
});

test("filters of stacks and labels mean what pprof means", () => {
  const uses = (file: ProfileFile, row: PlainRow, regexp: RegExp) =>
    row.frames.some((frame) => regexp.test(file.frames.name[frame]) || regexp.test(file.frames.file[frame]));
  const tagged = (row: PlainRow, key: string, regexp: RegExp) =>
    row.tags.some(([name, value]) => name === key && regexp.test(value));
  const cases: [Filter[], (file: ProfileFile, row: PlainRow) => boolean][] = [
    [[{ kind: "focus", text: "m[12]$" }], (file, row) => uses(file, row, /m[12]$/)],
    [
      [
        { kind: "focus", text: "f1" },
        { kind: "focus", text: "m3" },
      ],
      (file, row) => uses(file, row, /f1/) && uses(file, row, /m3/),
    ],
    [[{ kind: "ignore", text: "m0" }], (file, row) => !uses(file, row, /m0/)],
    [
      [
        { kind: "focus", text: "m4" },
        { kind: "ignore", text: "m0" },
      ],
      (file, row) => uses(file, row, /m4/) && !uses(file, row, /m0/),
    ],
    [[{ kind: "tagfocus", text: "endpoint=a" }], (_, row) => tagged(row, "endpoint", /a/)],
    [[{ kind: "tagfocus", text: "endpoint=^b$,^ab$" }], (_, row) => tagged(row, "endpoint", /^a?b$/)],
    [
      [{ kind: "tagfocus", text: "endpoint:.*b,pid:2" }],
      (_, row) => tagged(row, "endpoint", /b/) && tagged(row, "%pid", /2/),
    ],
    [[{ kind: "tagignore", text: "%GVL=wait" }], (_, row) => !tagged(row, "%GVL", /wait/)],
    [[{ kind: "thread", text: "work" }], (_, row) => tagged(row, "thread", /work/)],
    [[{ kind: "thread", text: "1" }], (_, row) => tagged(row, "thread_seq", /^1$/)],
    [[{ kind: "pid", text: "2" }], (_, row) => tagged(row, "%pid", /^2$/)],
  ];
  each((file) => {
    const rows = plainRows(file, 0, 1);
    const views = new Views(file);
    for (const [filters, keep] of cases) {
      assert.deepEqual(
        treeStacks(views.view(query(filters))),
        plainStacks(
          file,
          rows.filter((row) => keep(file, row)),
        ),
        JSON.stringify(filters),
      );
    }
  });
});

test("hide and show take frames out of the stacks, after focus has seen them", () => {
  each((file) => {
    const rows = plainRows(file, 0, 1);
    const matches = (frame: number, regexp: RegExp) =>
      regexp.test(file.frames.name[frame]) || regexp.test(file.frames.file[frame]);
    const without = (keep: (frame: number) => boolean) =>
      rows.map((row) => ({ ...row, frames: row.frames.filter(keep) }));
    const views = new Views(file);
    assert.deepEqual(
      treeStacks(views.view(query([{ kind: "hide", text: "m[135]" }]))),
      plainStacks(
        file,
        without((f) => !matches(f, /m[135]/)),
      ),
    );
    assert.deepEqual(
      treeStacks(views.view(query([{ kind: "show", text: "f1" }]))),
      plainStacks(
        file,
        without((f) => matches(f, /f1/)),
      ),
    );
    const focused = without((f) => !matches(f, /m1/)).filter((_, i) => rows[i].frames.some((f) => matches(f, /m1/)));
    assert.deepEqual(
      treeStacks(
        views.view(
          query([
            { kind: "hide", text: "m1" },
            { kind: "focus", text: "m1" },
          ]),
        ),
      ),
      plainStacks(file, focused),
    );
  });
});

test("tagroot and tagleaf put labels above and below the stacks", () => {
  each((file) => {
    const rows = plainRows(file, 0, 1);
    const text = (row: PlainRow, keys: string[]) =>
      keys.flatMap((key) => row.tags.filter(([name]) => name === key).map(([, value]) => `;${value}`)).join("");
    const stack = (row: PlainRow) => row.frames.map((frame) => `;${file.frames.name[frame]}`).join("");
    const views = new Views(file);
    const root = views.view(query([{ kind: "tagroot", text: "endpoint,%pid" }]));
    assert.deepEqual(
      treeStacks(root),
      sumBy(
        rows,
        (row) => [text(row, ["endpoint", "%pid"]) + stack(row)],
        (row) => row.value,
      ),
    );
    const leaf = views.view(query([{ kind: "tagleaf", text: "thread" }]));
    assert.deepEqual(
      treeStacks(leaf),
      sumBy(
        rows,
        (row) => [stack(row) + text(row, ["thread"])],
        (row) => row.value,
      ),
    );
    const focused = views.view(
      query([
        { kind: "tagroot", text: "endpoint" },
        { kind: "focus", text: "^ab$" },
        { kind: "hide", text: "m2" },
      ]),
    );
    assert.equal(
      focused.target.sum,
      rows.filter((row) => text(row, ["endpoint"]) === ";ab").reduce((sum, row) => sum + row.value, 0),
    );
  });
});

/** All boxes of a tree, as stacks with their values. */
function boxes(tree: BoxTree, value: "total" | "self" | "base") {
  const found = new Map<string, number>();
  const visit = (box: number, path: string) => {
    for (const kid of tree.children(box)) {
      const name = `${path};${tree.view.tree.frames.name[tree.frame[kid]]}`;
      found.set(name, tree[value][kid]);
      visit(kid, name);
    }
  };
  visit(0, "");
  return new Map([...found].filter(([, sum]) => sum !== 0).sort(([a], [b]) => (a < b ? -1 : 1)));
}
const prefixes = (names: string[]) =>
  names.map((_, i) =>
    names
      .slice(0, i + 1)
      .map((name) => `;${name}`)
      .join(""),
  );

test("boxes going down, up, and from one function agree with the stacks", () => {
  each((file) => {
    const names = (row: PlainRow) => row.frames.map((frame) => file.frames.name[frame]);
    const rows = plainRows(file, 0, 1);
    const view = new Views(file).view(query([], { base: 1 }));
    assert.deepEqual(
      boxes(BoxTree.topDown(view), "total"),
      sumBy(
        rows,
        (row) => prefixes(names(row)),
        (row) => row.value,
      ),
    );
    assert.deepEqual(
      boxes(BoxTree.topDown(view), "base"),
      sumBy(
        plainRows(file, 1, 1),
        (row) => prefixes(names(row)),
        (row) => row.value,
      ),
    );
    assert.deepEqual(
      boxes(BoxTree.bottomUp(view), "total"),
      sumBy(
        rows,
        (row) => prefixes(names(row).reverse()),
        (row) => row.value,
      ),
    );
    const from = (row: PlainRow) => row.frames.indexOf(3);
    const with3 = rows.filter((row) => from(row) >= 0);
    assert.deepEqual(
      boxes(BoxTree.callees(view, outermostNodes(view.tree, 3)), "total"),
      sumBy(
        with3,
        (row) => prefixes(names(row).slice(from(row))),
        (row) => row.value,
      ),
    );
    assert.deepEqual(
      boxes(BoxTree.callers(view, outermostNodes(view.tree, 3)), "total"),
      sumBy(
        with3,
        (row) =>
          prefixes(
            names(row)
              .slice(0, from(row) + 1)
              .reverse(),
          ),
        (row) => row.value,
      ),
    );
  });
});

test("callers and callees count a stack once for each pair and each line", () => {
  each((file) => {
    const view = new Views(file).view(query());
    const rows = plainRows(file, 0, 1);
    const pairs = (row: PlainRow) =>
      row.frames.map((frame, i) => ({
        caller: i === 0 ? -1 : row.frames[i - 1],
        callee: frame,
        line: row.lines[i - 1] ?? 0,
      }));
    const found = (up: boolean) => neighbours(view, 2, up);
    const callers = (row: PlainRow) =>
      new Set(
        pairs(row)
          .filter(({ callee }) => callee === 2)
          .map(({ caller }) => caller),
      );
    const callees = (row: PlainRow) =>
      new Set(
        pairs(row)
          .filter(({ caller }) => caller === 2)
          .map(({ callee }) => callee),
      );
    assert.deepEqual(
      sumBy(
        found(true),
        ({ frame }) => [frame],
        ({ total }) => total,
      ),
      sumBy(rows, callers, (row) => row.value),
    );
    assert.deepEqual(
      sumBy(
        found(false),
        ({ frame }) => [frame],
        ({ total }) => total,
      ),
      sumBy(rows, callees, (row) => row.value),
    );
    const lines = (row: PlainRow) =>
      new Set(
        pairs(row)
          .filter(({ caller }) => caller === 2)
          .map(({ callee, line }) => `${callee}@${line}`),
      );
    const foundLines = found(false).flatMap(({ frame, lines }) =>
      lines.map(({ line, total }) => ({ key: `${frame}@${line}`, total })),
    );
    assert.deepEqual(
      sumBy(
        foundLines,
        ({ key }) => [key],
        ({ total }) => total,
      ),
      sumBy(rows, lines, (row) => row.value),
    );
  });
});

test("lines of a file and searches count recursion once", () => {
  each((file) => {
    const view = new Views(file).view(query());
    const rows = plainRows(file, 0, 1);
    const inFile = (row: PlainRow) =>
      row.lines.filter((line, i) => line > 0 && file.frames.file[row.frames[i]] === "f1.rb");
    const lines = [...fileLines(view, "f1.rb").lines];
    assert.deepEqual(
      sumBy(
        lines,
        ([line]) => [line],
        ([, { total }]) => total,
      ),
      sumBy(
        rows,
        (row) => new Set(inFile(row)),
        (row) => row.value,
      ),
    );
    const found = search(view, searchPattern("M[35]", true) as RegExp);
    assert.ok(found !== "too slow");
    const hits = rows.filter((row) => row.frames.some((frame) => /m[35]/.test(file.frames.name[frame])));
    assert.equal(
      found.total,
      hits.reduce((sum, row) => sum + row.value, 0),
    );
  });
  assert.match(searchPattern("(", true) as string, /./);
  assert.ok((searchPattern("a.b(", false) as RegExp).test("xA.B("));
});

test("a profile compared with itself has no change, and a changed method is found", () => {
  each((file) => {
    const same = { ...file, profiles: [file.profiles[0], file.profiles[0]] };
    const none = changes(new Views(same).view(query([], { base: 1 })), "method");
    assert.deepEqual(none, { slower: [], faster: [] });
  });
  const rows = (slow: number) => [
    { node: 1, values: [400, 400e6] },
    { node: 2, values: [slow, slow * 1e6] },
    { node: 3, values: [10, 10e6] },
  ];
  const draft = randomDraft(1);
  draft.nodes = [
    { parent: 0, frame: 0 },
    { parent: 1, frame: 1 },
    { parent: 1, frame: 2 },
  ];
  const noisy = rows(100).map((row) => (row.node === 3 ? { ...row, values: [12, 12e6] } : row));
  draft.profiles = [{ rows: rows(300) }, { rows: noisy }];
  const found = changes(new Views(decode(encode(draft))).view(query([], { base: 1 })), "method");
  assert.deepEqual(
    found.slower.map(({ name, delta, noise }) => [name, delta, noise]),
    [["m1", 200e6, false]],
  );
  assert.deepEqual(
    found.faster.map(({ name, noise }) => [name, noise]),
    [["m2", true]],
  );
});

test("states are shares of the whole, and their filters find them", () => {
  each((file) => {
    const views = new Views(file);
    const shares = stateShares(views.view(query()));
    assert.equal(
      shares.reduce((sum, { value }) => sum + value, 0),
      views.view(query()).target.sum,
    );
    for (const { value, filter } of shares) assert.equal(views.view(query([filter!])).target.sum, value);
  });
});

test("the summary is in sentences, whatever the profile", () => {
  each((file) => {
    const text = (view: View) =>
      summary(view)
        .map((sentence) => sentence.map((piece) => (typeof piece === "string" ? piece : piece.name)).join(""))
        .join("\n");
    assert.match(text(new Views(file).view(query())), /[nµ]s of wall time.*\n.*m\d runs longest itself/);
    assert.match(text(new Views(file).view(query([{ kind: "focus", text: "nowhere" }]))), /Nothing passes the filters/);
  });
});

test("filters become flags for a shell", () => {
  const filters: Filter[] = [
    { kind: "focus", text: exactly("A#b?") },
    { kind: "tagfocus", text: "endpoint=GET /it's" },
    { kind: "pid", text: "42" },
  ];
  assert.equal(asFlags(filters), "--focus='^A#b\\?$' --tagfocus='endpoint=GET /it'\\''s' --pid=42");
  assert.match(filterProblem({ kind: "focus", text: "(" }) ?? "", /regular expression/);
  assert.equal(filterProblem({ kind: "tagroot", text: "(" }), null);
  assert.equal(filterProblem({ kind: "hide", text: "" }), "is empty");
});
