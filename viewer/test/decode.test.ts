import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { decode, latencyKey } from "../src/format/decode.ts";
import { decompress, fromBase64 } from "../src/format/envelope.ts";
import { DataError } from "../src/format/error.ts";
import { type Draft, encode, toBase64 } from "./support/encode.ts";
import { generateStacks, generateTree, random } from "./support/generate.ts";

const SMALL: Draft = {
  valueTypes: [
    { name: "samples", unit: "count" },
    { name: "cpu", unit: "nanoseconds" },
  ],
  defaultType: 1,
  states: [{ name: "running" }, { name: "wait", tag: ["%GVL", "wait"] }],
  categories: ["other", "app"],
  frames: [
    { name: "main", file: "a.rb", line: 1, category: 1, path: "/srv/a.rb" },
    { name: "été ☃ 🎉", library: "json" },
  ],
  nodes: [
    { parent: 0, frame: 0, line: 3 },
    { parent: 1, frame: 1, line: 4 },
    { parent: 0, frame: 1 },
  ],
  labelSets: [
    [],
    [
      ["request", "1"],
      ["%pid", "42"],
    ],
  ],
  threads: [
    { number: 0, name: "" },
    { number: 1, name: "main" },
  ],
  sources: [{ file: "a.rb", text: "puts 1\n" }],
  profiles: [
    {
      meta: {
        title: "t",
        program: "a.rb",
        losses: [{ counter: "dropped_samples", value: 2, text: "2 samples were dropped" }],
      },
      rows: [
        { node: 2, thread: 1, labelSet: 1, state: 1, values: [1, 5] },
        { node: 1, values: [2, -7] },
      ],
    },
    { rows: [{ node: 3, values: [1, 1] }] },
  ],
  diff: { base: 0, target: 1, scale: 0.5, normalised: "total" },
};

test("how long calls took is known by name and file", () => {
  const total = { name: "Cart#total", file: "cart.rb", calls: 9, p50: 1_000, p99: 70_000, max: 5_000_000_000 };
  const [first, second] = SMALL.profiles;
  const { profiles } = decode(encode({ ...SMALL, profiles: [first, { ...second, latencies: [total] }] }));
  assert.equal(profiles[0].latencies.size, 0);
  const { calls, p50, p99, max } = total;
  assert.deepEqual(profiles[1].latencies.get(latencyKey("Cart#total", "cart.rb")), { calls, p50, p99, max });
});

test("what was written is read", () => {
  const file = decode(encode(SMALL));
  assert.deepEqual(file.frames.name, ["main", "été ☃ 🎉"]);
  assert.deepEqual(file.frames.library, ["", "json"]);
  assert.deepEqual(file.frames.file, ["a.rb", ""]);
  assert.deepEqual(file.frames.path, ["/srv/a.rb", ""]);
  assert.deepEqual([...file.frames.category], [1, 0]);
  assert.deepEqual([...file.nodes.parent], [0, 0, 1, 0]);
  assert.deepEqual([...file.nodes.line], [0, 3, 4, 0]);
  assert.deepEqual(file.labelSets, SMALL.labelSets);
  assert.deepEqual(file.threads, SMALL.threads);
  assert.deepEqual(file.states, [
    { name: "running", tag: null },
    { name: "wait", tag: ["%GVL", "wait"] },
  ]);
  assert.equal(file.sources.get("a.rb"), "puts 1\n");
  assert.deepEqual([...file.profiles[0].node], [2, 1]);
  assert.deepEqual([...file.profiles[0].values[1]!], [5, -7]);
  assert.deepEqual([...file.profiles[0].labelSet], [1, 0]);
  assert.equal(file.profiles[0].meta.losses[0].text, "2 samples were dropped");
  assert.equal(file.profiles[1].meta.durationNs, null);
  const changes = file.valueTypes.map(() => null);
  assert.deepEqual(file.diff, { base: 0, target: 1, scale: 0.5, normalised: "total", by: "self", changes });
  assert.deepEqual(file.changes, changes);
});

/** SMALL with a table of changes for its first value type: one row, of the strings 1 and 2. */
function withChanges(verdict: number, total: object = {}): Uint8Array {
  const bytes = (...numbers: number[]) => new Uint8Array(numbers);
  const totals = [{ runs: [5, 3], base: 10, target: 20, verdict: 2, ...total }];
  return encode(SMALL, {
    header: { diff: { base: 0, target: 1, by: "total", changes: totals } },
    columns: [
      ["changes/0/name", "uleb", bytes(1), 1],
      ["changes/0/target", "sleb", bytes(14), 1],
      ["changes/0/verdict", "uleb", bytes(verdict), 1],
    ],
  });
}

test("what rperf diff says of methods is read, and nothing is made of what it doesn't say", () => {
  const file = decode(withChanges(3));
  assert.deepEqual(file.diff?.changes[0], { runs: [5, 3], before: 10, after: 20, verdict: "more" });
  assert.equal(file.diff?.by, "total");
  assert.equal(file.changes[0]?.length, 1);
  const [{ file: path, before, after, verdict }] = file.changes[0]!;
  assert.deepEqual([path, before, after, verdict], ["", 0, 7, "less"]);
  for (const total of [{ verdict: 9 }, { runs: [0, 1] }, { runs: 5 }, { base: "x" }, { target: null }]) {
    assert.equal(decode(withChanges(3, total)).changes[0], null);
  }
  const totals = {
    header: { diff: { base: 0, target: 1, changes: [{ runs: [1, 1], base: 1, target: 1, verdict: 1 }] } },
  };
  assert.equal(decode(encode(SMALL, totals)).changes[0], null, "without the table");
  refused(withChanges(4), /changes\/0\/verdict points to an entry that isn't there/);
});

test("values of 64 bits are read, exactly up to 2^53", () => {
  const next = random(3);
  const values: bigint[] = [
    0n,
    -1n,
    1n,
    2n ** 53n,
    -(2n ** 53n),
    2n ** 63n - 1n,
    -(2n ** 63n),
    2n ** 28n - 1n,
    2n ** 56n,
  ];
  for (let i = 0; i < 2000; i++) {
    const size = BigInt(Math.floor(next() * 54));
    values.push((next() < 0.5 ? -1n : 1n) * (BigInt(Math.floor(next() * 2 ** 53)) >> size));
  }
  const rows = values.map((value) => ({ node: 1, values: [value] }));
  const draft = { ...SMALL, valueTypes: [{ name: "v", unit: "count" }], profiles: [{ rows }], diff: undefined };
  assert.deepEqual([...decode(encode(draft)).profiles[0].values[0]!], values.map(Number));
});

test("unknown columns, encodings and keys are skipped, missing columns are 0", () => {
  const extra = new Uint8Array([9, 9, 9]);
  const columns: [string, string, Uint8Array, number][] = [
    ["times/start", "uleb", extra, 3],
    ["frames/colour", "brotli", extra, 7],
  ];
  assert.equal(decode(encode(SMALL, { header: { future: [1] }, columns })).frames.name.length, 2);
  const renamed = Buffer.from(encode(SMALL)).toString("latin1").replace("frames/line", "frames/lime");
  assert.deepEqual([...decode(Buffer.from(renamed, "latin1")).frames.line], [0, 0]);
});

test("a generated profile survives the whole way through base64 and gzip", async () => {
  for (const draft of [generateTree({ nodes: 2000 }), generateStacks({ stacks: 300 })]) {
    const file = decode(await decompress(fromBase64(toBase64(encode(draft)))));
    assert.deepEqual(
      [...file.nodes.frame].slice(1),
      draft.nodes.map((node) => node.frame),
    );
    assert.deepEqual(
      [...file.nodes.parent].slice(1),
      draft.nodes.map((node) => node.parent),
    );
    assert.deepEqual(
      [...file.profiles[0].values[1]!],
      draft.profiles[0].rows.map((row) => row.values[1]),
    );
  }
});

test("invalid UTF-8 is shown as a replacement character", () => {
  const bytes = Buffer.from(encode({ ...SMALL, frames: [{ name: "abc" }, { name: "xyz" }] }));
  bytes[bytes.lastIndexOf("xyz")] = 0xff;
  assert.deepEqual(decode(bytes).frames.name, ["abc", "\ufffdyz"]);
});

const refused = (bytes: Uint8Array, message: RegExp) =>
  assert.throws(
    () => decode(bytes),
    (error: Error) => error instanceof DataError && message.test(error.message),
  );

test("what is not a profile, or of another version, is refused in words", () => {
  refused(new Uint8Array(0), /doesn't begin with RPV1/);
  refused(Buffer.from("RPV2....{}"), /doesn't begin with RPV1/);
  refused(encode(SMALL, { header: { version: 2 } }), /version 2/);
  refused(encode(SMALL, { header: { value_types: [] } }), /no value types/);
  refused(encode(SMALL, { header: { profiles: [] } }), /no profile/);
  refused(encode(SMALL, { header: { diff: { base: 0, target: 9 } } }), /isn't there/);
});

test("indexes out of range are refused", () => {
  refused(encode({ ...SMALL, nodes: [{ parent: 0, frame: 7 }] }), /callees\/frame points to an entry that isn't there/);
  refused(encode({ ...SMALL, nodes: [{ parent: 1, frame: 0 }] }), /nodes\/parent names a parent/);
  refused(encode({ ...SMALL, nodes: [{ parent: -1, frame: 0 }] }), /nodes\/parent names a parent/);
  refused(
    encode({ ...SMALL, diff: undefined, profiles: [{ rows: [{ node: 9, values: [1, 1] }] }] }),
    /profiles\/0\/node points/,
  );
  refused(
    encode({ ...SMALL, diff: undefined, profiles: [{ rows: [{ node: 1, state: 5, values: [1, 1] }] }] }),
    /profiles\/0\/state/,
  );
});

test("damaged files are refused with a sentence, whatever the damage", () => {
  const whole = encode(SMALL);
  const next = random(7);
  for (let round = 0; round < 3000; round++) {
    const bytes = Uint8Array.from(
      whole.subarray(0, round % 3 === 0 ? Math.floor(next() * whole.length) : whole.length),
    );
    for (let flips = Math.floor(next() * 4); flips >= 0; flips--)
      bytes[Math.floor(next() * bytes.length)] ^= 1 << Math.floor(next() * 8);
    try {
      decode(bytes);
    } catch (error) {
      assert.ok(error instanceof DataError, `${String(error)}`);
    }
  }
});

interface Entry {
  name: string;
  encoding: string;
  offset: number;
  length: number;
  count: number;
}

/** The file with another directory of columns. */
function withColumns(bytes: Uint8Array, change: (columns: Entry[]) => Entry[]): Buffer {
  const whole = Buffer.from(bytes);
  const end = 8 + whole.readUInt32LE(4);
  const header = JSON.parse(whole.subarray(8, end).toString("utf8"));
  const json = Buffer.from(JSON.stringify({ ...header, columns: change(header.columns) }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  return Buffer.concat([whole.subarray(0, 4), length, json, whole.subarray(end)]);
}

test("a small file can't ask for much memory", () => {
  for (const column of ["sources/file", "profiles/0/node", "nodes/parent", "frames/name", "threads/number"]) {
    for (const count of [1e9, 2 ** 32, -1, 0.5, 1e300]) {
      const bytes = withColumns(encode(SMALL), (columns) =>
        columns
          // For a column that is missing zeros would be made.
          .filter(({ name }) => name !== "sources/text")
          .map((entry) => (entry.name === column ? { ...entry, count } : entry)),
      );
      refused(bytes, /is shorter than its numbers/);
    }
  }
  const many = Array.from({ length: 101 }, () => ({ name: "cpu", unit: "ns" }));
  refused(encode(SMALL, { header: { value_types: many, profiles: many, diff: undefined } }), /too many columns/);
});

test("columns that share bytes are refused", () => {
  const zeros = new Uint8Array(1000);
  const extra = encode(SMALL, { columns: [["zeros", "bytes", zeros, zeros.length]] });
  const shared = withColumns(extra, (columns) => {
    const { offset } = columns.find(({ name }) => name === "zeros") as Entry;
    // Nodes, threads and so on with number 0 are all there.
    return columns.map((entry) =>
      entry.name.startsWith("profiles/") ? { ...entry, offset, length: zeros.length, count: zeros.length } : entry,
    );
  });
  refused(shared, /overlaps others/);
});

test("a broken envelope is refused with a sentence", async () => {
  assert.throws(() => fromBase64("§§§"), DataError);
  const gzip = gzipSync(encode(SMALL));
  await assert.rejects(decompress(Uint8Array.from(gzip.subarray(0, gzip.length - 9))), DataError);
});
