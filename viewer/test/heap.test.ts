// A heap: what is read of its JSON, its tree, and the map.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HEAP_STATE, INITIAL_HEAP } from "../src/app/heap_state.ts";
import { classColour, contrast, TEXT } from "../src/flame/colours.ts";
import { DataError } from "../src/format/error.ts";
import { isHeap, readHeap } from "../src/format/heap.ts";
import {
  bytesBehindSites,
  CodeNames,
  classOfPaths,
  exactSearch,
  FoundTree,
  HeapTree,
  markedRows,
  matcher,
  objectsWithoutClass,
  partsOfHolders,
  pathRows,
  pathText,
  pathTitle,
  siteRows,
} from "../src/model/heap.ts";
import { type Box, boxAt, type Rect, squarify, treemap } from "../src/model/treemap.ts";
import { formatElapsed } from "../src/model/units.ts";
import { random } from "./support/generate.ts";
import { anyTrees, type Draft, heapBytes, itemHeap, partOfCarts, rows, SHOP, shopHeap } from "./support/heap.ts";

const read = (change: Record<string, unknown> = {}) => readHeap(heapBytes(shopHeap(change)));
const treeOf = (seed: number, count: number) => new HeapTree(read({ tree: rows(anyTrees(seed, count)) }).tree);

test("a heap is told from a profile by its first byte, and has what its JSON has", () => {
  assert.equal(isHeap(heapBytes(shopHeap())), true);
  assert.equal(isHeap(new TextEncoder().encode("RPV1")), false);
  const heap = read();
  assert.equal(heap.pid, 4711);
  assert.equal(heap.timeMs, 1.78e12);
  assert.equal(heap.classes[0].unreferenced.objects, 158);
  assert.deepEqual(heap.sites?.rows[0].heldBy[0].steps[2], { className: "Array", name: "@items", objects: null });
  assert.equal(heap.sites?.rows[2].madeIn, null);
  assert.equal(heap.sites?.ofClass, null);
  assert.equal(readHeap(heapBytes(itemHeap())).sites?.ofClass, "Item");
  assert.deepEqual(
    heap.tree.filter(({ isRest }) => isRest).map(({ objects }) => objects),
    [320],
  );
});

test("files of older versions lack the tree, the sites and unreferenced objects", () => {
  const classes = [{ name: "A", objects: 1, bytes: 40, retained_bytes: 40 }];
  const heap = read({ tree: undefined, sites: undefined, paths: undefined, classes });
  assert.deepEqual([heap.tree, heap.sites, heap.paths], [[], null, null]);
  assert.deepEqual(heap.classes[0].unreferenced, { objects: 0, bytes: 0 });
  assert.equal(heap.holders[0].holder, "Shop::CARTS");
});

test("JSON that isn't as it must be is an error that says where", () => {
  const row = rows(SHOP)[0];
  const cases: [Record<string, unknown> | string, RegExp][] = [
    ["{", /no JSON/],
    ["{}", /neither a profile nor a heap/],
    [{ kind: "rperf heap change" }, /neither a profile nor a heap/],
    [{ version: 2 }, /have version 2; this page reads version 1/],
    [{ pid: undefined }, /pid is not an amount/],
    [{ program: 7 }, /program is not a text/],
    [{ total: [] }, /total is not an object/],
    [{ classes: {} }, /classes is not a list/],
    [{ classes: [null] }, /classes\[0\] is not an object/],
    [{ tree: [{ ...row, parent: 0 }] }, /tree\[0\]\.parent is not an earlier row/],
    [{ tree: [row, { ...row, parent: 2 }] }, /tree\[1\]\.parent is not an earlier row/],
    [{ tree: [row, { ...row, parent: -1 }] }, /tree\[1\]\.parent is not an earlier row/],
    [{ tree: [row, { ...row, parent: 0.5 }] }, /tree\[1\]\.parent is not an earlier row/],
    [{ tree: [{ ...row, bytes: -1 }] }, /tree\[0\]\.bytes is not an amount/],
    [{ tree: [{ ...row, retained_bytes: "NaN" }] }, /tree\[0\]\.retained_bytes is not an amount/],
    [{ tree: [{ ...row, objects: 1e300 }] }, /tree\[0\]\.objects is not an amount/],
    [JSON.stringify(shopHeap()).replace('"references":204061', '"references":1e999'), /references is not an amount/],
    [{ tree: Array(100_001).fill(0) }, /tree has more than 100000 entries/],
    [{ paths: [{ holder: "", steps: [["A"]], objects: 1, bytes: 1, retained_bytes: 1 }] }, /steps\[0\] is not a pair/],
  ];
  for (const [change, words] of cases) {
    const data = typeof change === "string" ? new TextEncoder().encode(change) : heapBytes(shopHeap(change));
    assert.throws(
      () => readHeap(data),
      (error: Error) => error instanceof DataError && words.test(error.message),
      String(words),
    );
  }
});

test("data that were changed anywhere are read or refused, and never anything else", () => {
  const next = random(11);
  const odd = ["-1", "1e308", "null", '""', "[]", "{}", "true", '"\\u202e"', "18446744073709551615"];
  const json = JSON.stringify(itemHeap());
  const values = [...json.matchAll(/:("[^"]*"|[\d.e+]+|null|true)/g)];
  let refused = 0;
  for (let round = 0; round < 500; round++) {
    const { index, 0: value } = values[Math.floor(next() * values.length)];
    const changed = json.slice(0, index + 1) + odd[Math.floor(next() * odd.length)] + json.slice(index + value.length);
    try {
      const heap = readHeap(new TextEncoder().encode(changed));
      const tree = new HeapTree(heap.tree);
      treemap(tree, 0, { x: 0, y: 0, width: 800, height: 500 });
      new FoundTree(tree, "a");
      new CodeNames(heap.sites?.rows ?? []);
    } catch (error) {
      assert.ok(error instanceof DataError, String(error));
      refused++;
    }
  }
  assert.ok(refused > 100 && refused < 500, String(refused));
});

test("very long texts are cut", () => {
  const [row] = rows(SHOP);
  const { tree } = read({ tree: [{ ...row, name: "x".repeat(1_000_000) }] });
  assert.equal(tree[0].name.length, 2001);
});

test("the tree has what each row holds, and finds rows with those above and below", () => {
  const tree = new HeapTree(read().tree);
  assert.deepEqual(
    tree.children(0).map((row) => tree.title(row)),
    ["Shop::CARTS", 'Thread "worker"[:page]', "classes, modules and the VM", "class Api @@cache", "$settings"],
  );
  assert.equal(
    tree.all,
    tree.children(0).reduce((sum, row) => sum + tree.weight(row), 0),
  );
  const items = [...Array(tree.size).keys()].find((row) => row > 0 && tree.row(row).name === "@items") ?? 0;
  assert.equal(tree.title(items), "@items Array");
  assert.deepEqual(
    tree.path(items).map((row) => tree.title(row)),
    ["Shop::CARTS", "Cart", "@items Array"],
  );
  const found = new FoundTree(tree, "ITEM");
  const shown = (row: number): string[] => [...(row ? [tree.title(row)] : []), ...found.children(row).flatMap(shown)];
  assert.deepEqual(shown(0), ["Shop::CARTS", "Cart", "@items Array", "Item", "@title String"]);
  assert.deepEqual(
    [...found.found].map((row) => tree.title(row)),
    ["@items Array", "Item"],
  );
  assert.equal(new FoundTree(tree, "nowhere").children(0).length, 0);
  assert.equal(tree.holder("class Api @@cache", "Hash") > 0, true);
  assert.equal(tree.holder("Cart", "Hash"), 0);
  assert.deepEqual([tree.valid(tree.size), tree.valid(1)], [0, 1]);
});

test("the sum of the classes tells what is left out, and sites are a part of all or of their class", () => {
  const heap = read();
  const told = heap.classes.reduce((sum, { objects }) => sum + objects, 0);
  assert.equal(objectsWithoutClass(heap), heap.total.objects - told);
  assert.equal(objectsWithoutClass({ ...heap, total: { objects: 1, bytes: 1 } }), 0);
  assert.equal(bytesBehindSites(heap), heap.total.bytes);
  const item = readHeap(heapBytes(itemHeap()));
  assert.equal(bytesBehindSites(item), 1_000_000);
  assert.equal(bytesBehindSites({ ...item, classes: item.classes.filter(({ name }) => name !== "Item") }), null);
});

test("holders with one name are told apart by their class, and rest rows are none", () => {
  const stack = { name: "stack", objects: 1, bytes: 40 };
  const drafts = [
    { ...stack, class: "Item", bytes: 90 },
    { ...stack, class: "Cart" },
    { ...stack, name: "$cart", class: "Cart" },
    { ...stack, name: "", class: "", rest: true as const },
  ];
  const tree = new HeapTree(read({ tree: rows(drafts) }).tree);
  const titles = tree.children(0).map((row) => [tree.title(row), tree.classNote(row)]);
  assert.deepEqual(titles, [
    ["stack (Item)", ""],
    ["stack (Cart)", ""],
    ["$cart", "Cart"],
    ["(further holders)", ""],
  ]);
  assert.equal(tree.title(tree.holder("stack", "Cart")), "stack (Cart)");
  assert.equal(tree.holder("stack", "Order"), 0);
  assert.equal(tree.holder("stack", undefined), 0);
  assert.equal(tree.title(tree.holder("$cart", undefined)), "$cart");
  assert.equal(tree.title(tree.holder("$cart", "Order")), "$cart");
  assert.equal(tree.holder("", ""), 0);
});

test("a search in double quotes is for whole names, and in the tree for classes alone", () => {
  const leaf = { objects: 1, bytes: 40 };
  const drafts = [
    { ...leaf, name: "Set", class: "Hash", kids: [{ ...leaf, name: "@offset", class: "Integer" }] },
    { ...leaf, name: "$all", class: "Settings", kids: [{ ...leaf, name: "@ids", class: "Set" }] },
    { ...leaf, name: "", class: "", rest: true as const },
  ];
  const tree = new HeapTree(read({ tree: rows(drafts) }).tree);
  const found = (text: string) => [...new FoundTree(tree, text).found].map((row) => tree.title(row));
  assert.deepEqual(found("set"), ["Set", "@offset Integer", "$all", "@ids Set"]);
  assert.deepEqual(found(exactSearch("Set")), ["@ids Set"]);
  assert.deepEqual(found('""'), []);
  assert.equal(matcher('"Set"')("Settings", "Set"), true);
  assert.equal(matcher('"Set"')("Settings", "set", '"Set"s'), false);
  assert.equal(matcher('"')('a "b"'), true);
  // The URL keeps 200 characters.
  assert.equal(exactSearch("x".repeat(198)).length, 200);
  assert.equal(exactSearch("x".repeat(199)), "x".repeat(199));
  const kept = new FoundTree(tree, '"Settings"');
  assert.deepEqual(
    [...Array(tree.size).keys()].filter((row) => row > 0 && kept.keeps(row)).map((row) => tree.title(row)),
    ["$all", "@ids Set"],
  );
});

test("the map marks what a search finds, and the innermost box around what has none", () => {
  const leaf = (name: string, kids: Draft[] = []) => ({ name, class: "A", objects: 1, bytes: 40, kids });
  const drafts = [leaf("a", [leaf("b", [leaf("x1")]), leaf("c", [leaf("x2"), leaf("d")])]), leaf("e", [leaf("x3")])];
  const tree = new HeapTree(read({ tree: rows(drafts) }).tree);
  const row = (title: string) => [...Array(tree.size).keys()].find((it) => it > 0 && tree.row(it).name === title) ?? 0;
  const marks = (...drawn: string[]) =>
    [...markedRows(tree, new FoundTree(tree, "x"), new Set(drawn.map(row)))].map((it) => tree.row(it).name).sort();
  assert.deepEqual(marks("a", "b", "c", "d", "e", "x1", "x2", "x3"), ["x1", "x2", "x3"]);
  assert.deepEqual(marks("a", "b", "c", "d", "e", "x2"), ["b", "e", "x2"]);
  assert.deepEqual(marks("a", "c", "d", "x2"), ["x2"]);
  assert.deepEqual(marks("a", "d"), ["a"]);
  assert.deepEqual(marks("d"), []);
});

test("the class of paths is known without a session, and a search looks at all steps of a path", () => {
  const item = itemHeap();
  assert.equal(classOfPaths(read({ ...item, sites: null })), "Item");
  assert.equal(classOfPaths(read({ ...item, paths: [] })), "Item");
  assert.equal(classOfPaths(read({ ...item, sites: null, paths: [] })), undefined);
  const heap = read(item);
  const steps = Array.from({ length: 30 }, (_, i) => ({ className: `C${i}`, name: `@v${i}`, objects: null }));
  const sites = heap.sites && {
    ...heap.sites,
    rows: [...heap.sites.rows, { ...heap.sites.rows[0], heldBy: [{ holder: "$deep", steps, part: 1 }] }],
  };
  for (const text of ["C15", '"C15"', "@v15 C15", "$deep"])
    assert.deepEqual(siteRows({ ...heap, sites }, text), sites?.rows.slice(1), text);
  assert.deepEqual(siteRows({ ...heap, sites }, '"C"'), []);
  const path = { holder: "$deep", steps, objects: 1, bytes: 1, retained: 1, within: "$pool" };
  for (const text of ["C15", '"@v15"', "@v15 C15", '"$deep"', "$POOL"])
    assert.deepEqual(pathRows([...(heap.paths ?? []), path], text), [path], text);
});

test("a holder that is part of another one says so", () => {
  const all = read({ holders: partOfCarts().holders });
  const parts = partsOfHolders(all);
  assert.deepEqual(
    all.holders.map(({ within }) => within),
    ["", "Shop::CARTS", "a\u202eb"],
  );
  assert.equal(pathTitle(all.holders[0]), "Shop::CARTS → Hash → 5,000 Cart");
  assert.deepEqual(parts.map(pathTitle), [
    "[:page] of a Fiber in Shop::CARTS → Array → 20 String (part of Shop::CARTS)",
    "class #<Class> @rows → Hash (part of \u2068a\u202eb\u2069)",
  ]);
  assert.throws(() => read({ holders: [{ ...partOfCarts().holders[1], within: 7 }] }), /within is not a text/);
});

test("several objects of one name are told with their number, and older files don't know it", () => {
  const [whole, part] = partOfCarts().holders;
  const titles = (held: object) => read({ holders: [{ ...whole, ...held }] }).holders.map(pathTitle);
  assert.deepEqual(titles({ held: 2000 }), ["Shop::CARTS → 2,000 Hash → 5,000 Cart"]);
  for (const held of [{}, { held: 0 }, { held: 1 }])
    assert.deepEqual(titles(held), ["Shop::CARTS → Hash → 5,000 Cart"]);
  assert.throws(() => read({ holders: [{ ...part, held: "7" }] }), /held is not an amount/);
});

test("paths lose their middle, and text that turns its direction leaves the rest alone", () => {
  const steps = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ className: `C${i + 2}`, name: "", objects: null }));
  assert.equal(pathText("A", steps(2)), "A → C2 → C3");
  assert.equal(pathText("1", steps(13)), "1 → C2 → C3 → C4 → C5 → C6 → (2 more) → C9 → C10 → C11 → C12 → C13 → C14");
  assert.equal(
    pathText("a\u202eb", [{ className: "C", name: "@d", objects: 3000 }]),
    "\u2068a\u202eb\u2069 → 3,000 @d C",
  );
});

test("places of code are short: from the gem on, or below the directory of the application", () => {
  const [own, gem, unknown] = read().sites?.rows ?? [];
  const names = new CodeNames([own, gem, unknown]);
  assert.equal(names.method(own), "block in Cart#initialize");
  assert.equal(names.note(own), "lib/shop.rb:3");
  assert.equal(names.note(gem), "json-2.9.1/lib/json/common.rb:219 ← Api#get app/api.rb:9");
  assert.deepEqual([names.method(unknown), names.note(unknown)], ["(unknown site)", ""]);
  assert.equal(names.place({ method: "", path: "<internal:array>", line: 3 }), "");
  assert.equal(names.place({ method: "", path: "/usr/lib/ruby/3.4.0/set.rb", line: 0 }), "<ruby>/set.rb");
});

test("ages are told in two units", () => {
  const told = [0.5, 1, 91, 3600, 7380, 273_600, 1e12].map((seconds) => formatElapsed(seconds * 1e9));
  assert.deepEqual(told, ["< 1 s", "1 s", "1 min 31 s", "1 h", "2 h 3 min", "3 d 4 h", "11,574,074 d 1 h"]);
});

const area = ({ width, height }: Rect) => width * height;
const isInside = (inner: Rect, outer: Rect) =>
  inner.x >= outer.x - 1e-6 &&
  inner.y >= outer.y - 1e-6 &&
  inner.x + inner.width <= outer.x + outer.width + 1e-6 &&
  inner.y + inner.height <= outer.y + outer.height + 1e-6;
const overlap = (a: Rect, b: Rect) =>
  Math.max(0, Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x)) *
  Math.max(0, Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y));

test("the parts of a rectangle have areas in proportion, fill it, and don't overlap", () => {
  const next = random(3);
  for (let round = 0; round < 60; round++) {
    const count = 1 + Math.floor(next() * 40);
    const weights = Array.from({ length: count }, () => 10 ** (next() * 4)).sort((a, b) => b - a);
    const room = { x: next() * 50, y: next() * 50, width: 1 + next() * 900, height: 1 + next() * 900 };
    const parts = squarify(weights, room);
    const sum = weights.reduce((sum, weight) => sum + weight, 0);
    parts.forEach((part, i) => {
      const wanted = (weights[i] / sum) * area(room);
      assert.ok(Math.abs(area(part) - wanted) <= 1e-6 * area(room), `${area(part)} for ${wanted}`);
      assert.ok(isInside(part, room));
      for (const other of parts.slice(i + 1)) assert.ok(overlap(part, other) <= 1e-6 * area(room));
    });
  }
});

test("parts are about as wide as high, as in the paper, and odd weights give no NaN", () => {
  // The example of Bruls, Huizing and van Wijk: areas in a rectangle of 6 by 4.
  const parts = squarify([6, 6, 4, 3, 2, 2, 1], { x: 0, y: 0, width: 6, height: 4 });
  const rounded = parts.map(({ x, y, width, height }) => [x, y, width, height].map((it) => Math.round(100 * it) / 100));
  assert.deepEqual(rounded.slice(0, 4), [
    [0, 0, 3, 2],
    [0, 2, 3, 2],
    [3, 0, 1.71, 2.33],
    [4.71, 0, 1.29, 2.33],
  ]);
  for (const weights of [[], [0], [0, 0], [5, 0], [2 ** 64, 1], [1e-9, 1e-12]])
    for (const width of [0, 1, 500])
      for (const part of squarify(weights, { x: 0, y: 0, width, height: 300 }))
        assert.ok(
          Object.values(part).every((it) => Number.isFinite(it) && it >= 0 && it <= 500),
          JSON.stringify(part),
        );
});

test("boxes of a map are in their parent's, beside each other, below its words, and as large as their part of it", () => {
  const room = { x: 0, y: 0, width: 1200, height: 700 };
  for (const [seed, count] of [
    [1, 30],
    [2, 400],
    [3, 3000],
  ]) {
    const tree = treeOf(seed, count);
    const boxes = treemap(tree, 0, room);
    assert.ok(boxes.length > 10);
    const byRow = new Map(boxes.map((box) => [box.row, box]));
    const siblings = new Map<number, Box[]>();
    for (const box of boxes) siblings.set(tree.parent[box.row], [...(siblings.get(tree.parent[box.row]) ?? []), box]);
    for (const [parent, kids] of siblings) {
      const above = byRow.get(parent);
      const around: Rect = above ?? room;
      const scale = kids.map((kid) => area(kid) / tree.weight(kid.row));
      for (const [i, kid] of kids.entries()) {
        assert.ok(isInside(kid, around));
        assert.ok(!above || kid.y >= above.y + above.head - 1e-6);
        assert.ok(Math.abs(scale[i] / scale[0] - 1) < 1e-6, `${scale[i]} and ${scale[0]}`);
        for (const other of kids.slice(i + 1)) assert.ok(overlap(kid, other) < 1e-3);
      }
      const sum = kids.reduce((sum, kid) => sum + area(kid), 0);
      assert.ok(sum <= area(around) * (1 + 1e-9));
    }
    // What all have together is all: what isn't shown is too small.
    const top = siblings.get(0) ?? [];
    const share = top.reduce((sum, { row }) => sum + tree.weight(row), 0) / tree.all;
    assert.ok(Math.abs(top.reduce((sum, box) => sum + area(box), 0) / area(room) - share) < 1e-6);
  }
});

test("the innermost box is at a point, and a zoom shows what is in a box alone", () => {
  const tree = treeOf(5, 200);
  const room = { x: 0, y: 0, width: 900, height: 500 };
  const boxes = treemap(tree, 0, room);
  const isLeaf = ({ hasBoxes }: Box) => !hasBoxes;
  const leaf = boxes.find(isLeaf) as Box;
  assert.equal(boxAt(boxes, leaf.x + leaf.width / 2, leaf.y + leaf.height / 2), leaf);
  assert.equal(boxAt(boxes, -1, 5), null);
  const top = tree.children(0)[0];
  const zoomed = treemap(tree, top, room);
  assert.ok(zoomed.length > 0 && zoomed.every(({ row }) => tree.path(row)[0] === top && row !== top));
});

test("a deep tree, a wide one and one without bytes have a map at once", () => {
  const room = { x: 0, y: 0, width: 1600, height: 900 };
  const row = (parent: number | null, bytes: number) => ({
    parent,
    name: "",
    class: "A",
    objects: 1,
    bytes: 1,
    retained_objects: 1,
    retained_bytes: bytes,
  });
  const map = (tree: unknown[]) => treemap(new HeapTree(read({ tree }).tree), 0, room);
  const start = performance.now();
  assert.ok(map(Array.from({ length: 20_000 }, (_, i) => row(i === 0 ? null : i - 1, 1e6))).length < 1000);
  assert.ok(map(Array.from({ length: 20_000 }, () => row(null, 40))).length <= 6000);
  assert.equal(map([row(null, 0), row(0, 0)]).length, 0);
  // Less than what is below it.
  assert.ok(map([row(null, 10), row(0, 1000), row(0, 2 ** 64)]).every((box) => isInside(box, room)));
  assert.ok(performance.now() - start < 30_000);
});

test("words on the boxes have enough contrast, whatever the class, light and dark", () => {
  for (let i = 0; i < 2000; i++)
    for (const theme of ["light", "dark"] as const) {
      const fill = classColour(`Class${i}`, i === 0, theme === "dark");
      assert.ok(contrast(fill, TEXT[theme]) >= 4.5, `Class${i} ${theme} ${fill}`);
    }
  const colours = ["Hash", "Array", "String", "Cart", "Item", "Order"].map((it) =>
    String(classColour(it, false, false)),
  );
  assert.ok(new Set(colours).size >= 5);
});

test("the hash restores the state, and any hash gives a valid one", () => {
  const state = {
    ...INITIAL_HEAP,
    view: "map",
    search: "a=b&c",
    zoom: 7,
    row: 9,
    path: 3,
    holder: 4,
    siteSort: "-bytes",
    holderSort: "name",
  } as const;
  assert.deepEqual(HEAP_STATE.fromHash(`#${HEAP_STATE.toHash(state, INITIAL_HEAP)}`, INITIAL_HEAP), state);
  assert.equal(HEAP_STATE.toHash(INITIAL_HEAP, INITIAL_HEAP), "");
  for (const hash of ["view=flame", "zoom=-1", "row=1e99", "site=x", "path=0.5", "%", "__proto__=1"])
    assert.deepEqual(HEAP_STATE.fromHash(hash, INITIAL_HEAP), INITIAL_HEAP);
});
