// Boots as files have them, for tests of the tab "Boot".
import type { Boot, Place } from "../../src/model/boot.ts";
import type { Draft } from "./encode.ts";
import { CATEGORIES, STATES } from "./generate.ts";

const MS = 1e6;
const [OTHER, APP, GEM, STDLIB, C] = [0, 1, 2, 3, 4];
const GEMS = "/var/lib/gems/gems";

const FRAMES: Draft["frames"] = [
  { name: "<main>", file: "bin/app", path: "/srv/bin/app", line: 1, category: APP },
  { name: "Kernel#require", file: "<C method>", category: C },
  { name: "<top (required)>", file: "lib/<b>shop</b>.rb", path: "/srv/lib/<b>shop</b>.rb", line: 1, category: APP },
  {
    name: "<top (required)>",
    file: "rack-3.1.8/lib/rack.rb",
    path: `${GEMS}/rack-3.1.8/lib/rack.rb`,
    line: 1,
    category: GEM,
    library: "rack-3.1.8",
  },
  {
    name: "<top (required)>",
    file: "<ruby>/set.rb",
    path: "/usr/lib/ruby/3.4.0/set.rb",
    line: 1,
    category: STDLIB,
  },
  {
    name: "Rails::Initializable::Initializer#run",
    file: "railties-8.0.1/lib/rails/initializable.rb",
    path: `${GEMS}/railties-8.0.1/lib/rails/initializable.rb`,
    category: GEM,
    library: "railties-8.0.1",
  },
  {
    name: "block in <class:Railtie>",
    file: "activerecord-8.0.1/railtie.rb",
    path: `${GEMS}/activerecord-8.0.1/railtie.rb`,
    line: 40,
    category: GEM,
    library: "activerecord-8.0.1",
  },
  { name: "Shop#serve", file: "lib/serve.rb", path: "/srv/lib/serve.rb", line: 4, category: APP },
  { name: "[GVL blocked]", file: "<GVL>", category: OTHER },
];
const [MAIN, REQUIRE, SHOP, RACK, SET, RUN, BLOCK, SERVE, BLOCKED] = FRAMES.keys();

/** A program that loads four files, of which one has no samples of its own, runs two initializers, and then serves. */
export function shopBoot({ serving = 30 } = {}): Draft {
  const nodes = [
    { parent: 0, frame: MAIN, line: 3 },
    { parent: 1, frame: REQUIRE },
    { parent: 2, frame: SHOP, line: 2 },
    { parent: 3, frame: REQUIRE },
    { parent: 4, frame: RACK, line: 9 },
    { parent: 3, frame: SHOP, line: 5 },
    { parent: 5, frame: REQUIRE },
    { parent: 7, frame: SET, line: 1 },
    { parent: 3, frame: RUN, line: 32 },
    { parent: 9, frame: BLOCK, line: 44 },
    { parent: 9, frame: BLOCK, line: 61 },
    { parent: 0, frame: SERVE, line: 5 },
    { parent: 0, frame: MAIN, line: 8 },
    { parent: 13, frame: REQUIRE },
    { parent: 4, frame: BLOCKED },
  ];
  const row = (node: number, ms: number, objects: number, state = 0) => ({ node, state, values: [ms * MS, objects] });
  return {
    valueTypes: [
      { name: "wall", unit: "nanoseconds" },
      { name: "alloc_objects", unit: "count" },
    ],
    states: STATES,
    categories: CATEGORIES,
    frames: FRAMES,
    nodes,
    initializers: [
      { node: 10, line: 40 },
      { node: 11, line: 60 },
    ],
    profiles: [
      {
        meta: { title: "boot", program: "bin/app" },
        rows: [
          row(1, 5, 10),
          row(3, 10, 100),
          row(4, 4, 40),
          row(5, 20, 200),
          row(6, 1, 0),
          row(7, 6, 60),
          row(8, 8, 80),
          row(10, 3, 30),
          row(11, 2, 20),
          row(12, serving, 1_000),
          row(14, 7, 70),
          row(15, 9, 0, 1),
        ],
      },
    ],
  };
}

const placeJson = ({ kind, path, file, line }: Place) => ({ kind, path, short_path: file, line });

/** What the page tells of a boot as `rperf report --boot --format json` has it. */
export function bootJson(boot: Boot) {
  const files = boot.files();
  return {
    total: boot.total,
    program: boot.program,
    row_count: files.length,
    files: files.map(({ place, own, load, total, from }) => ({
      ...placeJson(place),
      own,
      load,
      total,
      from: from && placeJson(from),
    })),
    gems: boot.gems().map(({ name, files, self, total }) => ({ name, files, self, total })),
    initializers: boot.initializers().map(({ name, place, total }) => ({ name, ...placeJson(place), total })),
  };
}
