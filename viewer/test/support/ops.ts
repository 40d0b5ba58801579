import type { Op } from "../../src/format/ops.ts";
import type { RequestColumn } from "./requests.ts";

const NUMBERS: [column: string, number: (op: Op) => number][] = [
  ["calls", (it) => it.calls],
  ["requests", (it) => it.requests],
  ["repeated", (it) => it.repeated],
  ["wall", (it) => it.wall],
  ["running", (it) => it.running],
  ["gvl_wait", (it) => it.gvlWait],
  ["blocked", (it) => it.blocked],
  ["gc", (it) => it.gc],
  ["suspended", (it) => it.suspended],
  ["p50", (it) => it.p50],
  ["p99", (it) => it.p99],
  ["max", (it) => it.max],
  ["typical_calls", (it) => it.typical.calls],
  ["typical_wall", (it) => it.typical.wall],
  ["tail_calls", (it) => it.tail.calls],
  ["tail_wall", (it) => it.tail.wall],
  ["objects", (it) => it.objects ?? -1],
];

/** The table of the ops of each endpoint, as docs/internals/viewer-format.md says; nothing without any. */
export function opColumns(profile: number, endpoints: Op[][]): RequestColumn[] {
  const all = endpoints.flat();
  if (all.length === 0) return [];
  const column = (name: string, of: object): RequestColumn => ({ name, numbers: [], signed: false, ...of });
  return [
    column(`requests/${profile}/ops`, { numbers: endpoints.map((ops) => ops.length) }),
    column(`ops/${profile}/name`, { texts: all.map((it) => it.name) }),
    column(`ops/${profile}/method`, { texts: all.map((it) => it.app?.name ?? "") }),
    column(`ops/${profile}/file`, { texts: all.map((it) => it.app?.file ?? "") }),
    column(`ops/${profile}/line`, { numbers: all.map((it) => it.app?.line ?? 0) }),
    ...NUMBERS.map(([name, number]) => column(`ops/${profile}/${name}`, { numbers: all.map(number), signed: true })),
  ];
}

const MS = 1e6;

/** A query for each order, and a server that is slow in the tail. */
export function ordersOps(): Op[] {
  return [
    {
      name: "[HTTP] GET rates.example.com",
      app: null,
      ...{ calls: 25, requests: 25, repeated: 0 },
      ...{ wall: 1_500 * MS, running: 25 * MS, gvlWait: 50 * MS, blocked: 1_400 * MS, gc: 25 * MS, suspended: 0 },
      ...{ p50: 55 * MS, p99: 58 * MS, max: 58 * MS },
      typical: { calls: 0, wall: 0 },
      tail: { calls: 25, wall: 1_500 * MS },
      objects: null,
    },
    {
      name: "[SQL] SELECT * FROM items WHERE id = ?",
      app: { name: "Shop#load", file: "app/shop.rb", line: 18 },
      ...{ calls: 1_125, requests: 225, repeated: 225 },
      ...{ wall: 450 * MS, running: 45 * MS, gvlWait: 0, blocked: 405 * MS, gc: 0, suspended: 0 },
      ...{ p50: 0.36 * MS, p99: 0.4 * MS, max: 0.5 * MS },
      typical: { calls: 500, wall: 200 * MS },
      tail: { calls: 125, wall: 50 * MS },
      objects: 2_250,
    },
  ];
}
