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

// What the page is to keep, measured in a headless Chromium without a GPU, at 1600x900. A test fails at twice the target.
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

async function open(name: string, data: Uint8Array): Promise<{ page: Page; url: string }> {
  const url = writePage(name, data);
  const { page } = await openPage(browser, url);
  await page.waitForFunction(() => performance.getEntriesByName("rperf-shown").length > 0);
  await page.evaluate(SHOWN);
  return { page, url };
}

const marks = (page: Page) =>
  page.evaluate(() => {
    const at = (name: string) => performance.getEntriesByName(name)[0].startTime;
    return { decoded: at("rperf-decoded"), shown: at("rperf-shown") };
  });

test("the size of the page", () => {
  const page = readFileSync(join(VIEWER, "..", "lib", "rperf", "viewer", "viewer.html"));
  within("viewer.html", page.length / 1e3, 120, "KB");
  within("viewer.html, gzip", gzipSync(page).length / 1e3, 45, "KB");
});

test("first paint of 10k, 100k and 500k nodes, on decoded data", async () => {
  for (const [nodes, target] of [
    [10_000, 250],
    [100_000, 500],
  ]) {
    const { page } = await open(`bench-${nodes}`, encode(generateTree({ nodes })));
    const { decoded, shown } = await marks(page);
    within(`first paint, ${nodes / 1e3}k nodes`, shown - decoded, target, "ms");
    await page.context().close();
  }
});

test("500k nodes: paint, zoom, redraw, search, invert, sandwich, memory", async () => {
  const { page } = await open("bench-500000", encode(generateTree({ nodes: 500_000 })));
  const { decoded, shown } = await marks(page);
  within("first paint, 500k nodes", shown - decoded, 700, "ms");

  const zooms: number[] = [];
  for (let i = 0; i < 15; i++) {
    zooms.push(
      await page.evaluate((i) => {
        const flame = document.getElementById("flame") as HTMLElement;
        const bounds = flame.getBoundingClientRect();
        const [clientX, clientY] = [bounds.left + 5 + 37 * i, bounds.top + 10 + 20 * (1 + (i % 7))];
        const shown = (window as unknown as { shown(act: () => void): Promise<number> }).shown;
        return shown(() => flame.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX, clientY })));
      }, i),
    );
    await page.evaluate(() => document.querySelector<HTMLElement>(".crumbs button")?.click());
    await page.waitForTimeout(30);
  }
  within("zoom, 500k nodes, median", median(zooms), 40, "ms");
  within("zoom, 500k nodes, largest", Math.max(...zooms), 100, "ms");

  const redraws: number[] = [];
  for (let i = 0; i < 15; i++) {
    redraws.push(
      await page.evaluate(
        () =>
          new Promise<number>((done) => {
            let start = 0;
            requestAnimationFrame(() => {
              start = performance.now();
            });
            document.getElementById("flame")?.dispatchEvent(new Event("scroll"));
            requestAnimationFrame(() => done(performance.now() - start));
          }),
      ),
    );
  }
  within("redraw in JavaScript, 500k nodes", median(redraws), 30, "ms");

  const searching = await page.evaluate(() => {
    const input = document.getElementById("search") as HTMLInputElement;
    input.value = "method_7";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    return (window as unknown as { shown(act: () => void): Promise<number> }).shown(() =>
      input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })),
    );
  });
  within("search, 500k nodes", searching, 150, "ms");

  const inverting = await page.evaluate(() =>
    (window as unknown as { shown(act: () => void): Promise<number> }).shown(() =>
      [...document.querySelectorAll<HTMLElement>("button")]
        .find((button) => button.textContent === "Inverted")
        ?.click(),
    ),
  );
  within("invert, 500k nodes", inverting, 200, "ms");
  const sandwich = await page.evaluate(() => {
    const flame = document.getElementById("flame") as HTMLElement;
    const bounds = flame.getBoundingClientRect();
    return (window as unknown as { shown(act: () => void): Promise<number> }).shown(() =>
      flame.dispatchEvent(
        new MouseEvent("dblclick", { bubbles: true, clientX: bounds.left + 5, clientY: bounds.top + 10 }),
      ),
    );
  });
  within("sandwich, 500k nodes", sandwich, 200, "ms");

  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  within(
    "JavaScript heap, 500k nodes",
    (metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? 0) / 1e6,
    100,
    "MB",
  );
  await page.context().close();
});

test("100k stacks of 54 frames: the file, opening it, and a filter", async () => {
  const { page, url } = await open("bench-stacks", encode(generateStacks({ stacks: 100_000 })));
  within("file, 100k stacks", statSync(fileURLToPath(url)).size / 1e6, 6.5, "MB");
  const { shown } = await marks(page);
  within("open to first paint, 100k stacks", shown, 1500, "ms");
  const filters: number[] = [];
  for (const value of ["1", "2", "3", "4", "5"]) {
    filters.push(
      await page.evaluate(
        (value) =>
          (window as unknown as { shown(act: () => void): Promise<number> }).shown(() => {
            location.hash = `tagfocus=endpoint=${value}`;
            dispatchEvent(new Event("hashchange"));
          }),
        value,
      ),
    );
  }
  within("filter by label, 100k stacks", median(filters), 200, "ms");
  await page.context().close();
});
