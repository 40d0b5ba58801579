import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { openBrowser, openPage, writePage } from "../support/browser.ts";
import { encode } from "../support/encode.ts";
import { generateStacks, generateTree } from "../support/generate.ts";

declare const VIEWER: string;

// What the page is to keep, measured in a headless Chromium without a GPU, at 1600x900. Each figure is the best of three; a
// test fails at twice the target.
let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

function within(what: string, value: number, target: number, unit: string) {
  const shown = value < 10 ? value.toFixed(1) : value.toFixed(0);
  console.log(
    `${value <= target ? "ok  " : value <= 2 * target ? "over" : "FAIL"} ${what}: ${shown} ${unit} (target ${target} ${unit})`,
  );
  assert.ok(value <= 2 * target, `${what}: ${shown} ${unit} is more than twice ${target} ${unit}`);
}

const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

/** Runs in the page: the time from an action until what it changed is on the screen. */
const SHOWN = `window.shown = (act) => new Promise((done) => {
  const start = performance.now();
  act();
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})`;

async function open(url: string): Promise<Page> {
  const { page } = await openPage(browser, url);
  await page.waitForFunction(() => performance.getEntriesByName("rperf-shown").length > 0);
  await page.evaluate(SHOWN);
  return page;
}

test("the size of the page", () => {
  const page = readFileSync(join(VIEWER, "..", "lib", "rperf", "viewer", "viewer.html"));
  within("viewer.html", page.length / 1e3, 215, "KB");
  within("viewer.html, gzip", gzipSync(page).length / 1e3, 80, "KB");
});

type Figures = Record<string, number>;

/** Opens the page three times, and keeps the best of each figure: what others do on the machine only adds. */
async function best(url: string, measure: (page: Page) => Promise<Figures>): Promise<Figures> {
  const figures: Figures = {};
  for (let round = 0; round < 3; round++) {
    const page = await open(url);
    for (const [name, value] of Object.entries(await measure(page))) {
      figures[name] = Math.min(figures[name] ?? Number.POSITIVE_INFINITY, value);
    }
    await page.context().close();
  }
  return figures;
}

/** Time from decoded data until the page is on the screen, and since it was opened. */
async function firstPaint(page: Page): Promise<Figures> {
  return page.evaluate(() => {
    const at = (name: string) => performance.getEntriesByName(name)[0].startTime;
    return { paint: at("rperf-shown") - at("rperf-decoded"), opened: at("rperf-shown") };
  });
}

interface Timed {
  shown(act: () => void): Promise<number>;
}

const clickButton = (page: Page, name: string) =>
  page.evaluate(
    (name) =>
      (window as unknown as Timed).shown(() =>
        [...document.querySelectorAll<HTMLElement>("button")].find((button) => button.textContent === name)?.click(),
      ),
    name,
  );

/** A click or the like on the flame graph, at a place within it. */
const pointAt = (page: Page, type: string, x: number, y: number) =>
  page.evaluate(
    ([type, x, y]) => {
      const flame = document.getElementById("flame") as HTMLElement;
      const bounds = flame.getBoundingClientRect();
      const place = { bubbles: true, clientX: bounds.left + Number(x), clientY: bounds.top + Number(y) };
      return (window as unknown as Timed).shown(() => flame.dispatchEvent(new MouseEvent(String(type), place)));
    },
    [type, x, y],
  );

async function zooms(page: Page): Promise<number[]> {
  const times: number[] = [];
  for (let i = 0; i < 15; i++) {
    times.push(await pointAt(page, "click", 5 + 37 * i, 10 + 20 * (1 + (i % 7))));
    await page.evaluate(() => document.querySelector<HTMLElement>(".crumbs button")?.click());
    await page.waitForTimeout(30);
  }
  return times;
}

/** What a redraw takes in JavaScript: it runs between two callbacks of the same frame. */
const redraw = (page: Page) =>
  page.evaluate(
    () =>
      new Promise<number>((done) => {
        let start = 0;
        requestAnimationFrame(() => {
          start = performance.now();
        });
        document.getElementById("flame")?.dispatchEvent(new Event("scroll"));
        requestAnimationFrame(() => done(performance.now() - start));
      }),
  );

const search = (page: Page) =>
  page.evaluate(() => {
    const input = document.getElementById("search") as HTMLInputElement;
    input.value = "method_7";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    return (window as unknown as Timed).shown(() =>
      input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })),
    );
  });

async function heap(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? Number.NaN;
}

test("first paint of 10k and 100k nodes, on decoded data", async () => {
  for (const [nodes, target] of [
    [10_000, 250],
    [100_000, 500],
  ]) {
    const { paint } = await best(writePage(`bench-${nodes}`, encode(generateTree({ nodes }))), firstPaint);
    within(`first paint, ${nodes / 1e3}k nodes`, paint, target, "ms");
  }
});

test("500k nodes: paint, zoom, redraw, search, invert, sandwich, memory", async () => {
  const url = writePage("bench-500000", encode(generateTree({ nodes: 500_000 })));
  const figures = await best(url, async (page) => {
    const { paint } = await firstPaint(page);
    const zoomed = await zooms(page);
    return {
      paint,
      zoom: median(zoomed),
      largestZoom: Math.max(...zoomed),
      redraw: await redraw(page),
      search: await search(page),
      invert: await clickButton(page, "Inverted"),
      sandwich: await pointAt(page, "dblclick", 5, 10),
      heap: (await heap(page)) / 1e6,
    };
  });
  within("first paint, 500k nodes", figures.paint, 700, "ms");
  within("zoom, 500k nodes, median", figures.zoom, 40, "ms");
  within("zoom, 500k nodes, largest", figures.largestZoom, 100, "ms");
  within("redraw in JavaScript, 500k nodes", figures.redraw, 30, "ms");
  within("search, 500k nodes", figures.search, 150, "ms");
  within("invert, 500k nodes", figures.invert, 200, "ms");
  within("sandwich, 500k nodes", figures.sandwich, 200, "ms");
  within("JavaScript heap, 500k nodes", figures.heap, 100, "MB");
});

test("100k stacks of 54 frames: the file, opening it, and a filter", async () => {
  const url = writePage("bench-stacks", encode(generateStacks({ stacks: 100_000 })));
  within("file, 100k stacks", statSync(fileURLToPath(url)).size / 1e6, 6.5, "MB");
  const { opened, filter } = await best(url, async (page) => {
    const times: number[] = [];
    for (const value of ["1", "2", "3", "4", "5"]) {
      times.push(
        await page.evaluate(
          (value) =>
            (window as unknown as Timed).shown(() => {
              location.hash = `tagfocus=endpoint=${value}`;
              dispatchEvent(new Event("hashchange"));
            }),
          value,
        ),
      );
    }
    return { ...(await firstPaint(page)), filter: median(times) };
  });
  within("open to first paint, 100k stacks", opened, 1500, "ms");
  within("filter by label, 100k stacks", filter, 200, "ms");
});
