// Suites as files have them, for tests of the tab "Tests".
import type { Suite, SuiteSums } from "../../src/format/suite.ts";
import type { Draft } from "./encode.ts";
import { CATEGORIES, STATES } from "./generate.ts";
import type { RequestColumn } from "./requests.ts";

const SUMS: [column: string, value: (sums: SuiteSums) => number][] = [
  ["count", (it) => it.count],
  ["wall", (it) => it.wall],
  ["running", (it) => it.running],
  ["gvl_wait", (it) => it.gvlWait],
  ["blocked", (it) => it.blocked],
  ["gc", (it) => it.gc],
  ["suspended", (it) => it.suspended],
  ["objects", (it) => it.objects ?? -1],
];

/** The tables of a profile's tests, as docs/internals/viewer-format.md says. */
export function suiteColumns(profile: number, suite: Suite | undefined): RequestColumn[] {
  if (!suite) return [];
  function table<T extends SuiteSums>(
    name: string,
    rows: T[],
    texts: Record<string, (row: T) => string>,
    numbers: Record<string, (row: T) => number>,
  ): RequestColumn[] {
    const column = (key: string, of: object) => ({
      name: `${name}/${profile}/${key}`,
      numbers: [],
      signed: false,
      ...of,
    });
    return [
      ...Object.entries(texts).map(([key, text]) => column(key, { texts: rows.map(text) })),
      ...[...SUMS, ...Object.entries(numbers)].map(([key, number]) =>
        column(key, { numbers: rows.map(number), signed: true }),
      ),
    ];
  }
  const { total, tests, files, factories } = suite;
  return [
    ...table(
      "suite",
      [total],
      {},
      {
        tests: (it) => it.tests,
        files: (it) => it.files,
        factories: (it) => it.factories,
        without_row: (it) => it.withoutRow,
      },
    ),
    ...table("tests", tests, { name: (it) => it.name, title: (it) => it.title, file: (it) => it.file }, {}),
    ...table("test_files", files, { name: (it) => it.name }, { hooks: (it) => it.hooks }),
    ...table(
      "factories",
      factories,
      { name: (it) => it.name },
      { own: (it) => it.own, top_level: (it) => it.topLevel },
    ),
  ];
}

const MS = 1e6;

/** What something took in so many runs: running, waiting for the GVL, blocked, and in GC, in ms. */
function sums(count: number, [running, gvlWait, blocked, gc]: number[], objects: number | null): SuiteSums {
  const times = { running: running * MS, gvlWait: gvlWait * MS, blocked: blocked * MS, gc: gc * MS };
  return { count, wall: (running + gvlWait + blocked + gc) * MS, ...times, suspended: 0, objects };
}

/** Tests of a shop in two files. One of them has samples, another title has markup, and there are more in the profile. */
export function shopSuite(): Suite {
  const cart = "spec/cart_spec.rb";
  const orders = "spec/orders_spec.rb";
  return {
    total: { ...sums(1_010, [100, 10, 70, 20], 14_300), tests: 1_005, files: 2, factories: 2, withoutRow: 7 },
    tests: [
      { name: `${cart}[1:2]`, title: "Cart waits", file: cart, ...sums(1, [1, 0, 59, 0], 76) },
      { name: `${cart}[1:1]`, title: "Cart <b>adds</b>", file: cart, ...sums(1, [30, 4, 0, 15], 2_962) },
      { name: "OrderTest#test_total", title: "", file: orders, ...sums(1, [5, 0, 0, 0], null) },
      { name: "", title: "", file: orders, ...sums(7, [2, 0, 0, 0], 70) },
    ],
    files: [
      { name: cart, hooks: 6 * MS, ...sums(3, [40, 4, 60, 15], 9_000) },
      { name: orders, hooks: 0, ...sums(1_007, [60, 6, 10, 5], 5_300) },
    ],
    factories: [
      { name: "user (create)", own: 9 * MS, topLevel: 2, ...sums(8, [9, 0, 0, 0], 800) },
      { name: "team (create)", own: 4 * MS, topLevel: 4, ...sums(4, [13, 0, 0, 0], 1_200) },
    ],
  };
}

/** The profile of these: samples of a test and of hooks, and some of no test. */
export function shopTests(): Draft {
  const labels = (example: string): [string, string][] => [
    ["example", example],
    ["group", "spec/cart_spec.rb"],
  ];
  const rows: [node: number, labelSet: number, state: number, ms: number][] = [
    [2, 1, 1, 59],
    [2, 2, 0, 6],
    [1, 0, 0, 100],
  ];
  return {
    valueTypes: [
      { name: "samples", unit: "count" },
      { name: "wall", unit: "nanoseconds" },
    ],
    defaultType: 1,
    states: STATES,
    categories: CATEGORIES,
    frames: [
      {
        name: "RSpec::Core::Runner#run",
        file: "gems/rspec-core/runner.rb",
        line: 1,
        category: 2,
        library: "rspec-core",
      },
      { name: "Cart#wait", file: "app/cart.rb", line: 3, category: 1 },
    ],
    nodes: [
      { parent: 0, frame: 0, line: 5 },
      { parent: 1, frame: 1, line: 4 },
    ],
    labelSets: [[], labels("spec/cart_spec.rb[1:2]"), labels("[hooks]")],
    profiles: [
      {
        meta: { title: "suite.data", program: "rspec" },
        suite: shopSuite(),
        rows: rows.map(([node, labelSet, state, ms]) => ({ node, labelSet, state, values: [1, ms * MS] })),
      },
    ],
  };
}

const told = ({ count, wall, running, gvlWait, blocked, gc, suspended, objects }: SuiteSums) => ({
  count,
  wall_ns: wall,
  running_ns: running,
  gvl_wait_ns: gvlWait,
  blocked_ns: blocked,
  gc_ns: gc,
  suspended_ns: suspended,
  objects,
});

/** What the page tells, in the form of `rperf report --tests --format json`, which has the gems, too. */
export function suiteJson({ total, tests, files, factories }: Suite) {
  return {
    total: told(total),
    row_count: total.tests,
    without_row: total.withoutRow,
    examples: tests.map((it) => ({ name: it.name, title: it.title, file: it.file, ...told(it) })),
    files: files.map((it) => ({ name: it.name, hooks_ns: it.hooks, ...told(it) })),
    factories: factories.map((it) => ({ name: it.name, own_ns: it.own, top_level: it.topLevel, ...told(it) })),
  };
}
