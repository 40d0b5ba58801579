import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { toBase64 } from "./encode.ts";

declare const VIEWER: string;

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const PATHS = [
  process.env.RPERF_CHROMIUM ?? "",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];
const DIRECTORY = join(VIEWER, "node_modules", ".cache", "pages");

/** The system's Chromium. RPERF_CHROMIUM names another. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = PATHS.find((path) => path !== "" && existsSync(path));
  if (!executablePath) throw new Error("no Chromium: apt-get install chromium, or set RPERF_CHROMIUM");
  return chromium.launch({ executablePath, args: ["--disable-gpu", "--no-sandbox"] });
}

/** Writes the page with this data in it, as the programs do, and returns its URL. */
export function writePage(name: string, data: Uint8Array | string): string {
  const asset = readFileSync(join(VIEWER, "..", "lib", "rperf", "viewer", "viewer.html"), "utf8");
  const parts = asset.split("@RPERF_DATA@");
  if (parts.length !== 2) throw new Error("the asset must have one @RPERF_DATA@");
  mkdirSync(DIRECTORY, { recursive: true });
  const path = join(DIRECTORY, `${name}.html`);
  writeFileSync(path, parts.join(typeof data === "string" ? data : toBase64(data)));
  return pathToFileURL(path).href;
}

/** What a page did that it must not do. */
export interface Watched {
  page: Page;
  requests: string[];
  errors: string[];
}

/** Opens a page and notes its requests, its errors and what its policy stopped. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1600, height: 900 }, ...options });
  const page = await context.newPage();
  const watched: Watched = { page, requests: [], errors: [] };
  page.on("request", (request) => {
    if (request.url() !== url.split("#")[0]) watched.requests.push(request.url());
  });
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") watched.errors.push(message.text());
  });
  page.on("pageerror", (error) => watched.errors.push(String(error)));
  await page.goto(url);
  await page.waitForSelector("#panel, .failed h1");
  return watched;
}

/** Opens a page for `steps`; it must make no requests and no errors. */
export async function visit(
  browser: Browser,
  url: string,
  steps: (page: Page) => Promise<void>,
  options: BrowserContextOptions = {},
) {
  const { page, requests, errors } = await openPage(browser, url, options);
  try {
    await steps(page);
    assert.deepEqual(errors, []);
    assert.deepEqual(requests, []);
  } finally {
    await page.context().close();
  }
}

/** A part of a view, and the rows of its table. */
export const section = (page: Page, name: string) => page.locator(`section[aria-label='${name}']`);
export const tableRows = (page: Page, name: string) => section(page, name).locator("tbody tr").allInnerTexts();

export const text = (page: Page, selector: string) => page.locator(selector).first().innerText();
/** The URL from `#` on, as the page has it: the browser tells of it later. */
export const fragment = (page: Page) => page.evaluate(() => location.hash);
export const hash = async (page: Page) => new URLSearchParams((await fragment(page)).slice(1));
/** The filters that are on: kind and text. */
export const chips = async (page: Page) =>
  (await page.locator(".chip").allInnerTexts()).map((chip) => chip.split("\n").slice(0, 2).join(" "));

/** Windows at 200 % zoom and of a telephone, and forced colours. */
export const NARROW_AND_FORCED: BrowserContextOptions[] = [
  { viewport: { width: 640, height: 480 } },
  { viewport: { width: 400, height: 800 } },
  { forcedColors: "active" },
];

/** The page is no wider than its window. */
export async function assertFits(page: Page) {
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
}

/** What axe finds in a page, which was opened with `bypassCSP`. */
export async function axeViolations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    return (await axe.run()).violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
  });
}
