// The page of a heap: its views but for the map, the links between them, and data that can't be.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import * as pages from "../support/browser.ts";
import {
  assertFits,
  axeViolations,
  fragment,
  hash,
  NARROW_AND_FORCED,
  openBrowser,
  text,
  writePage,
} from "../support/browser.ts";
import { alike, anyTrees, heapBytes, itemHeap, partOfCarts, rows, shopHeap } from "../support/heap.ts";

const VIEWS = ["sites", "holders", "map", "classes", "paths"];

let browser: Browser;
let shop: string;
let item: string;
before(async () => {
  browser = await openBrowser();
  shop = writePage("heap", heapBytes(shopHeap()));
  item = writePage("heap-item", heapBytes(itemHeap()));
});
after(() => browser?.close());

const visit = (url: string, steps: (page: Page) => Promise<void>, options?: BrowserContextOptions) =>
  pages.visit(browser, url, steps, options);
const lines = (page: Page) => page.locator("tbody tr:not(.room)").allInnerTexts();
const tabs = (page: Page) => page.getByRole("tab").allInnerTexts();
const cursor = async (page: Page) => (await page.locator("#map-cursor").getAttribute("aria-label")) ?? "";
const crumbs = async (page: Page) =>
  (await page.locator(".crumbs button").allInnerTexts()).join(" › ").replace(/^All: 62\.5 MB/, "All");
/** The middle of a line of words in a box of the map. */
const wordsOf = (page: Page, name: string) => page.locator(".map-box", { hasText: name }).first();

test("the head has the process and the sums, and there are tabs for what there is", async () => {
  await visit(shop, async (page) => {
    assert.equal(await page.title(), "heap of puma 7.1.0 [shop] – rperf");
    const head = await text(page, ".summary");
    assert.match(head, /^62\.6 MB in 80,332 objects with 204,061 references\. Nothing refers to 158 objects of these/);
    assert.match(head, /Process 4711, Ruby 3\.4\.5, .*2026.*, taken in 385 ms/);
    assert.deepEqual(await tabs(page), ["Sites", "Holders", "Map", "Classes"]);
    assert.equal(await page.locator("#tab-sites").getAttribute("aria-selected"), "true");
  });
  const old = shopHeap({ tree: null, sites: null, whole: false });
  await visit(writePage("heap-old", heapBytes(old)), async (page) => {
    assert.deepEqual(await tabs(page), ["Holders", "Classes"]);
    assert.match(await text(page, ".summary .loss"), /^The copy of the program was ended before/);
    assert.match(await text(page, ".summary"), /Where the objects were made isn't known: the program's copy was ended/);
    assert.match((await lines(page))[0], /^50\.0 MB\s+64,321\s+Shop::CARTS → Hash → 5,000 Cart$/);
  });
  const none = shopHeap({ tree: [], sites: null, classes: [], holders: [] });
  await visit(writePage("heap-none", heapBytes(none)), async (page) => {
    assert.match(await text(page, "#panel"), /There are no rows/);
    assert.match(await text(page, ".summary"), /no session of this program has --measure heap/);
  });
});

test("sites have estimates with their deviation, and a row opens to show how it is held", async () => {
  await visit(shop, async (page) => {
    assert.match(
      await text(page, ".view"),
      /estimated from 254 samples \(1 of 64\.0 KB of slots\) of a session that has run for 1 min 40 s: 21\.2 MB ± 3\.65 MB of 62\.6 MB, and older objects have no site/,
    );
    assert.match(await text(page, ".view"), /Without 112 samples of objects that nothing refers to any more/);
    const told = await lines(page);
    assert.match(
      told[0],
      /^9\.16 MB\s+775 KB\s+240,000\s+1 min 31 s\s+Item\s+POST \/cart\s+block in Cart#initialize\s*lib\/shop\.rb:3$/,
    );
    assert.match(told[1], /JSON\.parse\s*json-2\.9\.1\/lib\/json\/common\.rb:219 ← Api#get app\/api\.rb:9$/);
    assert.match(told[2], /^3\.00 MB\s+443 KB\s+19,685\s+3 d 4 h\s+Array\s+\(unknown site\)$/);
    await page.getByRole("button", { name: "block in Cart#initialize" }).click();
    const detail = page.locator("section[aria-label='How it is held']");
    const held = await detail.innerText();
    assert.match(held, /98\.4 % held by\s+Shop::CARTS\s+Hash\s+Cart\s+@items Array\s+Item/);
    assert.match(held, /1\.6 % held by\s+stack of Thread "worker"\s+Item/);
    assert.match(
      held,
      /made in block in Cart#initialize \/srv\/shop\/lib\/shop\.rb:3; 147 samples, the oldest 1 min 39 s/,
    );
    await visit(`${shop}${await fragment(page)}`, async (again) => {
      assert.equal(await again.locator("section[aria-label='How it is held']").innerText(), held);
    });
    await page.goBack();
    assert.equal(await detail.count(), 0);
    await page.goForward();
    await detail.getByRole("button", { name: "Shop::CARTS" }).click();
    assert.equal(await crumbs(page), "All › Shop::CARTS");
  });
});

test("tables are sorted and searched, and the URL restores that", async () => {
  await visit(shop, async (page) => {
    const sort = (name: string) => page.locator("thead").getByRole("button", { name }).click();
    await sort("median age");
    assert.match((await lines(page))[0], /3 d 4 h/);
    await page.keyboard.press("4");
    await sort("class");
    const names = async (where: Page) => (await lines(where)).map((line) => line.split(/\s+/).at(-1));
    assert.deepEqual(await names(page), ["Array", "Cart", "Hash", "Item", "Settings", "String"]);
    assert.match(
      (await lines(page)).at(-1) ?? "",
      /56\.0 MB\s+89\.5 %\s+35,178\s+56\.0 MB\s+8\.69 KB in 158\s+String$/,
    );
    assert.match(
      await text(page, ".view"),
      /Further classes, .*, have [\d,]+ objects together: this page has the 6 largest/,
    );
    await page.keyboard.press("/");
    await page.keyboard.type("AR");
    await page.waitForURL(/search=AR/);
    assert.deepEqual(await names(page), ["Array", "Cart"]);
    assert.match(await text(page, "header"), /2 rows/);
    await visit(`${shop}${await fragment(page)}`, async (again) => {
      assert.deepEqual(await names(again), ["Array", "Cart"]);
      await again.locator("#tab-sites").click();
      assert.match((await lines(again))[0], /3 d 4 h/);
    });
    await page.getByRole("button", { name: "Cart" }).click();
    assert.equal(await page.locator("#tab-holders").getAttribute("aria-selected"), "true");
    assert.equal((await hash(page)).get("search"), '"Cart"');
  });
});

test("the tree of holders opens and closes by keys, is searched, and leads to the map and back", async () => {
  await visit(`${shop}#view=holders`, async (page) => {
    const names = async () =>
      (await lines(page)).map((line) =>
        line
          .split(/[\t▾▸]+/)
          .at(-1)
          ?.trim(),
      );
    // The path where most of it goes is open.
    assert.deepEqual((await names()).slice(0, 5), ["Shop::CARTSHash", "Cart", "@items Array", "Item", "@title String"]);
    assert.match((await lines(page))[0], /^50\.0 MB\s+79\.9 %\s+64,321\s+240 KB\s+1\s+▾?\s*Shop::CARTS\s*Hash$/);
    await page.locator("tbody tr").first().focus();
    for (const key of ["ArrowLeft", "ArrowDown", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
    const current = page.locator("tbody tr[tabindex='0']");
    assert.match(await current.innerText(), /^5\.00 MB\s+8\.\d %\s+20\s+5\.00 MB\s+20\s+String$/);
    assert.equal(await current.getAttribute("aria-level"), "2");
    await page.keyboard.press("Enter");
    assert.equal(await crumbs(page), 'All › Thread "worker"[:page]');
    assert.match(await cursor(page), /^String, 5\.00 MB, 8\.\d % of all, 20 objects/);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "map");
    await page.goBack();
    assert.match(await current.innerText(), /20\s+String$/);
    await page.goForward();
    await page.locator("#map").focus();
    await page.keyboard.press("h");
    assert.equal(await page.locator("#tab-holders").getAttribute("aria-selected"), "true");
    assert.match(await page.locator("tbody tr:focus").innerText(), /20\s+String$/);
    await page.locator("#search").fill("item");
    await page.waitForURL(/search=item/);
    assert.deepEqual(await names(), ["Shop::CARTSHash", "Cart", "@items Array", "Item"]);
    assert.equal(await page.locator("tbody tr.found").count(), 2);
    await page.getByRole("button", { name: "@items Array" }).click();
    assert.equal(await crumbs(page), "All › Shop::CARTS › Cart › @items Array");
    await page.goBack();
    await page.locator("#search").fill("nothing of that name");
    await page.waitForSelector("#panel .empty");
  });
});

test("holders that are part of others are told below the tree, with the holder that counts them", async () => {
  const url = writePage("heap-parts", heapBytes(partOfCarts()));
  await visit(`${url}#view=holders`, async (page) => {
    const parts = page.locator("section[aria-label='Parts of other holders']");
    const told = () => parts.locator("tbody tr").allInnerTexts();
    assert.match(await text(page, ".view"), /Their bytes count in those holders, too\./);
    const [first, second, ...more] = await told();
    assert.match(
      first,
      /^1\.00 MB\s+21\s+\[:page\] of a Fiber in Shop::CARTS → Array → 20 String \(part of Shop::CARTS\)$/,
    );
    assert.match(second, /class #<Class> @rows → Hash \(part of .a\u202eb.\)$/);
    assert.deepEqual(more, []);
    await parts.getByRole("button", { name: "[:page]" }).click();
    const path = page.locator("section[aria-label='The path']");
    assert.match(
      await path.innerText(),
      /^\[:page\] of a Fiber in Shop::CARTS, part of Shop::CARTS\s+Array\s+20 String$/,
    );
    assert.deepEqual(await axeViolations(page), []);
    await assertFits(page);
    await path.getByRole("button", { name: "Shop::CARTS" }).click();
    assert.equal(await crumbs(page), "All › Shop::CARTS");
    await page.goBack();
    // The tree has neither of these words.
    for (const [search, rows] of [
      ["[:page] of", 1],
      ["@rows", 1],
      ["a Fiber in shop", 1],
    ] as const) {
      await page.locator("#search").fill(search);
      await page.waitForURL(/search=/);
      assert.equal((await told()).length, rows, search);
      assert.match(await text(page, "header"), /1 row$/m);
      assert.equal(await page.getByRole("treegrid").count(), 0);
    }
    await page.locator("#search").fill("settings");
    await page.waitForSelector("[role=treegrid]");
    assert.equal(await parts.count(), 0);
  });
  await visit(`${shop}#view=holders`, async (page) => {
    assert.equal(await page.locator("section[aria-label='Parts of other holders']").count(), 0);
  });
  const old = { ...partOfCarts(), tree: null };
  await visit(`${writePage("heap-old-parts", heapBytes(old))}#view=holders`, async (page) => {
    assert.match((await lines(page))[1], /20 String \(part of Shop::CARTS\)$/);
  });
});

test("a class leads to its own objects alone", async () => {
  const leaf = { objects: 1, bytes: 4000 };
  const drafts = [
    { ...leaf, name: "A", class: "Settings", kids: [{ ...leaf, name: "@offset", class: "Integer" }] },
    { ...leaf, name: "B", class: "Array", kids: [{ ...leaf, class: "Set" }] },
  ];
  const classes = ["Set", "Settings"].map((name) => ({ name, objects: 1, bytes: 4000, retained_bytes: 4000 }));
  const url = writePage("heap-sets", heapBytes(shopHeap({ tree: rows(drafts), classes })));
  await visit(`${url}#view=classes`, async (page) => {
    await page.getByRole("button", { name: "Set", exact: true }).click();
    assert.equal((await hash(page)).get("search"), '"Set"');
    assert.equal(await page.locator("#search").inputValue(), '"Set"');
    assert.deepEqual(await page.locator("tbody .name [role=button]").allInnerTexts(), ["B", "Set"]);
    assert.match(await text(page, "header"), /1 row$/m);
  });
});

test("'back' leads to the row of a tree that is searched", async () => {
  const kids = Array.from({ length: 60 }, (_, i) => ({ name: `@k${i}`, class: "String", objects: 1, bytes: 4000 }));
  const drafts = [{ name: "CARTS", class: "Hash", objects: 1, bytes: 40, kids }, ...alike(2)];
  const url = writePage("heap-back", heapBytes(shopHeap({ tree: rows(drafts) })));
  // The rows below one that is found are closed at first.
  await visit(`${url}#view=holders&search=carts`, async (page) => {
    assert.equal((await lines(page)).length, 1);
    await page.locator("tbody tr").first().focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("End");
    const current = page.locator("tbody tr[tabindex='0']");
    assert.match(await current.innerText(), /@k59 String$/);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#tab-map").getAttribute("aria-selected"), "true");
    await page.goBack();
    assert.match(await current.innerText(), /@k59 String$/);
    // Other searches don't have it.
    await page.locator("#search").fill("H1");
    await page.waitForURL(/search=H1/);
    assert.match(await current.innerText(), /H1\s*Hash$/);
  });
});

test("long names leave the numbers in sight", async () => {
  const long = (name: unknown) => `${"Long::".repeat(90)}${name}`;
  const { tree, classes, sites, paths } = itemHeap() as Record<string, Record<string, unknown>[]> & {
    sites: { rows: object[] };
  };
  const heap = {
    ...itemHeap(),
    tree: tree.map((row) => ({ ...row, name: long(row.name), class: long(row.class) })),
    classes: classes.map((row) => ({ ...row, name: long(row.name) })),
    paths: paths.map((row) => ({ ...row, holder: long(row.holder) })),
    sites: {
      ...sites,
      rows: sites.rows.map((row) => ({
        ...row,
        class: long("Item"),
        made_in: { method: long("a"), path: "a", line: 1 },
      })),
    },
  };
  await visit(writePage("heap-long", heapBytes(heap)), async (page) => {
    for (const view of VIEWS.filter((it) => it !== "map")) {
      await page.locator(`#tab-${view}`).click();
      const cells = await page.locator(".table-box tbody tr:not(.room)").evaluateAll((rows) =>
        rows.flatMap(({ children }) => {
          const name = children[children.length - 1].getBoundingClientRect();
          return [...children].slice(0, -1).map((cell) => ({
            text: cell.textContent,
            isHidden: cell.getBoundingClientRect().right > name.left + 1,
          }));
        }),
      );
      assert.ok(cells.length > 0);
      assert.deepEqual(
        cells.filter(({ isHidden }) => isHidden),
        [],
        view,
      );
    }
  });
});

test("as many paths as a file may have are said to be the largest ones", async () => {
  const path = { holder: "A", steps: [["Item", ""]], objects: 1, bytes: 40, retained_bytes: 40 };
  const { sites } = itemHeap() as { sites: { rows: object[] } };
  const of = (count: number) => ({
    ...itemHeap(),
    sites: { ...sites, rows: Array(count).fill(sites.rows[0]) },
    paths: Array(count).fill(path),
  });
  await visit(writePage("heap-most", heapBytes(of(1000))), async (page) => {
    assert.match(await text(page, ".view"), /This page has the 1,000 largest paths\./);
    await page.locator("#tab-sites").click();
    assert.match(await text(page, ".view"), /This page has the 1,000 largest sites\./);
  });
  await visit(writePage("heap-fewer", heapBytes(of(999))), async (page) => {
    for (const view of ["paths", "sites"]) {
      await page.locator(`#tab-${view}`).click();
      assert.doesNotMatch(await text(page, ".view"), /largest/);
    }
  });
});

test("without a session the class of the paths is told, and the path of a holder is another one", async () => {
  const heap = { ...itemHeap(), tree: null, sites: null };
  await visit(writePage("heap-no-session", heapBytes(heap)), async (page) => {
    assert.match(await text(page, ".view"), /^Paths on which instances of Item are held/);
    await page.locator("#tab-holders").click();
    await page.getByRole("button", { name: "Shop::CARTS" }).click();
    const detail = page.locator("section[aria-label='The path']");
    assert.match(await detail.innerText(), /5,000 Cart$/);
    const sorted = page.locator("thead [aria-sort]");
    await page.locator("thead").getByRole("button", { name: "objects" }).click();
    assert.equal(await sorted.count(), 1);
    await page.locator("#tab-paths").click();
    assert.equal(await detail.count(), 0);
    assert.equal(await sorted.count(), 0);
    await page.goBack();
    assert.match(await detail.innerText(), /5,000 Cart$/);
  });
  const { classes } = shopHeap() as { classes: { name: string }[] };
  const others = classes.filter(({ name }) => name !== "Item");
  await visit(`${writePage("heap-other", heapBytes({ ...itemHeap(), classes: others }))}#view=sites`, async (page) => {
    assert.match(await text(page, ".view"), /± 3\.65 MB, and older objects have no site/);
  });
});

test("with --class there are its paths, and sites of it alone", async () => {
  await visit(item, async (page) => {
    assert.deepEqual(await tabs(page), ["Sites", "Holders", "Map", "Classes", "Paths"]);
    assert.equal(await page.locator("#tab-paths").getAttribute("aria-selected"), "true");
    assert.match(await text(page, ".view"), /^Paths on which instances of Item are held/);
    assert.match(
      (await lines(page))[0],
      /^48\.0 MB\s+938 KB\s+24,000\s+Shop::CARTS → Hash → Cart → @items Array → Item$/,
    );
    await page.getByRole("button", { name: "stack of" }).click();
    assert.match(await text(page, "section[aria-label='The path']"), /^stack of Thread "worker"\s+Item$/);
    await page.locator("#tab-sites").click();
    assert.match(await text(page, ".view"), /^Only objects of Item: estimated from .* of 977 KB, and/);
  });
});

test("axe finds nothing in any view, light and dark, and it works on narrow windows and with forced colours", async () => {
  for (const colorScheme of ["light", "dark"] as const)
    await visit(
      item,
      async (page) => {
        for (const view of VIEWS) {
          await page.locator(`#tab-${view}`).click();
          if (view === "sites" || view === "paths") await page.locator("tbody button").first().click();
          if (view === "map") await page.locator("#map").focus();
          assert.deepEqual(await axeViolations(page), [], `${view} ${colorScheme}`);
        }
      },
      { colorScheme, bypassCSP: true },
    );
  for (const options of NARROW_AND_FORCED)
    await visit(
      item,
      async (page) => {
        for (const view of VIEWS) {
          await page.locator(`#tab-${view}`).click();
          await assertFits(page);
          if (view === "map") assert.ok(await wordsOf(page, "Shop::CARTS").isVisible());
          else assert.ok(await page.locator("tbody .name .link").first().isVisible());
        }
      },
      options,
    );
});

const HOSTILE = [
  "</script><script>window.pwned = 1</script>",
  '<img src=x onerror="window.pwned = 1">',
  "right\u202eto left\u202c \u05d0\u05d1",
  "nul \u0000 and bell \u0007",
  "__proto__",
  "x".repeat(1_000_000),
];

test("names are text, whatever they have in them", async () => {
  const { tree, sites, classes } = itemHeap() as Record<string, object[]> & { sites: { rows: object[] } };
  const named = HOSTILE.flatMap((name) => tree.slice(0, 5).map((row) => ({ ...row, name, class: name })));
  // Each hangs below the one before it, and has more than that.
  const chain = named.map((row, i) => ({ ...row, parent: i === 0 ? null : i - 1, retained_bytes: 1e18 }));
  const heap = {
    ...itemHeap(),
    program: HOSTILE[0],
    ruby: HOSTILE[2],
    tree: chain,
    classes: HOSTILE.map((name) => ({ ...classes[0], name })),
    sites: {
      ...sites,
      of_class: HOSTILE[1],
      rows: HOSTILE.map((name) => ({
        ...sites.rows[0],
        made_in: { method: name, path: `/srv/${name}`, line: 2 ** 53 },
        called_by: { method: name, path: name, line: 0 },
        class: name,
        endpoint: name,
        held_by: [{ holder: name, steps: [[name, name]], part: 7 }],
      })),
    },
    paths: HOSTILE.map((holder) => ({
      holder,
      steps: [[holder, holder]],
      objects: 2 ** 64,
      bytes: 0,
      retained_bytes: 0,
    })),
  };
  await visit(writePage("heap-hostile", heapBytes(heap)), async (page) => {
    for (const view of VIEWS) {
      await page.locator(`#tab-${view}`).click();
      assert.match(await text(page, "#panel"), /<\/script><script>window\.pwned = 1<\/script>/, view);
      if (view === "sites" || view === "paths") await page.locator("tbody button").last().click();
      if (view === "map") {
        await page.locator("#map").focus();
        for (const key of ["ArrowDown", "ArrowDown", "Enter", "Escape"]) await page.keyboard.press(key);
      }
      await assertFits(page);
    }
    assert.equal(await page.evaluate(() => "pwned" in window), false);
  });
});

test("data that can't be are a sentence", async () => {
  const cases: [string, string | object, RegExp][] = [
    ["no-json", "{", /damaged: they are no JSON/],
    [
      "parent",
      shopHeap({ tree: [{ ...rows(anyTrees(1, 1))[0], parent: 7 }] }),
      /tree\[0\]\.parent is not an earlier row/,
    ],
    ["amount", shopHeap({ references: -1 }), /references is not an amount/],
    ["change", { kind: "rperf heap change" }, /neither a profile nor a heap/],
  ];
  for (const [name, data, words] of cases) {
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : heapBytes(data);
    await visit(writePage(`heap-${name}`, bytes), async (page) => {
      assert.match(await text(page, "[role=alert]"), words);
    });
  }
});

test("the help has the page's own keys and words", async () => {
  await visit(shop, async (page) => {
    await page.keyboard.press("?");
    assert.match(await text(page, "dialog"), /retained\s+what would go with them/);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    for (const [key, view] of [
      ["2", "holders"],
      ["3", "map"],
      ["4", "classes"],
    ] as const) {
      await page.keyboard.press(key);
      assert.equal((await hash(page)).get("view"), view);
    }
  });
});
