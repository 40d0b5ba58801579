// The map of a heap's page: boxes, zoom, search, and the ways to it and back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import * as pages from "../support/browser.ts";
import { fragment, hash, openBrowser, text, writePage } from "../support/browser.ts";
import { alike, anyTrees, heapBytes, rows, shopHeap } from "../support/heap.ts";

let browser: Browser;
let shop: string;
before(async () => {
  browser = await openBrowser();
  shop = writePage("heap-map", heapBytes(shopHeap()));
});
after(() => browser?.close());

const visit = (url: string, steps: (page: Page) => Promise<void>, options?: BrowserContextOptions) =>
  pages.visit(browser, url, steps, options);
const cursor = async (page: Page) => (await page.locator("#map-cursor").getAttribute("aria-label")) ?? "";
const crumbs = async (page: Page) =>
  (await page.locator(".crumbs button").allInnerTexts()).join(" › ").replace(/^All: 62\.5 MB/, "All");
/** The middle of a line of words in a box of the map. */
const wordsOf = (page: Page, name: string) => page.locator(".map-box", { hasText: name }).first();

test("the map zooms by mouse and keys, goes back by crumbs, and the URL restores it", async () => {
  await visit(`${shop}#view=map`, async (page) => {
    await wordsOf(page, "Shop::CARTS").hover({ position: { x: 30, y: 8 } });
    assert.match(
      await text(page, ".tooltip"),
      /^Shop::CARTS\s+Hash\s+50\.0 MB retained in 64,321 objects\s+240 KB of them its own/,
    );
    await wordsOf(page, "Cart").click({ position: { x: 30, y: 8 } });
    await page.waitForURL(/zoom=/);
    assert.equal(await crumbs(page), "All › Shop::CARTS");
    // In the map itself: the innermost box that has others in it.
    await wordsOf(page, "@title").click();
    assert.equal(await crumbs(page), "All › Shop::CARTS › Cart › @items Array › Item");
    await visit(`${shop}${await fragment(page)}`, async (again) => {
      assert.equal(await crumbs(again), "All › Shop::CARTS › Cart › @items Array › Item");
    });
    await page.locator(".crumbs").getByRole("button", { name: "All" }).click();
    assert.equal((await hash(page)).get("zoom"), null);
    await page.goBack();
    assert.equal(await crumbs(page), "All › Shop::CARTS › Cart › @items Array › Item");
    await page.getByRole("button", { name: "Zoom out" }).click();
    assert.equal(await crumbs(page), "All › Shop::CARTS › Cart › @items Array");
    await page.goto(`${shop}#view=map&row=0`);
    await page.locator("#map").focus();
    assert.match(
      await cursor(page),
      /^Shop::CARTS, 50\.0 MB, 79\.9 % of all, 1 object, with all below 64,321 objects, depth 1, 1 of 5$/,
    );
    await page.keyboard.press("ArrowDown");
    assert.match(await cursor(page), /^Cart, /);
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowRight");
    assert.match(await cursor(page), /^Thread "worker"\[:page\], /);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    assert.equal(await crumbs(page), "All › Shop::CARTS");
    assert.match(await cursor(page), /^Cart, /);
    await page.keyboard.press("Escape");
    assert.equal(await crumbs(page), "All");
    assert.match(await cursor(page), /^Shop::CARTS, /);
  });
});

test("the map fills its window after a change of its size, and a search marks boxes", async () => {
  await visit(
    `${writePage("heap-large", heapBytes(shopHeap({ tree: rows(anyTrees(4, 4000)) })))}#view=map`,
    async (page) => {
      const extent = () =>
        page.locator("#map").evaluate((map) => {
          const boxes = [...map.querySelectorAll(".map-box")].map((box) => box.getBoundingClientRect());
          const { right, bottom } = map.getBoundingClientRect();
          return {
            count: boxes.length,
            right: right - Math.max(...boxes.map((box) => box.right)),
            bottom: bottom - Math.max(...boxes.map((box) => box.bottom)),
          };
        });
      const large = await extent();
      assert.ok(large.count > 100, String(large.count));
      await page.setViewportSize({ width: 900, height: 600 });
      // It is drawn anew a moment later, with fewer boxes.
      await page.waitForFunction((count) => document.querySelectorAll("#map .map-box").length < count, large.count);
      const small = await extent();
      assert.ok(small.count > 100, String(small.count));
      for (const { right, bottom } of [large, small])
        assert.ok(right > -1 && right < 8 && bottom > -1 && bottom < 8, `${right} ${bottom}`);
      await page.locator("#search").fill("ActiveRecord");
      await page.waitForSelector(".map-box.found");
    },
  );
});

test("the map leads to a row of the tree that is far down, with the focus", async () => {
  const url = writePage("heap-alike", heapBytes(shopHeap({ tree: rows(alike(200)) })));
  await visit(`${url}#view=map&row=150`, async (page) => {
    await page.locator("#map").focus();
    assert.match(await cursor(page), /^H149, /);
    await page.keyboard.press("h");
    assert.match(await page.locator("tbody tr:focus").innerText(), /H149\s*Hash$/);
    await page.goBack();
    await page.getByRole("button", { name: "Show in the tree" }).click();
    await page.keyboard.press("ArrowDown");
    assert.match(await page.locator("tbody tr:focus").innerText(), /H150\s*Hash$/);
  });
});

test("the map marks a box around what is too small for one, and a link to that says so", async () => {
  const small = { name: "@small", class: "Needle", objects: 1, bytes: 400 };
  const drafts = [{ name: "A", class: "Hash", objects: 1, bytes: 40_000_000, kids: [small] }, ...alike(3)];
  const url = writePage("heap-small", heapBytes(shopHeap({ tree: rows(drafts) })));
  await visit(`${url}#view=map&search=needle`, async (page) => {
    assert.deepEqual(await page.locator(".map-box.found").allInnerTexts(), [
      await page.locator(".map-box", { hasText: /^A/ }).innerText(),
    ]);
    assert.doesNotMatch(await text(page, ".tools"), /too small/);
    await page.keyboard.press("2");
    await page.getByRole("button", { name: "@small Needle" }).click();
    assert.equal(await crumbs(page), "All: 38.2 MB › A");
    assert.match(await text(page, ".tools"), /@small Needle: too small to be drawn \(400 B\)/);
    await page.getByRole("button", { name: "Zoom out" }).click();
    assert.doesNotMatch(await text(page, ".tools"), /too small/);
  });
});
