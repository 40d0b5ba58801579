// The tab "Requests": of a made-up shop, and of a server's profile, with the numbers that the command tells.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { opsByTime } from "../../src/model/ops.ts";
import { allTimes, fullName } from "../../src/model/requests.ts";
import * as pages from "../support/browser.ts";
import {
  assertFits,
  axeViolations,
  chips,
  hash,
  NARROW_AND_FORCED,
  openBrowser,
  text,
  writePage,
} from "../support/browser.ts";
import { Checkout, ROOT } from "../support/checkout.ts";
import { type Draft, encode } from "../support/encode.ts";
import { exampleReport } from "../support/example.ts";
import { shopThatWaits, slowShop } from "../support/requests.ts";
import { opsJson, rounded, sumsJson, timesJson, whyJson } from "../support/told.ts";

const checkout = new Checkout("requests");
let browser: Browser;
let shop: string;
before(async () => {
  browser = await openBrowser();
  shop = `${writePage("shop", encode(slowShop()))}#view=requests`;
});
after(() => browser?.close());

const visit = (url: string, steps: (page: Page) => Promise<void>, options?: BrowserContextOptions) =>
  pages.visit(browser, url, steps, options);

test("without requests there is no tab, and its URL shows another view", async () => {
  await visit(`${writePage("no-requests", exampleReport())}#view=requests`, async (page) => {
    assert.equal(await page.locator("#tab-requests").count(), 0);
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
  });
});

test("the endpoint whose tail costs most is explained at once, another by a click or a key", async () => {
  await visit(shop, async (page) => {
    const rows = await page.locator(".table-box tbody tr").allInnerTexts();
    assert.match(rows[0], /225\s+3\.00 ms\s+0 s\s+65\.0 ms\s+65\.0 ms\s+5 %\s+0 %\s+94 %\s+2 %\s+GET \/orders, all/);
    assert.match(rows[2], /4\s.*250 ms\s+–\s+–\s+–\s+–\s+job=ExportJob/);
    const shown = () => text(page, "section[aria-label='Why its slow requests are slow']");
    assert.match(await shown(), /^GET \/orders, all\s+225 requests: 100 first, 100 typical, 25 tail\. p50 3\.00 ms/);
    assert.match(
      await shown(),
      /2\.00 ms\s+60\.0 ms\s+\+58\.0 ms\s+blocked Kernel#sleep, in Shop#load\s*app\/shop\.rb:18[\s\S]*\+1,000\s+objects/,
    );
    assert.match(await shown(), /7\.00 ms of requests that had not ended/);
    await page.getByRole("button", { name: "GET /cart" }).click();
    assert.match(
      await shown(),
      /^GET \/cart[\s\S]*GVL wait had by job=ExportJob 87\.5 %: Hog#spin\s*app\/export\.rb:9[\s\S]*80\.0 ms\s+10\.0 %\s+\[GVL hand-over\]\n/,
    );
    assert.equal((await hash(page)).get("request"), "endpoint=GET /cart");
    assert.equal(await page.locator(".table-box [aria-current]").innerText(), "GET /cart");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    assert.match(await shown(), /^job=ExportJob[\s\S]*No request was judged[\s\S]*250 ms/);
    assert.doesNotMatch(await shown(), /What a request took/);
    await page.goBack();
    assert.match(await shown(), /^GET \/cart/);
  });
});

test("the table is sorted by any column, and the URL restores all of it", async () => {
  await visit(shop, async (page) => {
    const names = () => page.locator(".table-box tbody th").allInnerTexts();
    const sort = (name: string) => page.locator(".table-box thead").getByRole("button", { name }).click();
    await sort("GVL wait");
    assert.deepEqual(await names(), ["GET /cart", "GET /orders, all", "job=ExportJob"]);
    await sort("max");
    assert.deepEqual(await names(), ["job=ExportJob", "GET /orders, all", "GET /cart"]);
    await sort("endpoint");
    assert.deepEqual(await names(), ["GET /cart", "GET /orders, all", "job=ExportJob"]);
    await page.getByRole("button", { name: "GET /cart" }).click();
    const found = String(await hash(page));
    await visit(`${shop.split("#")[0]}#${found}`, async (again) => {
      assert.deepEqual(await again.locator(".table-box tbody th").allInnerTexts(), await names());
      assert.equal(await text(again, "h2.subject"), "GET /cart");
    });
    // Other tables have an order of their own.
    await page.keyboard.press("2");
    assert.match(await text(page, ".table-box thead th[aria-sort=descending]"), /self/);
  });
});

test("a method opens the flame graph of the tail, who had the GVL that of the blame", async () => {
  await visit(shop, async (page) => {
    await page.getByRole("button", { name: "Kernel#sleep, in Shop#load" }).first().click();
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
    assert.deepEqual(await chips(page), ["tagfocus endpoint=^GET /orders\\x2c all$", "tagfocus %latency=^tail$"]);
    assert.match(await text(page, ".crumbs"), /All: 1\.63 s/);
    await page.waitForFunction(() => document.querySelector(".search")?.textContent?.includes("1 method"));
    assert.equal((await hash(page)).get("method"), "Kernel#sleep\t<C method>");
    await page.goBack();
    assert.deepEqual(await chips(page), []);
    await page.getByRole("button", { name: "Flame graph of typical ones" }).click();
    assert.match(await text(page, ".crumbs"), /All: 300 ms/);
    // What is filtered already isn't filtered twice, and the other class takes the place of this one.
    await page.locator("#tab-requests").click();
    assert.match(await text(page, ".requests .tools"), /Methods and who had the GVL are of what passes the filters/);
    await page.getByRole("button", { name: "Flame graph of the tail" }).click();
    assert.equal((await chips(page)).length, 2);
    assert.match(await text(page, ".crumbs"), /All: 1\.63 s/);
    await page.getByRole("button", { name: "Remove all" }).click();
    await page.locator("#tab-requests").click();
    await page.getByRole("button", { name: "GET /cart" }).click();
    await page.locator(".requests").getByRole("button", { name: "Hog#spin" }).first().click();
    assert.equal((await hash(page)).get("type"), "gvl_blame");
    assert.deepEqual(await chips(page), ["tagfocus job=^ExportJob$"]);
    assert.match(await text(page, ".crumbs"), /All: 720 ms/);
  });
});

const SUMS = "table:has(caption:text('Its ops: sums of all calls'))";
const MEANS = "table:has(caption:text('What its ops took per request'))";

test("an endpoint has a table of its ops, with what it calls again and again and the line", async () => {
  await visit(shop, async (page) => {
    assert.match(
      await text(page, MEANS),
      /0 s\s+60\.0 ms\s+\+60\.0 ms\s+0\s+1\s+\[HTTP\] GET rates\.example\.com\s+2\.00 ms\s+2\.00 ms\s+0 s\s+5\s+5\s+\[SQL\] SELECT \* FROM items WHERE id = \?\s*N\+1\s*Shop#load app\/shop\.rb:18/,
    );
    assert.match(
      await text(page, SUMS),
      /1\.50 s\s+25\s+1\s+1\.40 s\s+50\.0 ms\s+25\.0 ms\s+25\.0 ms\s+55\.0 ms\s+58\.0 ms\s+–\s+\[HTTP\]/,
    );
    assert.match(
      await text(page, SUMS),
      /450 ms\s+1,125\s+5\s+405 ms\s+0 s\s+45\.0 ms\s+0 s\s+360 µs\s+400 µs\s+2,250\s+\[SQL\]/,
    );
    assert.match(await text(page, ".requests"), /N\+1: one request of ten at least calls it 5 times or more/);
    await page.getByRole("button", { name: "GET /cart" }).click();
    assert.equal(await page.locator(SUMS).count(), 0);
    assert.doesNotMatch(await text(page, ".requests"), /N\+1/);
  });
});

test("what isn't known of a wait for the GVL has a row, as long as it is worth one", async () => {
  const waits = (draft: Draft) => `${writePage("waits", encode(draft))}#view=requests&request=endpoint%3DGET+/cart`;
  const holders = "table:has(caption:text('Who had the GVL'))";
  const known = shopThatWaits();
  // Of 29.5 ms the job had 14, and orders 15.
  for (const row of known.profiles[0].rows)
    if (row.node === 7 && row.values[3] === 250 * 1e6) row.values[3] = 375 * 1e6;
  await visit(
    waits(shopThatWaits()),
    async (page) => {
      const rows = await page.locator(`${holders} tbody tr`).allInnerTexts();
      assert.equal(rows.length, 3);
      assert.match(rows[2], /^\s*18\.6 %\s+\(not known: nobody, or many for a short time each\)$/);
      assert.match(
        await text(page, ".requests"),
        /had by endpoint=GET \/orders, all 50\.8 %: .*; 18\.6 % isn't known/s,
      );
      assert.deepEqual(await axeViolations(page), []);
    },
    { bypassCSP: true },
  );
  await visit(waits(known), async (page) => {
    assert.equal(await page.locator(`${holders} tbody tr`).count(), 2);
    assert.doesNotMatch(await text(page, ".requests"), /known/);
  });
});

test("who had the GVL is told of the requests that waited, or else of all others that did", async () => {
  const holders = (page: Page) => page.locator("table:has(caption:text('Who had the GVL'))").innerText();
  const cart = "&request=endpoint%3DGET+/cart";
  await visit(shop + cart, async (page) => {
    assert.match(await holders(page), /^Who had the GVL while others waited for it, whoever they were, in the whole/);
    assert.match(await holders(page), /waits\s+share\s+who.*\s+700 ms\s+87\.5 %\s+job=ExportJob Hog#spin/);
  });
  await visit(`${shop}${cart}&tagfocus=job%3DExportJob`, async (page) => {
    assert.match(await holders(page), /whoever they were, in all that passes the filters\s/);
    assert.doesNotMatch(await holders(page), /hand-over/);
  });
  await visit(`${writePage("waits", encode(shopThatWaits()))}#view=requests${cart}`, async (page) => {
    assert.match(await holders(page), /^Who had the GVL while these requests waited for it, per request, by samples/);
    assert.match(await holders(page), /typical\s+tail\s+share\s+who/);
    assert.doesNotMatch(await holders(page), /others/);
  });
});

test("why collections ran is a table, by what they took of the tail", async () => {
  const causes = "table:has(caption:text('Why these collections ran, per request, by samples'))";
  const draft = slowShop();
  const labelSets = draft.labelSets ?? [];
  const [, typical, tail] = labelSets;
  const collections: [of: typeof typical, cause: string, ms: number][] = [
    [tail, "minor <b>newobj</b>", 20],
    [tail, "major oldgen", 30],
    [typical, "major oldgen", 100],
    // It takes less of the tail than of typical ones.
    [typical, "major GC.start", 10],
  ];
  const [profile] = draft.profiles;
  for (const [of, cause, ms] of collections) {
    const labelSet = labelSets.push([...of, ["%gc", cause]]) - 1;
    profile.rows.push({ node: 9, labelSet, state: 3, thread: 0, values: [1, ms * 1e6, 0] });
  }
  await visit(
    `${writePage("collections", encode(draft))}#view=requests`,
    async (page) => {
      assert.match(
        await text(page, causes),
        /typical\s+tail\s+difference\s+share\s+cause\s+0 s\s+800 µs\s+\+800 µs\s+40\.0 %\s+minor <b>newobj<\/b>\s+1\.00 ms\s+1\.20 ms\s+\+200 µs\s+10\.0 %\s+major oldgen$/,
      );
      assert.doesNotMatch(await text(page, causes), /GC\.start/);
      assert.deepEqual(await axeViolations(page), []);
      await page.getByRole("button", { name: "GET /cart" }).click();
      assert.equal(await page.locator(causes).count(), 0);
    },
    { bypassCSP: true },
  );
});

test("an endpoint is a filter for all views", async () => {
  await visit(shop, async (page) => {
    await page.getByRole("button", { name: "job=ExportJob" }).click();
    await page.getByRole("button", { name: "Only these requests, in all views" }).click();
    // Not the job that a request has run.
    assert.deepEqual(await chips(page), ["tagfocus job=^ExportJob$", "tagignore endpoint=.*"]);
    assert.match(await text(page, ".words"), /puma: 1\.00 s of wall time/);
    await page.keyboard.press("8");
    assert.equal(await text(page, "h2.subject"), "job=ExportJob");
  });
});

test("axe finds nothing, whatever is explained, light and dark", async () => {
  for (const colorScheme of ["light", "dark"] as const)
    for (const more of ["", "&request=endpoint%3DGET+/cart", "&request=job%3DExportJob", "&tagfocus=%25latency%3Dtail"])
      await visit(
        shop + more,
        async (page) => {
          await page.waitForSelector("h2.subject");
          assert.deepEqual(await axeViolations(page), [], `${more} ${colorScheme}`);
        },
        { colorScheme, bypassCSP: true },
      );
});

test("it works at 200 % zoom, on a narrow window and with forced colours", async () => {
  for (const options of NARROW_AND_FORCED)
    await visit(
      shop,
      async (page) => {
        await page.getByRole("button", { name: "GET /cart" }).click();
        assert.ok(await page.locator(".requests").getByRole("button", { name: "Hog#spin" }).first().isVisible());
        await assertFits(page);
      },
      options,
    );
});

const rperf = (...args: string[]) => checkout.rperf(...args);

/** The answer of `rperf why --json` with the paths that the page shows, which are the short ones. */
const whyTold = (...args: string[]) =>
  JSON.parse(rperf("why", ...args, "--json"), (_, value) => {
    if (value?.short_path === undefined) return value;
    const { short_path: path, ...rest } = value;
    return { ...rest, path };
  });

test("a server's requests: the numbers of rperf why --json, of each endpoint and job", async () => {
  checkout.ruby(join(ROOT, "spec", "fixtures", "slow_requests.rb"));
  rperf("report", "slow.pb.gz", "--html", "-o", "page.html");
  const file = checkout.dataOf("page.html");
  const all = allTimes(file.profiles[0].requests.all());
  assert.deepEqual(all.map(timesJson), whyTold("slow.pb.gz").endpoints);
  assert.deepEqual(all.map(({ requests }) => requests.name).sort(), [
    "ExportJob",
    "GET /about",
    "GET /cart",
    "GET /orders",
  ]);
  for (const { requests } of all) {
    const told = whyTold("slow.pb.gz", fullName(requests));
    for (const slow of told.slowest) {
      slow.ended_at_ms = Math.floor(slow.ended_at_ns / 1e6);
      delete slow.ended_at_ns;
    }
    for (const it of [...told.holders, ...told.collections]) it.share = rounded(it.share);
    delete told.version;
    if (told.unknown_share !== null) told.unknown_share = rounded(told.unknown_share);
    assert.deepEqual(whyJson(file, requests), told, requests.name);
  }
  const url = `${pathToFileURL(checkout.path("page.html")).href}#view=requests&request=`;
  const parts = "table:has(caption:text('What a request took'))";
  await visit(`${url}endpoint%3DGET+/orders`, async (page) => {
    assert.match(await text(page, parts), /blocked Kernel#sleep, in Shop#slow_query\s*\S*slow_requests\.rb:10\n/);
    const slowest = page.locator("table:has(caption:text('The slowest requests')) button");
    assert.equal(await slowest.count(), 5);
    await slowest.first().click();
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
    assert.match((await chips(page)).join(), /^tagfocus %request=\^[\da-f]{8}-\d+\$$/);
    assert.match(await text(page, ".summary"), /of wall time \([\d.]+ % of all; filters are on\)/);
  });
  await visit(`${url}endpoint%3DGET+/cart`, async (page) => {
    assert.match(await text(page, parts), /GVL wait had by job=ExportJob [\d.]+ %: .*Hog#spin/);
  });
});

test("a server's ops: the numbers of rperf why --json and rperf report --ops, and a way to their samples", async () => {
  checkout.ruby(join(ROOT, "viewer", "test", "support", "ops.rb"));
  rperf("report", "ops.pb.gz", "--html", "-o", "ops.html");
  const all = checkout.dataOf("ops.html").profiles[0].requests.all();
  const [about, orders] = all;
  assert.deepEqual([about.name, about.ops, orders.name], ["GET /about", [], "GET /orders"]);
  const told = whyTold("ops.pb.gz", fullName(orders));
  assert.deepEqual(opsJson(orders), told.ops);
  assert.match(orders.ops.find((op) => op.name.startsWith("[SQL]"))?.app?.name ?? "", / in Shop#items$/);
  const { ops, repeats } = JSON.parse(rperf("report", "ops.pb.gz", "--format", "json", "--ops")).ops;
  // All of them are of this endpoint.
  const sums = ({ method: _, path: __, line: ___, ...sums }: Record<string, unknown>) => sums;
  assert.deepEqual(opsByTime(orders.ops).map(sumsJson), ops.map(sums));
  assert.deepEqual(
    orders.ops.filter(({ repeated }) => repeated > 0).map(({ name, requests, repeated }) => [name, requests, repeated]),
    repeats.map((it: Record<string, unknown>) => [it.name, it.requests, it.repeated]),
  );
  assert.equal(repeats.length, 1);
  const url = `${pathToFileURL(checkout.path("ops.html")).href}#view=requests&request=endpoint%3DGET+/orders`;
  await visit(url, async (page) => {
    assert.match(
      await text(page, SUMS),
      /\[SQL\] SELECT \* FROM items WHERE id = \?\s*N\+1\s*block \(2 levels\) in Shop#items \S*ops\.rb:9/,
    );
    await page.locator(SUMS).getByRole("button", { name: "[SQL] SELECT" }).click();
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
    assert.deepEqual(await chips(page), ["tagfocus endpoint=^GET /orders$"]);
    assert.equal((await hash(page)).get("method"), "[SQL] SELECT * FROM items WHERE id = ?\t<op>");
    await page.waitForFunction(() => document.querySelector(".search")?.textContent?.includes("1 method"));
  });
});
