import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, type ProfileFile } from "../src/format/decode.ts";
import { asFlags, exactly, type Filter, filterProblem } from "../src/model/filters.ts";
import { Views } from "../src/model/view.ts";
import { encode } from "./support/encode.ts";
import { type PlainRow, plainRows, sumBy } from "./support/plain.ts";
import { each, plainStacks, query, randomDraft, treeStacks } from "./support/small.ts";

test("filters of stacks and labels mean what pprof means", () => {
  const uses = (file: ProfileFile, row: PlainRow, regexp: RegExp) =>
    row.frames.some((frame) =>
      [file.frames.name, file.frames.file, file.frames.path].some((texts) => regexp.test(texts[frame])),
    );
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
    [[{ kind: "focus", text: "^/srv/f2" }], (file, row) => uses(file, row, /^\/srv\/f2/)],
    [[{ kind: "focus", text: "^f2" }], (file, row) => uses(file, row, /^f2/)],
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
    const stacks = (rows: PlainRow[]) =>
      plainStacks(
        file,
        rows.filter((row) => row.frames.length > 0),
      );
    const views = new Views(file);
    assert.deepEqual(
      treeStacks(views.view(query([{ kind: "hide", text: "m[135]" }]))),
      stacks(without((f) => !matches(f, /m[135]/))),
    );
    assert.deepEqual(
      treeStacks(views.view(query([{ kind: "show", text: "f1" }]))),
      stacks(without((f) => matches(f, /f1/))),
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
      stacks(focused),
    );
  });
});

test("tagroot and tagleaf put labels above and below the stacks", () => {
  each((file) => {
    const rows = plainRows(file, 0, 1);
    const text = (row: PlainRow, keys: string[]) =>
      keys.map((key) => `;${row.tags.find(([name]) => name === key)?.[1] ?? `(no ${key})`}`).join("");
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

test("the time of idle threads counts only if it is asked for", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const draft = randomDraft(seed);
    for (const { rows } of draft.profiles) for (const [i, row] of rows.entries()) row.idle = i % 3 === 0 ? 1 : 0;
    const file = decode(encode(draft));
    const values = Array.from(file.profiles[0].values[1] ?? []);
    const sum = (keeps: (row: number) => boolean) => values.reduce((all, it, row) => (keeps(row) ? all + it : all), 0);
    const [idle, busy] = [sum((row) => row % 3 === 0), sum((row) => row % 3 !== 0)];
    const views = new Views(file);
    const found = (shows: boolean) => {
      const { target } = views.view(query([], { idle: shows }));
      return [target.sum, target.all, target.idle];
    };
    assert.deepEqual(found(false), [busy, busy, idle]);
    assert.deepEqual(found(true), [busy + idle, busy + idle, idle]);
    assert.deepEqual(found(false), [busy, busy, idle], "what was kept of earlier views");
  }
});
