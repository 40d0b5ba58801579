import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "../src/format/decode.ts";
import { DataError } from "../src/format/error.ts";
import { filterProblem, labelIs, rowFilter } from "../src/model/filters.ts";
import { groupView } from "../src/model/groups.ts";
import { opMeans, opsByTime, ownTime } from "../src/model/ops.ts";
import { placeWords } from "../src/model/places.ts";
import {
  allTimes,
  hasEnough,
  holderShare,
  PARTS,
  partShare,
  shownName,
  unknownShare,
  why,
} from "../src/model/requests.ts";
import { stateShares } from "../src/model/summary.ts";
import { Views } from "../src/model/view.ts";
import { encode } from "./support/encode.ts";
import { CATEGORIES } from "./support/generate.ts";
import { shopThatWaits, slowShop } from "./support/requests.ts";
import { query } from "./support/small.ts";

const MS = 1e6;
const file = () => decode(encode(slowShop()));
const find = (name: string) => {
  const shop = file();
  const requests = shop.profiles[0].requests.all().find((it) => it.name === name);
  assert.ok(requests);
  return { shop, requests };
};

test("requests that were written are read, and only where there are any", () => {
  const draft = slowShop();
  const { profiles } = decode(encode({ ...draft, profiles: [{ rows: [] }, ...draft.profiles] }));
  assert.deepEqual(profiles[0].requests.all(), []);
  assert.equal(profiles[0].requests.length, 0);
  assert.deepEqual(profiles[1].requests.all(), draft.profiles[0].requests);
});

test("endpoints are in the order of what their tail costs, with shares of the difference by state", () => {
  const all = allTimes(file().profiles[0].requests.all());
  assert.deepEqual(
    all.map(({ requests, excess }) => [shownName(requests), excess / MS]),
    [
      ["GET /orders, all", 62],
      ["GET /cart", 29.5],
      ["job=ExportJob", 0],
    ],
  );
  const shares = (row: number) => PARTS.map((part) => Math.round(100 * partShare(all[row], part)));
  assert.deepEqual(shares(0), [5, 0, 94, 2, 0]);
  assert.deepEqual(shares(1), [0, 100, 0, 0, 0]);
  assert.deepEqual(shares(2), [0, 0, 0, 0, 0]);
  assert.deepEqual(
    all.map(({ requests }) => hasEnough(requests)),
    [true, true, false],
  );
});

test("the tail of an endpoint is explained: states, where they grew, and what is open", () => {
  const { shop, requests } = find("GET /orders, all");
  const { times, objects, sites, open } = why(new Views(shop).view(query()), requests);
  assert.deepEqual(times.parts.blocked, { typical: 2 * MS, tail: 60 * MS });
  assert.deepEqual(objects, { typical: 200, tail: 1_200 });
  assert.equal(open, 7 * MS);
  assert.deepEqual(sites.blocked, [{ method: 2, app: 1, line: 18, means: { typical: 2 * MS, tail: 60 * MS } }]);
  assert.deepEqual(placeWords(shop, sites.blocked[0]), { name: "Kernel#sleep, in Shop#load", at: "app/shop.rb:18" });
  assert.deepEqual(sites.running, [{ method: 7, app: 7, line: 4, means: { typical: MS, tail: 4 * MS } }]);
  assert.deepEqual(placeWords(shop, sites.running[0]), { name: "Shop#render", at: "app/shop.rb:4" });
  assert.deepEqual(sites.gc, [{ method: 7, app: 7, line: 4, means: { typical: 0, tail: MS } }]);
  assert.deepEqual(sites.gvlWait, []);
});

test("who had the GVL is told by label or thread; what nobody had has its own name", () => {
  const { shop, requests } = find("GET /cart");
  const { holders, blame } = why(new Views(shop).view(query()), requests);
  assert.equal(blame, 800 * MS);
  const hog = { method: 5, app: 5, line: 9 };
  assert.deepEqual(holders, [
    { name: "job=ExportJob", label: ["job", "ExportJob"], blame: 700 * MS, means: null, method: 5, app: 5, line: 9 },
    { name: "[GVL hand-over]", label: null, blame: 80 * MS, means: null, method: 6, app: -1, line: 0 },
    { name: "endpoint=GET /cart", label: ["endpoint", "GET /cart"], blame: 20 * MS, means: null, ...hog },
  ]);
  const unmeasured = slowShop();
  unmeasured.valueTypes[2].name = "other";
  const without = decode(encode(unmeasured));
  assert.equal(why(new Views(without).view(query()), requests).holders, null);
});

test("by state, waits for the GVL that nobody is to blame for are no running code", () => {
  const blame = query([], { type: 2 });
  const view = new Views(file()).view(blame);
  const { name, total } = groupView(view, "state");
  const sums = name.map((it, i) => [it, total[i] / MS]).filter(([, ms]) => ms);
  const expected = [
    ["running", 720],
    ["GVL hand-over", 80],
  ];
  assert.deepEqual(sums, expected);
  const shares = stateShares(view);
  assert.deepEqual(
    shares.filter((it) => it.value > 0).map((it) => [it.name, it.value / MS]),
    expected,
  );
  const { filter } = shares.find((it) => it.name === "GVL hand-over") ?? {};
  assert.ok(filter);
  assert.equal(new Views(file()).view({ ...blame, filters: [filter] }).target.sum, 80 * MS);
});

test("all who had the GVL are known, told or not", () => {
  const draft = shopThatWaits();
  const [profile] = draft.profiles;
  const { labelSets } = draft;
  assert.ok(labelSets);
  for (const [name, ms] of [
    ["a", 0.8],
    ["b", 0.7],
  ] as const) {
    labelSets.push([["job", name]]);
    const frame = draft.frames.push({ name, file: "app/job.rb", category: 1 }) - 1;
    const node = draft.nodes.push({ parent: 0, frame, line: 1 });
    const row = (labelSet: number, values: number[]) =>
      profile.rows.push({ node, labelSet, state: 0, thread: 0, values });
    row(labelSets.length - 1, [1, MS, MS, 0]);
    row(4, [0, 0, 0, 25 * ms * MS]);
  }
  const shop = decode(encode(draft));
  const requests = shop.profiles[0].requests.all().find((it) => it.name === "GET /cart");
  assert.ok(requests);
  const found = why(new Views(shop).view(query()), requests);
  assert.equal(found.holders?.length, 3);
  assert.equal(unknownShare(found)?.toFixed(6), (4 / 29.5).toFixed(6));
});

test("slow requests are told whom they have waited for, if that was measured", () => {
  const shop = decode(encode(shopThatWaits()));
  const requests = shop.profiles[0].requests.all().find((it) => it.name === "GET /cart");
  assert.ok(requests);
  const found = why(new Views(shop).view(query()), requests);
  const [first, second] = found.holders ?? [];
  // The stack of the second one has no blame: it ran, most of all for orders.
  assert.equal(found.holders?.length, 2);
  assert.deepEqual([first.name, first.means], ["endpoint=GET /orders, all", { typical: MS, tail: 16 * MS }]);
  assert.deepEqual([second.name, second.means], ["job=ExportJob", { typical: MS, tail: 10 * MS }]);
  assert.deepEqual([second.blame, second.app, second.line], [700 * MS, 5, 9]);
  assert.equal(holderShare(found, first), 15 / 29.5);
  // The row without frames is nobody's: of 29.5 ms more, 24 are known.
  assert.deepEqual(unknownShare(found)?.toFixed(6), (5.5 / 29.5).toFixed(6));
  const orders = shop.profiles[0].requests.all().find((it) => it.key === "job");
  assert.ok(orders);
  const nobody = why(new Views(shop).view(query()), orders);
  assert.deepEqual([nobody.holders, unknownShare(nobody)], [[], null]);
  assert.equal(unknownShare(why(new Views(file()).view(query()), requests)), null);
});

test("a holder's method is the innermost one that half of its time is in, and never one of rperf's", () => {
  const draft = slowShop();
  const frame = (name: string, file: string, category: number) => draft.frames.push({ name, file, category }) - 1;
  const app = 1;
  const rperf = CATEGORIES.indexOf("rperf");
  const [run, rows, now, log] = ["run", "rows", "now", "log"].map((it) => frame(`Job#${it}`, "app/job.rb", app));
  const middleware = frame("Rperf::SidekiqMiddleware#call", "rperf/sidekiq.rb", rperf);
  const node = (parent: number, frame: number, line: number) => draft.nodes.push({ parent, frame, line });
  const runs = node(0, run, 1);
  const calls = node(runs, middleware, 2);
  const [own, inNow, inLog] = [node(calls, rows, 11), node(calls, rows, 12), node(calls, rows, 13)];
  const stacks: [number, number][] = [
    [node(inNow, now, 3), 900],
    [own, 600],
    [node(inLog, log, 4), 700],
  ];
  const [profile] = draft.profiles;
  for (const [node, ms] of stacks)
    profile.rows.push({ node, labelSet: 5, state: 0, thread: 0, values: [1, ms * MS, ms * MS] });
  const holder = () => {
    const shop = decode(encode(draft));
    const cart = shop.profiles[0].requests.all().find((it) => it.name === "GET /cart");
    assert.ok(cart);
    const [first] = why(new Views(shop).view(query()), cart).holders ?? [];
    assert.equal(first.name, "job=ExportJob");
    return placeWords(shop, first);
  };
  // The helper has the largest single share, and less than half.
  assert.deepEqual(holder(), { name: "Job#rows", at: "app/job.rb:12" });
  profile.rows.push({ node: stacks[0][0], labelSet: 5, state: 0, thread: 0, values: [1, 0, 3_000 * MS] });
  assert.deepEqual(holder(), { name: "Job#now", at: "app/job.rb:3" });
  profile.rows.push({ node: calls, labelSet: 5, state: 0, thread: 0, values: [1, 0, 30_000 * MS] });
  assert.deepEqual(holder(), { name: "Job#run", at: "app/job.rb:1" });
});

test("filters change the places, and neither times nor objects", () => {
  const { shop, requests } = find("GET /orders, all");
  const views = new Views(shop);
  const all = why(views.view(query()), requests);
  const filtered = why(views.view(query([{ kind: "ignore", text: "^Kernel#sleep$" }])), requests);
  assert.deepEqual([filtered.times, filtered.objects], [all.times, all.objects]);
  assert.deepEqual(filtered.sites, { ...all.sites, blocked: [] });
  assert.equal(filtered.open, 0);
  const none = why(views.view(query([{ kind: "tagfocus", text: "%latency=^fast$" }])), requests);
  assert.deepEqual([none.blame, none.holders], [0, []]);
});

test("ops are in the order of what they take, in one request and in all", () => {
  const { requests } = find("GET /orders, all");
  const [rates, items] = opMeans(requests);
  assert.deepEqual([rates.op.name, rates.op.app], ["[HTTP] GET rates.example.com", null]);
  assert.deepEqual(
    [rates.calls, rates.wall],
    [
      { typical: 0, tail: 1 },
      { typical: 0, tail: 60 * MS },
    ],
  );
  assert.deepEqual(
    [items.calls, items.wall],
    [
      { typical: 5, tail: 5 },
      { typical: 2 * MS, tail: 2 * MS },
    ],
  );
  assert.deepEqual(opsByTime(requests.ops).map(ownTime), [1_500 * MS, 450 * MS]);
  assert.deepEqual(find("GET /cart").requests.ops, []);
});

test("a file without ops, and one that another version has written, is read; one that is damaged isn't", () => {
  const draft = slowShop();
  const [profile] = draft.profiles;
  const without = profile.requests?.map((it) => ({ ...it, ops: [] }));
  const read = decode(encode({ ...draft, profiles: [{ ...profile, requests: without }] }));
  assert.deepEqual(read.profiles[0].requests.all(), without);
  const later: [string, string, Uint8Array, number] = ["ops/0/later", "sleb", new Uint8Array([2, 4]), 2];
  const more = decode(encode(draft, { columns: [later] }));
  assert.deepEqual(more.profiles[0].requests.all(), profile.requests);
  const counts: [string, string, Uint8Array, number] = ["requests/0/ops", "uleb", new Uint8Array([0, 0, 3]), 3];
  assert.throws(() => decode(encode(draft, { columns: [counts] })), DataError);
  const many: [string, string, Uint8Array, number] = ["ops/0/name", "uleb", new Uint8Array(20_000), 20_000];
  assert.throws(() => decode(encode(draft, { columns: [many] })), DataError);
});

test("a job that a request runs is no request of its own", () => {
  const draft = slowShop();
  const [profile] = draft.profiles;
  profile.requests = profile.requests?.map((it) =>
    it.key === "job" ? { ...it, classes: { ...it.classes, typical: it.classes.first, tail: it.classes.first } } : it,
  );
  const shop = decode(encode(draft));
  const job = shop.profiles[0].requests.all()[0];
  const of = () => why(new Views(shop).view(query()), job).sites.running.map(({ means }) => means.tail / MS);
  assert.deepEqual(of(), []);
  shop.labelSets[5] = shop.labelSets[5].map(([key, value]) => [key, key === "%latency" ? "tail" : value]);
  assert.deepEqual(of(), [1_000 / 4]);
});

test("of a part the places are told that grew most, as many as rperf why tells", () => {
  const draft = slowShop();
  for (const [place, ms] of [7, 90, 8, 50, 9].entries()) {
    draft.frames.push({ name: `Shop#step${place}`, file: "app/shop.rb", line: 30 + place, category: 1 });
    draft.nodes.push({ parent: 1, frame: draft.frames.length - 1, line: 30 + place });
    draft.profiles[0].rows.push({ node: draft.nodes.length, labelSet: 2, state: 0, values: [1, ms * 25 * MS, 0] });
  }
  const shop = decode(encode(draft));
  const requests = shop.profiles[0].requests.all().find(({ name }) => name === "GET /orders, all");
  assert.ok(requests);
  const { sites } = why(new Views(shop).view(query()), requests);
  assert.deepEqual(
    sites.running.map(({ line, means }) => [line, means.tail / MS]),
    [
      [31, 90],
      [33, 50],
      [34, 9],
    ],
  );
});

test("a filter for a label's value finds it alone, whatever its name, or the beginning of a long one", () => {
  const { profiles, ...shop } = file();
  const passing = (text: string) => {
    const passes = rowFilter({ profiles, ...shop }, profiles[0], [{ kind: "tagfocus", text }]);
    assert.ok(passes);
    return [...profiles[0].node.keys()].filter(passes);
  };
  const orders = passing(labelIs("endpoint", "GET /orders, all"));
  assert.deepEqual(orders.length, 6);
  assert.deepEqual(passing(labelIs("endpoint", "GET /orders")), []);
  for (const name of ["(a|b)*", "a,b", "[", "\\", "$^", "x=y"]) {
    const text = labelIs("endpoint", name);
    assert.equal(filterProblem({ kind: "tagfocus", text }), null, name);
    assert.ok(new RegExp(text.slice("endpoint=".length)).test(name), name);
  }
  const long = labelIs("endpoint", "é.".repeat(500));
  assert.equal(filterProblem({ kind: "tagfocus", text: long }), null);
  assert.match(long, /^endpoint=\^é\\\.é/);
});

test("a table of requests that doesn't fit together is refused in words", () => {
  const whole = slowShop();
  const uleb = (...numbers: number[]) => Uint8Array.from(numbers);
  const cases: [string, string, Uint8Array, number][] = [
    ["slowest/1/wall", "sleb", uleb(2), 1],
    ["requests/1/slowest", "uleb", uleb(1), 1],
    ["request_classes/1/count", "sleb", uleb(2), 1],
    ["requests/1/key", "uleb", uleb(1, 1), 2],
    ["requests/1/name", "uleb", uleb(0x7f), 1],
    ["requests/1/name", "uleb", new Uint8Array((1 << 14) + 1), (1 << 14) + 1],
  ];
  const [profile] = whole.profiles;
  for (const column of cases) {
    const isName = column[0] === "requests/1/name";
    const name: (typeof cases)[number] = ["requests/1/name", "uleb", uleb(0), 1];
    const bytes = encode(
      { ...whole, profiles: [profile, { rows: [] }] },
      { columns: isName ? [column] : [name, column] },
    );
    assert.throws(() => decode(bytes), DataError, column[0]);
  }
  // Columns that aren't there are zeros.
  const bytes = encode(
    { ...whole, profiles: [profile, { rows: [] }] },
    { columns: [["requests/1/name", "uleb", uleb(0), 1]] },
  );
  const [found] = decode(bytes).profiles[1].requests.all();
  assert.deepEqual([found.key, found.count, found.classes.tail.count, found.slowest], ["", 0, 0, []]);
});
