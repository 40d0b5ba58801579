import assert from "node:assert/strict";
import { test } from "node:test";
import { Session } from "../src/app/session.ts";
import { fromHash, INITIAL, toHash } from "../src/app/state.ts";
import { decode } from "../src/format/decode.ts";
import { DataError } from "../src/format/error.ts";
import type { Filter } from "../src/model/filters.ts";
import { asFlags, filterProblem } from "../src/model/filters.ts";
import { Views } from "../src/model/view.ts";
import { bootJson, shopBoot } from "./support/boot.ts";
import { type Draft, encode } from "./support/encode.ts";
import { each, query } from "./support/small.ts";

const MS = 1e6;
const sessionOf = (draft: Draft) => new Session(decode(encode(draft)));
const state = (filters: Filter[] = []) => ({ ...INITIAL, filters });
const boot = (text: string): Filter => ({ kind: "boot", text });

test("files have their own time, their load, and that of what they load", () => {
  const told = bootJson(sessionOf(shopBoot()).boot(state()));
  assert.deepEqual(
    told.files.map(({ kind, short_path, line, own, load, total, from }) => [
      ...[kind, short_path, line, own / MS, load / MS, total / MS],
      from && `${from.short_path}:${from.line}`,
    ]),
    [
      ["file", "rack-3.1.8/lib/rack.rb", 0, 20, 13, 47, "lib/<b>shop</b>.rb:2"],
      ["file", "lib/<b>shop</b>.rb", 0, 16, 0, 63, "bin/app:3"],
      ["file", "<ruby>/set.rb", 0, 8, 6, 14, "rack-3.1.8/lib/rack.rb:9"],
      ["line", "bin/app", 8, 0, 7, 7, null],
      ["file", "bin/app", 0, 5, 0, 75, null],
    ],
  );
  assert.deepEqual([told.total / MS, told.program / MS], [75, 5]);
  assert.deepEqual(
    told.gems.map(({ name, files, self, total }) => [name, files, self / MS, total / MS]),
    [
      ["rack-3.1.8", 1, 33, 47],
      ["(application)", 2, 28, 75],
      ["(standard library 3.4.0)", 1, 14, 14],
    ],
  );
  assert.deepEqual(
    told.initializers.map(({ name, line, total }) => [name, line, total / MS]),
    [
      ["block in <class:Railtie>", 40, 3],
      ["block in <class:Railtie>", 60, 2],
    ],
  );
});

test("the tree has each file below the one that loads it, and adds up", () => {
  const tree = sessionOf(shopBoot()).boot(state()).branches();
  const lines: string[] = [];
  const show = (row: number) => {
    if (row > 0) lines.push(`${tree.depth[row]} ${tree.name[row]} ${tree.total[row] / MS} ${tree.self[row] / MS}`);
    for (const kid of tree.children(row)) show(kid);
  };
  show(0);
  assert.deepEqual(lines, [
    "1 bin/app 75 5",
    "2 lib/<b>shop</b>.rb 63 15",
    "3 rack-3.1.8/lib/rack.rb 47 33",
    "4 <ruby>/set.rb 14 14",
    // It loads itself.
    "3 lib/<b>shop</b>.rb 1 1",
    "2 bin/app:8 7 7",
  ]);
});

test("states and objects are those of the loading alone", () => {
  const session = sessionOf(shopBoot());
  const [{ values }] = session.file.profiles;
  const found = session.boot(state());
  const { all, states } = found.sums(values[0]);
  assert.deepEqual([all, states.get("running"), states.get("blocked")], [75 * MS, 66 * MS, 9 * MS]);
  assert.equal(found.sums(values[1]).all, 610);
});

test("a filter keeps a part of the boot alone, and the tab's numbers stay those of all", () => {
  const session = sessionOf(shopBoot());
  const sum = (text: string) => session.view(state([boot(text)])).target.sum / MS;
  const found = session.boot(state());
  for (const { filter, total } of [...found.files(), ...found.gems(), ...found.initializers()])
    assert.equal(sum(filter), total / MS, filter);
  assert.deepEqual(["all", "file lib/none.rb", "line bin/app:8"].map(sum), [75, 0, 7]);
  const kept = state([boot("gem rack-3.1.8"), { kind: "ignore", text: "set" }]);
  assert.equal(session.view(kept).target.sum / MS, 39);
  assert.equal(session.boot(kept).total / MS, 67);
  // Filters that take frames out of the stacks don't take the file away.
  assert.equal(session.view(state([boot("file <ruby>/set.rb"), { kind: "hide", text: "top" }])).target.sum / MS, 14);
});

test("random profiles: what filters keep is what the tables tell", () => {
  each((file, seed) => {
    const names = ["<main>", "Kernel#require", "<top (required)>", "Object#x", "<top (required)>", "Kernel#load", "y"];
    names.forEach((name, frame) => {
      file.frames.name[frame] = name;
    });
    const session = new Session(file);
    const found = session.boot(INITIAL);
    const views = new Views(file);
    const sum = (text: string) => views.view(query([boot(text)])).target.sum;
    for (const { filter, total } of [...found.files(), ...found.gems()])
      assert.equal(sum(filter), total, `${seed} ${filter}`);
    assert.equal(sum("all"), found.total);
    const selves = found.files().reduce((all, { self }) => all + self, 0);
    assert.equal(selves, found.total, `${seed}`);
    assert.equal(
      found.gems().reduce((all, { self }) => all + self, 0),
      found.total,
    );
  });
});

test("people see a boot where loading takes a part of the time, or where Rails starts", () => {
  const has = (draft: Draft) => sessionOf(draft).hasBoot(INITIAL);
  const without = ({ initializers: _, ...draft }: Draft): Draft => draft;
  assert.equal(has(without(shopBoot())), true);
  // Of more than 2,600 ms, 26 ms are no longer a part worth a tab.
  assert.equal(has(without(shopBoot({ serving: 2_500 }))), true);
  assert.equal(has(without(shopBoot({ serving: 2_600 }))), false);
  assert.equal(has(shopBoot({ serving: 60_000 })), true);
  const nothing = shopBoot();
  nothing.profiles[0].rows = nothing.profiles[0].rows.filter(({ node }) => node === 12);
  assert.equal(has(nothing), false);
  // A trace has calls in place of samples.
  const types = ["wall", "calls", "block_calls"].map((name) => ({
    name,
    unit: name === "wall" ? "nanoseconds" : "count",
  }));
  const [profile] = shopBoot().profiles;
  const rows = profile.rows.map((row) => ({ ...row, values: [row.values[0], 1, 1] }));
  assert.equal(has({ ...shopBoot(), valueTypes: types, profiles: [{ ...profile, rows }] }), false);
});

test("the URL has the filter, the command has no option for it, and other texts are refused", () => {
  const filters = [boot("file lib/<b>shop</b>.rb"), { kind: "focus", text: "Shop" } as const];
  assert.deepEqual(fromHash(toHash({ ...INITIAL, filters }, INITIAL), INITIAL).filters, filters);
  assert.equal(asFlags(filters), "--focus=Shop");
  const problem = (text: string) => filterProblem(boot(text));
  assert.deepEqual([problem("all"), problem(`file ${"a".repeat(500)}`), problem("line (RUBYOPT)")], [null, null, null]);
  for (const text of ["", "everything", "file", "gem ", `file ${"a".repeat(6_000)}`]) assert.ok(problem(text), text);
});

test("initializers that don't fit the tree are refused in words", () => {
  const cases: [string, string, Uint8Array, number][][] = [
    [["initializers/node", "delta", Uint8Array.of(2 * 16), 1]],
    [
      ["initializers/node", "delta", Uint8Array.of(2), 1],
      ["initializers/line", "uleb", Uint8Array.of(1, 2), 2],
    ],
  ];
  const { initializers: _, ...draft } = shopBoot();
  for (const columns of cases) assert.throws(() => decode(encode(draft, { columns })), DataError);
});
