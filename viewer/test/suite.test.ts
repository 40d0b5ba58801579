import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "../src/format/decode.ts";
import { DataError } from "../src/format/error.ts";
import { statesOf, testNote, testTitle, withAllTests, withTest } from "../src/model/suite.ts";
import { Views } from "../src/model/view.ts";
import { encode } from "./support/encode.ts";
import { query } from "./support/small.ts";
import { shopSuite, shopTests } from "./support/suite.ts";

const MS = 1e6;

test("tests that were written are read, and only where there are any", () => {
  const draft = shopTests();
  const { profiles } = decode(encode({ ...draft, profiles: [{ rows: [] }, ...draft.profiles] }));
  assert.deepEqual([profiles[0].suite.isThere, profiles[0].suite.suite()], [false, null]);
  assert.deepEqual([profiles[1].suite.isThere, profiles[1].suite.suite()], [true, shopSuite()]);
});

test("tests are told by title, id and file, each once", () => {
  const { tests, total } = shopSuite();
  assert.deepEqual(
    tests.map((it) => [testTitle(it), testNote(it)]),
    [
      ["Cart waits", "spec/cart_spec.rb[1:2]"],
      ["Cart <b>adds</b>", "spec/cart_spec.rb[1:1]"],
      ["OrderTest#test_total", "spec/orders_spec.rb"],
      ["(further tests)", "spec/orders_spec.rb"],
    ],
  );
  const titles = (suspended: number) => statesOf({ ...total, suspended }).map(({ title }) => title);
  assert.deepEqual(titles(0), ["running", "GVL wait", "blocked", "GC"]);
  assert.deepEqual(titles(1).at(-1), "suspended");
});

test("the filter of a test keeps its samples alone, and takes the place of another one's", () => {
  const views = new Views(decode(encode(shopTests())));
  const sum = (filters: ReturnType<typeof withTest>) => views.view(query(filters)).target.sum / MS;
  const one = withTest([{ kind: "focus", text: "Cart" }], "example", "spec/cart_spec.rb[1:2]");
  assert.equal(sum(one), 59);
  const file = withTest(one, "group", "spec/cart_spec.rb");
  assert.deepEqual([file.length, sum(file)], [2, 65]);
  const all = withAllTests(file);
  assert.deepEqual([all.length, sum(all)], [3, 59]);
  assert.deepEqual(withAllTests(all), all);
  assert.deepEqual(withTest(all, "example", "spec/cart_spec.rb[1:2]"), one);
});

test("a table of tests that doesn't fit together is refused in words", () => {
  const whole = shopTests();
  const cases: [string, string, Uint8Array, number][] = [
    ["tests/0/wall", "sleb", Uint8Array.of(2), 1],
    ["tests/0/file", "uleb", Uint8Array.of(1, 1, 1, 0x7f), 4],
    ["suite/0/wall", "sleb", Uint8Array.of(2, 2), 2],
    ["test_files/0/hooks", "uleb", Uint8Array.of(2, 2), 2],
    ["factories/0/name", "uleb", new Uint8Array((1 << 14) + 1), (1 << 14) + 1],
  ];
  for (const column of cases) assert.throws(() => decode(encode(whole, { columns: [column] })), DataError, column[0]);
  // Columns that aren't there are zeros, and those of another version are left alone.
  const columns: typeof cases = [
    ["suite/0/count", "sleb", Uint8Array.of(2), 1],
    ["suite/0/later", "sleb", Uint8Array.of(2), 1],
    ["tests/0/name", "uleb", Uint8Array.of(0), 1],
  ];
  const [profile] = whole.profiles;
  const suite = decode(encode({ ...whole, profiles: [{ ...profile, suite: undefined }] }, { columns })).profiles[0]
    .suite;
  const found = suite.suite();
  assert.deepEqual([found?.total.count, found?.total.wall, found?.tests[0].title], [1, 0, ""]);
});
