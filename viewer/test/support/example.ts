import { type Draft, encode } from "./encode.ts";
import { CATEGORIES, random, STATES } from "./generate.ts";

/** A made-up shop on a web server: readable, with labels, threads, processes, states, sources and two profiles. */
export function example(): Draft {
  const frames: Draft["frames"] = [];
  const frame = (name: string, file: string, line: number, category: number, library = "") => {
    frames.push({ name, file, line, category, library });
    return frames.length - 1;
  };
  const puma = "gems/puma-6.4.2/lib/puma";
  const thread = frame("Puma::ThreadPool#spawn_thread", `${puma}/thread_pool.rb`, 108, 2, "puma-6.4.2");
  const process = frame("Puma::Server#process_client", `${puma}/server.rb`, 420, 2, "puma-6.4.2");
  const rails = frame(
    "ActionController::Metal#dispatch",
    "gems/actionpack-8.0.1/lib/action_controller/metal.rb",
    230,
    2,
    "actionpack-8.0.1",
  );
  const index = frame("OrdersController#index", "app/controllers/orders_controller.rb", 4, 1);
  const show = frame("OrdersController#show", "app/controllers/orders_controller.rb", 15, 1);
  const total = frame("Order#total", "app/models/order.rb", 8, 1);
  const price = frame("LineItem#price", "app/models/line_item.rb", 3, 1);
  const tree = frame("Category#path", "app/models/category.rb", 5, 1);
  const map = frame("Array#map", "<C method>", 0, 4);
  const sum = frame("Array#sum", "<C method>", 0, 4);
  const round = frame("BigDecimal#round", "<C method>", 0, 4);
  const json = frame("JSON.generate", "lib/ruby/3.4.0/json/common.rb", 300, 3, "json");
  const query = frame(
    "ActiveRecord::Relation#load",
    "gems/activerecord-8.0.1/lib/active_record/relation.rb",
    700,
    2,
    "activerecord-8.0.1",
  );
  const exec = frame("PG::Connection#exec_params", "<C method>", 0, 4);
  const leaves = [
    -1,
    frame("[GVL blocked]", "<GVL>", 0, 5),
    frame("[GVL wait]", "<GVL>", 0, 5),
    frame("[GC marking]", "<GC>", 0, 6),
    frame("[GC sweeping]", "<GC>", 0, 6),
  ];
  const nodes: Draft["nodes"] = [];
  const known = new Map<string, number>();
  const node = (path: [number, number][]) =>
    path.reduce((parent, [frame, line]) => {
      const key = `${parent} ${frame} ${line}`;
      let id = known.get(key);
      if (id === undefined) {
        nodes.push({ parent, frame, line });
        id = nodes.length;
        known.set(key, id);
      }
      return id;
    }, 0);
  const top: [number, number][] = [
    [thread, 155],
    [process, 467],
    [rails, 252],
  ];
  const stacks: [[number, number][], number, number, number][] = [
    [[...top, [index, 6], [map, 0], [total, 9], [sum, 0], [price, 4]], 0, 0, 320],
    [[...top, [index, 6], [map, 0], [total, 9], [sum, 0], [price, 5], [round, 0]], 0, 0, 140],
    [[...top, [index, 6], [map, 0], [total, 10]], 0, 0, 60],
    [[...top, [index, 5], [query, 712], [exec, 0]], 1, 0, 410],
    [[...top, [show, 16], [query, 712], [exec, 0]], 1, 1, 230],
    [[...top, [show, 18], [tree, 6], [tree, 6], [tree, 6]], 0, 1, 90],
    [[...top, [show, 18], [tree, 6], [tree, 7]], 0, 1, 40],
    [[...top, [show, 20], [json, 310]], 0, 1, 120],
    [[...top, [index, 7], [json, 310]], 2, 0, 75],
    [[...top, [index, 6], [map, 0], [total, 9]], 3, 0, 45],
    [[...top, [show, 20], [json, 312]], 4, 1, 22],
    [[[thread, 150]], 1, 2, 500],
  ];
  const next = random(11);
  const rows = (slower: number) =>
    stacks.flatMap(([path, state, endpoint, ms]) => {
      const leaf = node(state === 0 ? path : [...path, [leaves[state], 0]]);
      const factor = path.some(([frame]) => frame === price) ? slower : 1;
      return [0, 1, 2].map((worker) => {
        const wall = Math.round((ms * factor * 1e6 * (0.85 + 0.3 * next())) / 3);
        const cpu = state === 1 || state === 2 ? 0 : Math.round(wall * 0.97);
        return {
          node: leaf,
          thread: worker,
          labelSet: 2 * endpoint + (worker % 2),
          state,
          values: [Math.ceil(wall / 1e6), wall, cpu],
        };
      });
    });
  const before = rows(0.4);
  const after = rows(1);
  const endpoints = ["OrdersController#index", "OrdersController#show"];
  const labelSets = [0, 1, 2].flatMap((endpoint) =>
    ["4711", "4712"].map((pid): [string, string][] => [
      ...(endpoint < 2 ? [["endpoint", endpoints[endpoint]] as [string, string]] : []),
      ["%pid", pid],
      ["%process", "puma: cluster worker"],
    ]),
  );
  const source = [
    "class LineItem < ApplicationRecord",
    "  belongs_to :product",
    "  def price",
    "    discount = product.discounts.map(&:rate).max || 0",
    "    (quantity * product.price * (1 - discount)).round(2)",
    "  end",
    "end",
  ];
  return {
    valueTypes: [
      { name: "samples", unit: "count" },
      { name: "wall", unit: "nanoseconds" },
      { name: "cpu", unit: "nanoseconds" },
      { name: "alloc_space", unit: "bytes" },
    ],
    defaultType: 1,
    states: STATES,
    categories: CATEGORIES,
    frames,
    nodes,
    labelSets,
    threads: [1, 2, 3].map((number) => ({ number, name: `puma srv tp 00${number}` })),
    sources: [{ file: "app/models/line_item.rb", text: `${source.join("\n")}\n` }],
    profiles: [
      {
        meta: {
          title: "after.pb.gz",
          program: "puma",
          start_ms: 1_790_000_000_000,
          duration_ns: 690e6,
          frequency: 1000,
          comments: ["ruby 3.4.5, rperf 1.0"],
          losses: [
            { counter: "dropped_samples", value: 3, text: "3 samples (2.9 ms) were dropped: the profile lacks them." },
          ],
        },
        rows: after.map((row) => ({ ...row, values: [...row.values, row.values[0] * 40_000] })),
      },
      {
        meta: { title: "before.pb.gz", program: "puma", duration_ns: 640e6, frequency: 1000 },
        rows: before.map((row) => ({ ...row, values: [...row.values, row.values[0] * 40_000] })),
      },
    ],
  };
}

/** The same as a report of one profile. */
export function exampleReport(): Uint8Array {
  const draft = example();
  return encode({ ...draft, profiles: draft.profiles.slice(0, 1) });
}

/** The same as a diff. */
export function exampleDiff(): Uint8Array {
  return encode({ ...example(), diff: { base: 1, target: 0, scale: 1, normalised: "none" } });
}
