import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { axeViolations, openBrowser, openPage } from "../support/browser.ts";

declare const VIEWER: string;

/** A Ruby app under Rperf::Viewer, and where it is. */
async function startApp(environment: string): Promise<{ app: ChildProcess; address: string }> {
  const root = join(VIEWER, "..");
  // bin/env builds the extension first, if it is stale.
  const app = spawn(join(root, "bin", "env"), ["ruby", join(VIEWER, "test", "support", "middleware.rb")], {
    env: { ...process.env, RACK_ENV: environment, RAILS_ENV: "", APP_ENV: "" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const port = await new Promise<string>((done, fail) => {
    let text = "";
    app.stdout?.on("data", (part) => {
      text += part;
      const port = /^(\d+)\n/m.exec(text)?.[1];
      if (port) done(port);
    });
    app.on("exit", (status) => fail(new Error(`the app ended with ${status} before it served`)));
  });
  return { app, address: `http://127.0.0.1:${port}` };
}

let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

test("snapshots of a Ruby app are taken, shown, compared, saved, deleted and dropped", async () => {
  const { app, address } = await startApp("development");
  const { page, errors, requests } = await openPage(browser, `${address}/rperf`);
  const rows = () => page.locator(".plain tbody tr").count();
  const hasRows = (count: number) =>
    page.waitForFunction((count) => document.querySelectorAll(".plain tbody tr").length === count, count);
  const names = () => page.locator(".plain tbody th").allInnerTexts();
  const take = () => page.getByRole("button", { name: "Take a snapshot" }).click();
  const call = async (path: string) => assert.equal((await fetch(address + path)).status, 200);
  try {
    await page.getByText("There is no snapshot yet.").waitFor();
    await call("/price");
    await take();
    await page.waitForFunction(() => document.title.startsWith("snapshot 1 "));
    await page.locator("#tab-top").click();
    await page.getByText("Shop.price").first().waitFor();
    assert.equal(await page.getByText("Shop.ship").count(), 0);
    assert.match(await page.locator(".words").innerText(), /of wall time/);

    await call("/ship");
    await page.locator("#tab-snapshots").click();
    await hasRows(1);
    assert.match(await page.locator("h2").innerText(), /^Snapshots of process \d+$/);
    await take();
    await hasRows(2);
    assert.deepEqual(await names(), ["snapshot 2", "snapshot 1"]);

    await page.getByRole("button", { name: "snapshot 1 as base" }).click();
    await page.getByRole("button", { name: "snapshot 2 as target" }).click();
    await page.waitForSelector(".verdict");
    assert.match(await page.title(), /^snapshot 1 → snapshot 2 /);
    const panel = await page.locator("#panel").innerText();
    assert.match(
      panel,
      /\nSlower\n.*new\t0 s\t[^\t]*\t[^\t]*\tShop\.ship.*\nFaster\n.*gone\t[^\t]*\t0 s\t[^\t]*\tShop\.price/s,
    );

    await page.locator("#tab-snapshots").click();
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "save: snapshot 2" }).click();
    const file = await download;
    assert.match(file.suggestedFilename(), /^rperf-\d+-2\.pb\.gz$/);
    assert.deepEqual([...readFileSync(await file.path()).subarray(0, 2)], [0x1f, 0x8b]);

    page.once("dialog", (dialog) => dialog.dismiss());
    await page.getByRole("button", { name: "delete: snapshot 1" }).click();
    assert.equal(await rows(), 2);
    page.once("dialog", (dialog) => dialog.accept());
    await page.getByRole("button", { name: "delete: snapshot 1" }).click();
    await hasRows(1);
    for (const count of [2, 3, 3]) {
      await take();
      await page.getByRole("status").filter({ hasText: "was taken" }).waitFor();
      await hasRows(count);
    }
    await page.getByText("1 older snapshot was dropped: no more than 3 are kept, and no more than 64 MB.").waitFor();
    assert.deepEqual(await names(), ["snapshot 5", "snapshot 4", "snapshot 3"]);

    for (const colorScheme of ["light", "dark"] as const) {
      const list = await openPage(browser, `${address}/rperf/#view=snapshots`, { colorScheme, bypassCSP: true });
      await list.page.getByRole("button", { name: "delete: snapshot 5" }).waitFor();
      assert.deepEqual(await axeViolations(list.page), [], colorScheme);
      await list.page.context().close();
    }

    assert.deepEqual(errors, []);
    assert.deepEqual(
      requests.filter((url) => !url.startsWith(`${address}/rperf/`)),
      [],
    );
  } finally {
    await page.context().close();
    app.stdin?.end();
  }
});

test("outside of development the viewer is closed, and the app runs", async () => {
  const { app, address } = await startApp("production");
  try {
    const refused = await fetch(`${address}/rperf/`);
    assert.equal(refused.status, 403);
    assert.match(await refused.text(), /^The viewer is closed: .* needs auth:/);
    assert.equal((await fetch(`${address}/price`)).status, 200);
  } finally {
    app.stdin?.end();
  }
});
