import {
  CLASSES,
  type LatencyClass,
  type RequestSums,
  type Requests,
  type RequestValues,
} from "../../src/format/requests.ts";
import type { Draft } from "./encode.ts";
import { CATEGORIES, STATES } from "./generate.ts";
import { opColumns, ordersOps } from "./ops.ts";

export interface RequestColumn {
  name: string;
  texts?: string[];
  numbers: number[];
  signed: boolean;
}

const VALUES: [column: string, value: (values: RequestValues) => number][] = [
  ["wall", (it) => it.wall],
  ["running", (it) => it.running],
  ["gvl_wait", (it) => it.gvlWait],
  ["blocked", (it) => it.blocked],
  ["gc", (it) => it.gc],
  ["suspended", (it) => it.suspended],
  ["gvl_blame", (it) => it.gvlBlame],
  ["objects", (it) => it.objects],
];

/** The tables of a profile's requests, as docs/internals/viewer-format.md says. */
export function requestColumns(profile: number, requests: Requests[]): RequestColumn[] {
  if (requests.length === 0) return [];
  const name = (table: string, column: string) => `${table}/${profile}/${column}`;
  const texts = (column: string, texts: string[]) => ({
    name: name("requests", column),
    texts,
    numbers: [],
    signed: false,
  });
  const signed = (table: string, column: string, numbers: number[]) => ({
    name: name(table, column),
    numbers,
    signed: true,
  });
  const classes = requests.flatMap((it) => CLASSES.map((kind) => it.classes[kind]));
  const slowest = requests.flatMap((it) => it.slowest);
  return [
    texts(
      "key",
      requests.map((it) => it.key),
    ),
    texts(
      "name",
      requests.map((it) => it.name),
    ),
    ...(["count", "p50", "p95", "p99", "max"] as const).map((column) =>
      signed(
        "requests",
        column,
        requests.map((it) => it[column]),
      ),
    ),
    { name: name("requests", "slowest"), numbers: requests.map((it) => it.slowest.length), signed: false },
    ...(["count", "alone"] as const).map((column) =>
      signed(
        "request_classes",
        column,
        classes.map((it) => it[column]),
      ),
    ),
    ...VALUES.map(([column, value]) => signed("request_classes", column, classes.map(value))),
    signed(
      "slowest",
      "ended_ms",
      slowest.map((it) => it.endedMs),
    ),
    ...(["session", "number"] as const).map((column, part) =>
      signed(
        "slowest",
        column,
        slowest.map((it) => Number.parseInt(it.id?.split("-")[part] ?? "0", part === 0 ? 16 : 10)),
      ),
    ),
    ...VALUES.map(([column, value]) => signed("slowest", column, slowest.map(value))),
    ...opColumns(
      profile,
      requests.map((it) => it.ops),
    ),
  ];
}

const NOTHING: RequestValues = {
  wall: 0,
  running: 0,
  gvlWait: 0,
  blocked: 0,
  gc: 0,
  suspended: 0,
  gvlBlame: 0,
  objects: 0,
};

/** Requests of an endpoint: so many of each class, and what one of the class took. */
export function requestsOf(
  key: string,
  name: string,
  classes: Partial<Record<LatencyClass, [count: number, each: Partial<RequestValues>]>>,
): Requests {
  const sums = (kind: LatencyClass): RequestSums => {
    const [count, each] = classes[kind] ?? [0, {}];
    const all = Object.entries({ ...NOTHING, ...each }).map(([name, value]) => [name, value * count]);
    return { count, alone: count, ...(Object.fromEntries(all) as unknown as RequestValues) };
  };
  const all = Object.fromEntries(CLASSES.map((kind) => [kind, sums(kind)])) as Requests["classes"];
  const one = (kind: LatencyClass) => classes[kind]?.[1].wall ?? 0;
  return {
    key,
    name,
    count: CLASSES.reduce((sum, kind) => sum + all[kind].count, 0),
    p50: one("typical"),
    p95: one("slow"),
    p99: one("tail"),
    max: one("tail") || one("first"),
    classes: all,
    slowest: [{ ...NOTHING, ...(classes.tail ?? classes.first)?.[1], endedMs: 1_790_000_000_000, id: "0000000f-12" }],
    ops: [],
  };
}

const MS = 1e6;

/**
 * A shop whose slow orders are blocked by a query, and whose carts wait for a job that has the GVL. All numbers are whole
 * milliseconds; of nothing else there are samples.
 */
export function slowShop(): Draft {
  const frames: Draft["frames"] = [
    { name: "Puma::Server#run", file: "gems/puma/server.rb", line: 1, category: 2, library: "puma" },
    { name: "Shop#load", file: "app/shop.rb", line: 16, category: 1, path: "/srv/app/shop.rb" },
    { name: "Kernel#sleep", file: "<C method>", category: 4 },
    { name: "[GVL blocked]", file: "<GVL>", category: 5 },
    { name: "[GVL wait]", file: "<GVL>", category: 5 },
    { name: "Hog#spin", file: "app/export.rb", line: 7, category: 1 },
    { name: "[GVL hand-over]", file: "<GVL>", category: 5 },
    { name: "Shop#render", file: "app/shop.rb", line: 3, category: 1 },
    { name: "[GC marking]", file: "<GC>", category: 6 },
  ];
  const nodes = [
    { parent: 0, frame: 0, line: 5 },
    { parent: 1, frame: 1, line: 18 },
    { parent: 2, frame: 2 },
    { parent: 3, frame: 3 },
    { parent: 1, frame: 7, line: 4 },
    { parent: 5, frame: 4 },
    { parent: 0, frame: 5, line: 9 },
    { parent: 0, frame: 6 },
    { parent: 5, frame: 8 },
  ];
  const endpoint = (name: string, kind: string): [string, string][] => [
    ["endpoint", name],
    ["%latency", kind],
  ];
  const labelSets: [string, string][][] = [
    [],
    endpoint("GET /orders, all", "typical"),
    endpoint("GET /orders, all", "tail"),
    endpoint("GET /cart", "typical"),
    endpoint("GET /cart", "tail"),
    [
      ["job", "ExportJob"],
      ["%latency", "first"],
    ],
    endpoint("GET /orders, all", "open"),
    [...endpoint("GET /cart", "tail"), ["job", "ExportJob"]],
  ];
  // Node, label set, state, wall, blame.
  const rows = [
    [4, 1, 1, 100 * 2, 0],
    [4, 2, 1, 25 * 60, 0],
    [5, 1, 0, 100, 0],
    [5, 2, 0, 25 * 4, 0],
    [9, 2, 3, 25, 0],
    [5, 3, 0, 100, 0],
    [5, 4, 0, 25, 0],
    [6, 3, 2, 50, 0],
    [6, 4, 2, 25 * 30, 0],
    [7, 5, 0, 1_000, 700],
    [7, 7, 0, 50, 20],
    [8, 0, 0, 0, 80],
    [3, 6, 0, 7, 0],
  ];
  const orders = requestsOf("endpoint", "GET /orders, all", {
    first: [100, { wall: 3 * MS }],
    typical: [100, { wall: 3 * MS, running: MS, blocked: 2 * MS, objects: 200 }],
    tail: [25, { wall: 65 * MS, running: 4 * MS, blocked: 60 * MS, gc: MS, objects: 1_200 }],
  });
  const cart = requestsOf("endpoint", "GET /cart", {
    typical: [100, { wall: 1.5 * MS, running: MS, gvlWait: 0.5 * MS, objects: 50 }],
    tail: [25, { wall: 31 * MS, running: MS, gvlWait: 30 * MS, objects: 50 }],
  });
  const job = requestsOf("job", "ExportJob", { first: [4, { wall: 250 * MS, running: 250 * MS }] });
  return {
    valueTypes: [
      { name: "samples", unit: "count" },
      { name: "wall", unit: "nanoseconds" },
      { name: "gvl_blame", unit: "nanoseconds" },
    ],
    defaultType: 1,
    states: STATES,
    categories: CATEGORIES,
    frames,
    nodes,
    labelSets,
    threads: [
      { number: 1, name: "puma 1" },
      { number: 0, name: "" },
    ],
    profiles: [
      {
        meta: { title: "app.data", program: "puma" },
        requests: [job, cart, { ...orders, ops: ordersOps() }],
        rows: rows.map(([node, labelSet, state, wall, blame]) => ({
          node,
          labelSet,
          state,
          thread: node === 8 ? 1 : 0,
          values: [1, wall * MS, blame * MS],
        })),
      },
    ],
  };
}

/** The shop, in which it is also known whom carts have waited for: orders and a job mostly, which have these stacks, and
 * others whose stacks are not told. */
export function shopThatWaits(): Draft {
  const draft = slowShop();
  draft.valueTypes.push({ name: "gvl_waited_for", unit: "nanoseconds" });
  const [profile] = draft.profiles;
  for (const row of profile.rows) row.values.push(0);
  // A hundred typical carts, and 25 slow ones: node, label set, and what was waited for, in ms.
  const waits = [
    [7, 3, 100],
    [7, 4, 25 * 10],
    [5, 3, 100],
    [5, 4, 25 * 16],
    [7, 2, 7_000],
    [0, 4, 25 * 4],
  ];
  for (const [node, labelSet, ms] of waits)
    profile.rows.push({ node, labelSet, state: 0, thread: 0, values: [0, 0, 0, ms * MS] });
  return draft;
}
