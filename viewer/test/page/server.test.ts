import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { openBrowser, openPage } from "../support/browser.ts";
import { encode } from "../support/encode.ts";
import { example, exampleDiff } from "../support/example.ts";

declare const VIEWER: string;

/** Answers as docs/internals/viewer-format.md says, with the headers that a server is to send. */
function fakeServer(): { server: Server; asked: string[] } {
  const asset = join(VIEWER, "..", "lib", "rperf", "viewer");
  const page = readFileSync(join(asset, "viewer.html"), "utf8").split("@RPERF_DATA@").join("server:./");
  const csp = /^csp (.*)$/m.exec(readFileSync(join(asset, "viewer.lock"), "utf8"))?.[1] ?? "";
  const ids = ["1", "2"];
  const asked: string[] = [];
  const profile = (id: string) => {
    const draft = example();
    const rows = draft.profiles[id === "1" ? 1 : 0];
    return encode({ ...draft, profiles: [{ ...rows, meta: { ...rows.meta, title: `snapshot ${id}` } }] });
  };
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(`${request.method} ${path}`);
    const data = (bytes: Uint8Array) => {
      response.setHeader("Content-Type", "application/octet-stream");
      response.end(gzipSync(bytes));
    };
    if (path === "/rperf/") {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      response.setHeader("Content-Security-Policy", csp);
      response.end(page);
    } else if (path === "/rperf/snapshots.json") {
      const snapshots = ids.map((id) => ({
        id,
        title: `snapshot ${id}`,
        start_ms: 1.79e12,
        duration_ns: 1e9,
        samples: 1200,
      }));
      response.end(JSON.stringify({ snapshots: [...snapshots, { id: "../etc" }], can_take: true }));
    } else if (path === "/rperf/snapshots" && request.method === "POST" && request.headers["x-rperf"] === "1") {
      ids.push(String(ids.length + 1));
      response.end(JSON.stringify({ id: ids[ids.length - 1] }));
    } else if (/^\/rperf\/snapshots\/[12]\.rpv$/.test(path)) data(profile(path.charAt(17)));
    else if (path === "/rperf/diff/1/2.rpv") data(exampleDiff());
    else {
      response.statusCode = 404;
      response.end("no such snapshot\nmore");
    }
  });
  return { server, asked };
}

let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

test("a server's page opens the newest snapshot, takes one, and compares two", async () => {
  const { server, asked } = fakeServer();
  await new Promise<void>((done) => {
    server.listen(0, "127.0.0.1", done);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rperf/`;
  const { page, errors } = await openPage(browser, url);
  try {
    await page.waitForSelector("#panel");
    assert.match(await page.title(), /^snapshot 2/);
    await page.locator("#tab-snapshots").click();
    await page.waitForSelector(".plain tbody tr");
    assert.equal(await page.locator(".plain tbody tr").count(), 2);
    await page.getByRole("button", { name: "show: snapshot 1" }).click();
    await page.waitForFunction(() => document.title.startsWith("snapshot 1"));
    await page.locator("#tab-snapshots").click();
    await page.getByRole("button", { name: "Take a snapshot" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".plain tbody tr").length === 3);
    await page.getByRole("button", { name: "snapshot 1 as base" }).click();
    await page.getByRole("button", { name: "snapshot 2 as target" }).click();
    await page.waitForSelector(".verdict");
    await page.locator("#tab-snapshots").click();
    await page.getByRole("button", { name: "Pause the list" }).click();
    assert.deepEqual(errors, []);
    await page.getByRole("button", { name: "show: snapshot 3" }).click();
    await page.waitForFunction(
      () => document.querySelector(".problem")?.textContent === "The server refused (404): no such snapshot",
    );
    await new Promise((done) => server.close(done) && server.closeAllConnections());
    await page.getByRole("button", { name: "show: snapshot 1" }).click();
    await page.waitForFunction(() =>
      document.querySelector(".problem")?.textContent?.startsWith("The server doesn't answer"),
    );
    assert.deepEqual(
      asked.filter((line) => line.includes("etc")),
      [],
    );
  } finally {
    await page.context().close();
    server.close();
  }
});
