import { random } from "./generate.ts";

/** A row of a heap's tree with all that is below it, in the plainest form. */
export interface Draft {
  name?: string;
  class: string;
  objects: number;
  bytes: number;
  kids?: Draft[];
  rest?: true;
}

type Row = Record<string, unknown>;

const retained = (draft: Draft, key: "objects" | "bytes"): number =>
  (draft.kids ?? []).reduce((sum, kid) => sum + retained(kid, key), draft[key]);

/** The rows of trees in preorder, as `rperf heap --json` writes them. */
export function rows(drafts: Draft[], parent: number | null = null, all: Row[] = []): Row[] {
  const sorted = [...drafts].sort((a, b) => retained(b, "bytes") - retained(a, "bytes"));
  for (const draft of sorted) {
    const { name = "", objects, bytes, kids, rest } = draft;
    const sums = { retained_objects: retained(draft, "objects"), retained_bytes: retained(draft, "bytes") };
    const at = all.push({ parent, name, class: draft.class, objects, bytes, ...sums, ...(rest && { rest }) }) - 1;
    rows(kids ?? [], at, all);
  }
  return all;
}

const KB = 1024;
const MB = 1024 * KB;

/** What the holders of a shop hold. */
export const SHOP: Draft[] = [
  {
    name: "Shop::CARTS",
    class: "Hash",
    objects: 1,
    bytes: 240 * KB,
    kids: [
      {
        class: "Cart",
        objects: 5000,
        bytes: 200_000,
        kids: [
          {
            name: "@items",
            class: "Array",
            objects: 5000,
            bytes: 440_000,
            kids: [
              {
                class: "Item",
                objects: 25_000,
                bytes: 1_000_000,
                kids: [{ name: "@title", class: "String", objects: 25_000, bytes: 48 * MB }],
              },
            ],
          },
        ],
      },
      { class: "String", objects: 4000, bytes: 160_000 },
      { class: "", objects: 320, bytes: 12_800, rest: true },
    ],
  },
  {
    name: 'Thread "worker"[:page]',
    class: "Array",
    objects: 1,
    bytes: 200,
    kids: [{ class: "String", objects: 20, bytes: 5 * MB }],
  },
  {
    name: "class Api @@cache",
    class: "Hash",
    objects: 1,
    bytes: 200 * KB,
    kids: [{ class: "String", objects: 6000, bytes: 3 * MB }],
  },
  {
    name: "classes, modules and the VM",
    class: "",
    objects: 9000,
    bytes: 4 * MB,
    kids: [{ class: "Class", objects: 830, bytes: 392 * KB }],
  },
  { name: "$settings", class: "Settings", objects: 1, bytes: 40 },
];

/** How a site's objects are held. */
const heldBy = (part: number, holder: string, ...steps: [string, string][]) => ({ holder, steps, part });
const place = (method: string, path: string, line: number) => ({ method, path, line });
const GEMS = "/usr/lib/ruby/gems/3.4.0/gems";

const SITES = {
  session_ns: 100e9,
  bytes_per_sample: 65_536,
  lost_bytes: 0,
  samples: 254,
  unreferenced_samples: 112,
  total: { objects: 295_000, bytes: 22_240_000 },
  deviation_bytes: 3_830_000,
  rows: [
    {
      made_in: place("block in Cart#initialize", "/srv/shop/lib/shop.rb", 3),
      called_by: null,
      endpoint: "POST /cart",
      class: "Item",
      samples: 147,
      objects: 240_000,
      bytes: 9_600_000,
      deviation_bytes: 794_000,
      median_age_ns: 91e9,
      median_collections: 31,
      oldest_ns: 99e9,
      held_by: [
        heldBy(0.984, "Shop::CARTS", ["Hash", ""], ["Cart", ""], ["Array", "@items"], ["Item", ""]),
        heldBy(0.016, 'stack of Thread "worker"', ["Item", ""]),
      ],
    },
    {
      made_in: place("JSON.parse", `${GEMS}/json-2.9.1/lib/json/common.rb`, 219),
      called_by: place("Api#get", "/srv/shop/app/api.rb", 9),
      endpoint: "RatesJob",
      class: "String",
      samples: 7,
      objects: 11_472,
      bytes: 6_320_000,
      deviation_bytes: 3_690_000,
      median_age_ns: 4e9,
      median_collections: 1,
      oldest_ns: 90e9,
      held_by: [heldBy(1, "class Api @@cache", ["Hash", ""], ["String", ""])],
    },
    {
      made_in: null,
      called_by: null,
      endpoint: "",
      class: "Array",
      samples: 12,
      objects: 19_685,
      bytes: 3_150_000,
      deviation_bytes: 454_000,
      median_age_ns: 3.2 * 86_400e9,
      median_collections: 900,
      oldest_ns: 4 * 86_400e9,
      held_by: [],
    },
  ],
};

const counts = (objects: number, bytes: number) => ({ objects, bytes });

/** What `rperf heap --json` tells of a shop; `change` is what differs. */
export function shopHeap(change: Row = {}): Row {
  const tree = rows(SHOP);
  const roots = tree.filter(({ parent }) => parent === null) as { retained_objects: number; retained_bytes: number }[];
  const unreferenced = counts(158, 8_900);
  const total = counts(
    roots.reduce((sum, row) => sum + row.retained_objects, unreferenced.objects),
    roots.reduce((sum, row) => sum + row.retained_bytes, unreferenced.bytes),
  );
  const row = (name: string, objects: number, bytes: number, retained_bytes: number) => ({
    name,
    objects,
    bytes,
    retained_bytes,
    unreferenced: name === "String" ? unreferenced : counts(0, 0),
  });
  return {
    version: 1,
    kind: "rperf heap",
    pid: 4711,
    program: "puma 7.1.0 [shop]",
    ruby: "3.4.5",
    time_ns: 1.78e18,
    elapsed_ns: 385_300_000,
    started: 77,
    whole: true,
    total,
    unreferenced,
    references: 204_061,
    classes: [
      row("String", 35_178, 56 * MB, 56 * MB),
      row("Item", 25_000, 1_000_000, 49 * MB),
      row("Array", 5001, 440_200, 55 * MB),
      row("Cart", 5000, 200_000, 50 * MB),
      row("Hash", 2, 440 * KB, 54 * MB),
      row("Settings", 1, 40, 40),
    ],
    holders: [
      {
        name: "Shop::CARTS",
        class: "Hash",
        objects: 64_321,
        retained_bytes: 50 * MB,
        path: [{ class: "Cart", name: "", objects: 5000, retained_bytes: 49 * MB }],
      },
    ],
    sites: SITES,
    paths: null,
    tree,
    ...change,
  };
}

/** The same with --class Item. */
export const itemHeap = () =>
  shopHeap({
    sites: { ...SITES, of_class: "Item", rows: SITES.rows.slice(0, 1) },
    paths: [
      {
        holder: "Shop::CARTS",
        steps: [
          ["Hash", ""],
          ["Cart", ""],
          ["Array", "@items"],
          ["Item", ""],
        ],
        objects: 24_000,
        bytes: 960_000,
        retained_bytes: 48 * MB,
      },
      {
        holder: 'stack of Thread "worker"',
        steps: [["Item", ""]],
        objects: 1000,
        bytes: 40_000,
        retained_bytes: 2 * MB,
      },
    ],
  });

/** The same with holders that are part of others: one of CARTS, and one of a holder that has no row. */
export function partOfCarts(): { holders: Row[] } & Row {
  const { holders } = shopHeap() as { holders: Row[] };
  const page = { class: "String", name: "", objects: 20, retained_bytes: 800_000 };
  const part = { name: "[:page] of a Fiber in Shop::CARTS", class: "Array", objects: 21, retained_bytes: MB };
  const other = { name: "class #<Class> @rows", class: "Hash", objects: 1, retained_bytes: 40 };
  const parts = [
    { ...part, path: [page], within: "Shop::CARTS" },
    { ...other, path: [], within: "a\u202eb" },
  ];
  return { ...shopHeap(), holders: [...holders, ...parts] };
}

/** Trees of any shape. */
export function anyTrees(seed: number, count: number): Draft[] {
  const next = random(seed);
  const names = ["CACHE", "@rows", "", "REGISTRY", "@by_id", "$pool"];
  const classes = ["Hash", "Array", "String", "Order", "Set", "ActiveRecord::Base", "Proc"];
  const pick = <T>(all: T[]) => all[Math.floor(next() * all.length)];
  const roots: Draft[] = [];
  const open: Draft[] = [];
  for (let i = 0; i < count; i++) {
    const draft = {
      name: pick(names),
      class: pick(classes),
      objects: Math.floor(next() * 100),
      bytes: Math.floor(10 ** (next() * 7)),
    };
    const parent = next() < 0.1 ? undefined : pick(open);
    if (parent) parent.kids = [...(parent.kids ?? []), draft];
    else roots.push(draft);
    open.push(draft);
  }
  return roots;
}

export const heapBytes = (heap: unknown) => new TextEncoder().encode(JSON.stringify(heap));

/** Holders with as many bytes each. */
export const alike = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ name: `H${i}`, class: "Hash", objects: 1, bytes: 4000 }));
