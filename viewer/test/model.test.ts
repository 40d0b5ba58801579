import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "../src/format/decode.ts";
import { BoxTree, outermostNodes } from "../src/model/box_tree.ts";
import { changes } from "../src/model/changes.ts";
import { categoryWords, groupView } from "../src/model/groups.ts";
import { fileLines, neighbours } from "../src/model/neighbours.ts";
import { search, searchPattern } from "../src/model/search.ts";
import { stateShares, summary } from "../src/model/summary.ts";
import { type View, Views } from "../src/model/view.ts";
import { encode } from "./support/encode.ts";
import { CATEGORIES } from "./support/generate.ts";
import { type PlainRow, plainRows, sumBy } from "./support/plain.ts";
import { each, query, randomDraft, sums } from "./support/small.ts";

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

test("a label whose value looks like no label is a group of its own", () => {
  const draft = randomDraft(3);
  const labelSets = draft.labelSets?.with(1, [["endpoint", "(none)"]]);
  const file = decode(encode({ ...draft, labelSets }));
  const view = new Views(file).view(query());
  const groups = groupView(view, "label:endpoint");
  const labelled = groups.name.findIndex((name, id) => name === "(none)" && id !== groups.unlabelled);
  const sum = (isOf: (row: PlainRow) => boolean) =>
    plainRows(file, 0, 1)
      .filter(isOf)
      .reduce((total, row) => total + row.value, 0);
  const endpoints = (row: PlainRow) => row.tags.filter(([key]) => key === "endpoint");
  assert.equal(groups.name[groups.unlabelled], "(none)");
  assert.equal(
    groups.total[groups.unlabelled],
    sum((row) => endpoints(row).length === 0),
  );
  assert.equal(
    groups.total[labelled],
    sum((row) => endpoints(row).some(([, value]) => value === "(none)")),
  );
  assert.ok(groups.total[labelled] > 0);
  assert.equal(groupView(view, "method").unlabelled, -1);
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

test("methods that Ruby itself has count for the gem that calls them", () => {
  each((file) => {
    const { category, library, file: path } = file.frames;
    const core = [2, 4];
    category[core[0]] = file.categories.indexOf("c");
    path[core[1]] = "<internal:array>";
    const own = (f: number) => library[f] || `(no gem: ${categoryWords(file.categories[category[f]])})`;
    const gems = ({ frames }: PlainRow) => {
      const found: string[] = [];
      for (const f of frames) found.push((core.includes(f) && found.at(-1)) || own(f));
      return found;
    };
    const rows = plainRows(file, 0, 1);
    const view = new Views(file).view(query());
    const [self, total] = [(row: PlainRow) => gems(row).slice(-1), (row: PlainRow) => new Set(gems(row))].map((key) =>
      sumBy(rows, key, (row) => row.value),
    );
    assert.deepEqual(sums(view, "library", "self"), self);
    assert.deepEqual(sums(view, "library", "total"), total);
  });
});

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
    found.slower.map(({ name, delta, verdict }) => [name, delta, verdict]),
    [["m1", 200e6, "more"]],
  );
  assert.deepEqual(
    found.faster.map(({ name, verdict }) => [name, verdict]),
    [["m2", "noise"]],
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

const MAIN = [{ number: 1, name: "main" }];

/**
 * The text of the summary of a profile with these stacks: frames as `category name`, and the time at their end. They
 * are of these threads in turn.
 */
function summaryOf(stacks: [string, number][], threads = MAIN): string {
  const names = [...new Set(stacks.flatMap(([stack]) => stack.split(" > ")))];
  const frames = names.map((text, i) => {
    const [category, ...name] = text.split(" ");
    return { name: name.join(" "), file: "app.rb", line: i + 1, category: CATEGORIES.indexOf(category) };
  });
  const nodes: { parent: number; frame: number; line: number }[] = [];
  const rows = stacks.map(([stack, value], i) => {
    let node = 0;
    for (const text of stack.split(" > ")) {
      nodes.push({ parent: node, frame: names.indexOf(text), line: 0 });
      node = nodes.length;
    }
    return { node, thread: i % threads.length, labelSet: 0, state: 0, values: [value] };
  });
  const valueTypes = [{ name: "wall", unit: "nanoseconds" }];
  const data = encode({
    valueTypes,
    defaultType: 0,
    states: [{ name: "running" }],
    categories: CATEGORIES,
    frames,
    nodes,
    labelSets: [[]],
    threads,
    profiles: [{ rows }],
  });
  return sentences(new Views(decode(data)).view({ ...query(), type: 0 }));
}

const sentences = (view: View) =>
  summary(view)
    .map((sentence) => sentence.map((piece) => (typeof piece === "string" ? piece : piece.name)).join(""))
    .join("\n");

test("the summary names the method of your code that says something", () => {
  for (const [stacks, expected] of [
    [[["app <main> > app work > c sort", 100]], /your own code, work takes/],
    [[["app <main> > app work > app step > c sort", 100]], /your own code, step takes/],
    [
      [
        ["app <main> > app work > c sort", 98],
        ["app <main> > app setup > c sort", 2],
      ],
      /your own code, work takes/,
    ],
    [
      [
        ["app <main> > app call > app show > c sort", 60],
        ["app <main> > app call > c sort", 40],
      ],
      /your own code, show takes/,
    ],
    [[["app <main> > app block in <main> > c sort", 100]], /your own code, block in <main> \(app.rb\) takes/],
    [[["app <top (required)> > c sort", 100]], /your own code, <top \(required\)> \(app.rb:1\) takes/],
    [
      [
        ["app <main> > c sort", 95],
        ["app <main> > app setup > c sort", 5],
      ],
      /your own code, <main> \(app.rb:1\) takes/,
    ],
  ] as [[string, number][], RegExp][])
    assert.match(summaryOf(stacks), expected);
});

test("the summary names no method of rperf's", () => {
  const text = summaryOf([
    ["app <main> > rperf Rperf.start > rperf Rperf::Ends.install", 60],
    ["app <main> > rperf Rperf::RackMiddleware#call > app show > c sort", 40],
  ]);
  assert.match(text, /sort runs longest itself/);
  assert.match(text, /your own code, show takes/);
  assert.doesNotMatch(text, /Rperf/);
});

test("the summary counts ended threads in one row as no thread", () => {
  const stacks: [string, number][] = ["a", "b", "c"].map((name) => [`app ${name}`, 30]);
  const [two, ended] = [
    { number: 2, name: "" },
    { number: 0, name: "" },
  ];
  assert.doesNotMatch(summaryOf(stacks), /thread/);
  assert.match(summaryOf(stacks, [...MAIN, two]), / of 2 threads together/);
  assert.match(summaryOf(stacks, [...MAIN, two, ended]), / of 2 threads and of ended ones together/);
  assert.match(summaryOf(stacks, [...MAIN, ended]), / of 1 thread and of ended ones together/);
  // A row may have other values only.
  const without: [string, number][] = [...stacks.slice(0, 2), ["app c", 0]];
  assert.match(summaryOf(without, [...MAIN, two, ended]), / of 2 threads together/);
});

test("the summary is in sentences, whatever the profile", () => {
  each((file) => {
    assert.match(sentences(new Views(file).view(query())), /[nµ]s of wall time.*\n.*m\d runs longest itself/);
    assert.match(
      sentences(new Views(file).view(query([{ kind: "focus", text: "nowhere" }]))),
      /Nothing passes the filters/,
    );
  });
});
