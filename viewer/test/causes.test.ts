import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "../src/format/decode.ts";
import { hasGrown, mainHolders, mostlyIn, restOfWait } from "../src/model/causes.ts";
import { collectionsOf } from "../src/model/collections.ts";
import { placeWords } from "../src/model/places.ts";
import { why } from "../src/model/requests.ts";
import { Views } from "../src/model/view.ts";
import { type Draft, encode } from "./support/encode.ts";
import { CATEGORIES } from "./support/generate.ts";
import { shopThatWaits, slowShop } from "./support/requests.ts";
import { query } from "./support/small.ts";

const MS = 1e6;

const asked = (draft: Draft, name: string) => {
  const shop = decode(encode(draft));
  const requests = shop.profiles[0].requests.all().find((it) => it.name === name);
  assert.ok(requests);
  return { shop, found: why(new Views(shop).view(query()), requests) };
};

test("a part that grew by less than half a percent of all has no place", () => {
  const draft = slowShop();
  const { classes } = (draft.profiles[0].requests ?? [])[2];
  const grown = (ms: number) => {
    classes.tail.gc = 25 * ms * MS;
    return hasGrown(asked(draft, "GET /orders, all").found, "gc");
  };
  // Of 61 ms that the others grew by.
  assert.deepEqual([grown(0.2), grown(0.4), grown(0)], [false, true, false]);
});

test("most of a part can be in one request of the tail, whose samples say that it is of the tail", () => {
  const draft = slowShop();
  const [, cart] = draft.profiles[0].requests ?? [];
  const [slowest] = cart.slowest;
  const told = () => {
    const { shop, found } = asked(draft, "GET /cart");
    return mostlyIn(shop, found, "gvlWait")?.id;
  };
  // All 25 together wait for 737.5 ms more than typical ones.
  slowest.gvlWait = 400 * MS;
  assert.equal(told(), undefined);
  draft.labelSets?.push([
    ["endpoint", "GET /cart"],
    ["%request", "0000000f-12"],
    ["%latency", "tail"],
  ]);
  assert.equal(told(), "0000000f-12");
  slowest.gvlWait = 369 * MS;
  assert.equal(told(), undefined);
});

test("those are told who kept slow requests waiting, with the share of all others", () => {
  const draft = shopThatWaits();
  const told = () => {
    const { shop, found } = asked(draft, "GET /cart");
    const rest = restOfWait(shop, found).map(([share, words]) => `${(100 * share).toFixed(1)} ${words}`);
    return [mainHolders(shop, found).map(({ name }) => name), rest];
  };
  const both = ["endpoint=GET /orders, all", "job=ExportJob"];
  assert.deepEqual(told(), [both, ["18.6 isn't known"]]);
  // The job has less than half of what orders have.
  for (const row of draft.profiles[0].rows) if (row.values[3] === 250 * MS) row.values[3] = 150 * MS;
  assert.deepEqual(told(), [both.slice(0, 1), ["16.9 by others", "32.2 isn't known"]]);
});

test("what nobody had the GVL for is told where nobody else is known", () => {
  const draft = slowShop();
  const names = () => {
    const { shop, found } = asked(draft, "GET /cart");
    return mainHolders(shop, found).map(({ name }) => name);
  };
  assert.deepEqual(names(), ["job=ExportJob"]);
  for (const row of draft.profiles[0].rows) if (row.values[2] !== 80 * MS) row.values[2] = 0;
  assert.deepEqual(names(), ["[GVL hand-over]"]);
});

test("the time of rperf itself is at no line of the application", () => {
  const draft = slowShop();
  const spin = 7;
  const category = CATEGORIES.indexOf("rperf");
  const frame = draft.frames.push({ name: "Rperf::Native.end_request", file: "<C method>", category }) - 1;
  const ends = draft.nodes.push({ parent: spin, frame });
  const told = () => {
    const { shop, found } = asked(draft, "GET /orders, all");
    return found.sites.running.map((site) => placeWords(shop, site).name);
  };
  const add = (node: number) =>
    draft.profiles[0].rows.push({ node, labelSet: 2, state: 0, thread: 0, values: [1, 500 * MS, 0] });
  add(ends);
  assert.deepEqual(told(), ["Shop#render"]);
  add(spin);
  assert.deepEqual(told(), ["Hog#spin", "Shop#render"]);
});

test("shares of why collections ran are of all that grew, where another cause became less, too", () => {
  const draft = slowShop();
  const sets = draft.labelSets ?? [];
  const add = (kind: string, cause: string, ms: number) => {
    const labelSet =
      sets.push([
        ["endpoint", "GET /orders, all"],
        ["%latency", kind],
        ["%gc", cause],
      ]) - 1;
    draft.profiles[0].rows.push({ node: 9, labelSet, state: 3, thread: 0, values: [1, ms * MS, 0] });
  };
  const told = () => {
    const shop = decode(encode(draft));
    const requests = shop.profiles[0].requests.all().find((it) => it.name === "GET /orders, all");
    assert.ok(requests);
    const view = new Views(shop).view(query());
    return collectionsOf(view, requests).map(({ cause, share }) => [cause, share]);
  };
  // A request of the tail collects 1 ms longer, without a known cause.
  add("tail", "major oldgen", 25 * 3);
  assert.deepEqual(told(), [["major oldgen", 0.75]]);
  add("typical", "minor newobj", 100 * 2);
  add("tail", "minor malloc", 25);
  assert.deepEqual(told(), [
    ["major oldgen", 0.6],
    ["minor malloc", 0.2],
  ]);
});
