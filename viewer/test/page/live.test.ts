import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { openBrowser, openPage } from "../support/browser.ts";
import { encode } from "../support/encode.ts";
import { example } from "../support/example.ts";

declare const VIEWER: string;

/** The example's profile at a generation: each has other numbers for the same frames, and more time. */
function profile(generation: number): Uint8Array {
  const draft = example();
  const last = draft.frames.length - 1;
  const turned = generation % 2 === 1;
  const rows = draft.profiles[0];
  return encode({
    ...draft,
    frames: turned ? [...draft.frames].reverse() : draft.frames,
    nodes: turned ? draft.nodes.map((node) => ({ ...node, frame: last - node.frame })) : draft.nodes,
    profiles: [{ ...rows, meta: { ...rows.meta, title: `4711 puma ${generation}` } }],
  });
}

/** A server of a program that runs. */
async function liveServer() {
  const asset = join(VIEWER, "..", "lib", "rperf", "viewer");
  const page = readFileSync(join(asset, "viewer.html"), "utf8").split("@RPERF_DATA@").join("server:./");
  const program = { generation: 0, note: "4711 runs no Ruby code just now" as string | null, has_ended: false };
  const kept = { count: 0 };
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = (request.url ?? "").replace("/rperf/", "");
    asked.push(path);
    if (path === "") {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      response.end(page);
    } else if (path === "snapshots.json") {
      const snapshots = program.generation + kept.count > 0 ? [{ id: "1", title: "snapshot 1" }] : [];
      response.end(JSON.stringify({ snapshots, is_live: true }));
    } else if (path === "live.json") response.end(JSON.stringify(program));
    else if (path === "live.rpv") response.end(gzipSync(profile(program.generation)));
    else if (path === "snapshots/1.rpv") response.end(gzipSync(profile(0)));
    else response.writeHead(404).end("none");
  });
  await new Promise<void>((done) => {
    server.listen(0, "127.0.0.1", done);
  });
  return { server, program, kept, asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/rperf/` };
}

let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

const titled = (page: Page, title: string) => page.waitForFunction((it) => document.title.startsWith(it), title);

test("a live page renews itself and keeps the place, pauses, and says what has become of the program", async () => {
  const { server, program, asked, url } = await liveServer();
  const { page, errors } = await openPage(browser, url);
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const renewed = async () => {
    program.generation += 1;
    await titled(page, `4711 puma ${program.generation}`);
  };
  try {
    await page.getByText("4711 runs no Ruby code just now").waitFor();
    program.note = null;
    await renewed();

    // Zoom, search and the flame graph's cursor.
    await page.locator("#search").fill("Order");
    await page.locator("#flame").focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    const crumbs = () => page.locator(".crumbs").innerText();
    const zoomed = await crumbs();
    assert.match(zoomed, /dispatch/);
    await renewed();
    assert.equal(await crumbs(), zoomed);
    assert.equal(await page.locator("#search").inputValue(), "Order");
    // Also in what "back" and a reload lead to.
    await page.keyboard.press("Escape");
    assert.notEqual(await crumbs(), zoomed);
    await renewed();
    const isZoomed = () =>
      page.waitForFunction((it) => document.querySelector<HTMLElement>(".crumbs")?.innerText === it, zoomed);
    await page.goBack();
    await isZoomed();
    await renewed();
    await page.reload();
    await isZoomed();

    // Open rows of the call tree, and the one with the focus.
    await page.locator("#tab-tree").click();
    await page.locator("[role=treegrid] [data-active]").focus();
    for (const key of ["*", "ArrowUp", "ArrowUp"]) await page.keyboard.press(key);
    const names = () => page.locator("[role=treegrid] tbody .name").allInnerTexts();
    const active = () => page.evaluate(() => document.activeElement?.querySelector(".name")?.textContent);
    const [open, focused] = [await names(), await active()];
    assert.ok(open.length > 4);
    await renewed();
    assert.deepEqual([await names(), await active()], [open, focused]);
    await renewed();
    assert.deepEqual([await names(), await active()], [open, focused]);

    await button("Pause").click();
    await button("Go on").waitFor();
    // A look that was under way may end.
    await page.waitForTimeout(500);
    const before = asked.length;
    program.generation += 1;
    await page.waitForTimeout(1500);
    assert.equal(asked.length, before);
    await button("Go on").click();
    await titled(page, `4711 puma ${program.generation}`);

    // A snapshot stands still, until the page is to follow again.
    await page.locator("#tab-snapshots").click();
    await page.getByRole("button", { name: "show: snapshot 1" }).click();
    await titled(page, "snapshot 1");
    await button("Live").click();
    await titled(page, "4711 puma");
    await renewed();

    program.note = "4711 doesn't answer: thread 9 has kept the GVL";
    await page.getByText(program.note).first().waitFor();
    Object.assign(program, { note: "the program 4711 has ended", has_ended: true });
    await page.getByText("the program 4711 has ended").first().waitFor();
    assert.equal(await button("Pause").count(), 0);
    assert.deepEqual(errors, []);
  } finally {
    await page.context().close();
    server.close();
  }
});

test("a live page says that its server has gone", async () => {
  const { server, program, url } = await liveServer();
  Object.assign(program, { generation: 1, note: null });
  const { page } = await openPage(browser, url);
  try {
    await titled(page, "4711 puma 1");
    await new Promise((done) => server.close(done) && server.closeAllConnections());
    await page.getByText("The server doesn't answer").first().waitFor();
  } finally {
    await page.context().close();
  }
});

test("the newest snapshot stands in for what isn't there yet, with the reason beside it", async () => {
  const { server, program, kept, url } = await liveServer();
  kept.count = 1;
  program.note = "the session traces calls";
  const { page, errors } = await openPage(browser, url);
  try {
    await titled(page, "snapshot 1");
    await page.locator("header").getByText("the session traces calls").waitFor();
    program.note = "4711 runs no Ruby code just now";
    await page.locator("header").getByText(program.note).waitFor();
    Object.assign(program, { generation: 1, note: null });
    await titled(page, "4711 puma 1");
    // Of a program that has ended, too.
    Object.assign(program, { generation: 0, note: "the program 4711 has ended", has_ended: true });
    await page.reload();
    await titled(page, "snapshot 1");
    await page.locator("header").getByText(program.note).waitFor();
    assert.deepEqual(errors, []);
  } finally {
    await page.context().close();
    server.close();
  }
});
