// The tab "Tests": of a made-up suite, and of a real one, with the numbers that the command tells.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import * as pages from "../support/browser.ts";
import {
  assertFits,
  axeViolations,
  chips,
  fragment,
  NARROW_AND_FORCED,
  openBrowser,
  tableRows as rows,
  section,
  writePage,
} from "../support/browser.ts";
import { Checkout, ROOT } from "../support/checkout.ts";
import { encode } from "../support/encode.ts";
import { exampleReport } from "../support/example.ts";
import { slowShop } from "../support/requests.ts";
import { shopSuite, shopTests, suiteJson } from "../support/suite.ts";

const checkout = new Checkout("tests");
let browser: Browser;
let shop: string;
before(async () => {
  browser = await openBrowser();
  shop = `${writePage("suite", encode(shopTests()))}#view=tests`;
});
after(() => browser?.close());

const visit = (url: string, steps: (page: Page) => Promise<void>, options?: BrowserContextOptions) =>
  pages.visit(browser, url, steps, options);

test("without tests there is no tab, and its URL shows another view", async () => {
  await visit(`${writePage("no-tests", exampleReport())}#view=tests`, async (page) => {
    assert.equal(await page.locator("#tab-tests").count(), 0);
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
  });
});

test("tests, files and factories are told, with all that the suite took and what isn't in the page", async () => {
  await visit(shop, async (page) => {
    const all = await page.locator(".tests").innerText();
    assert.match(all, /^1,010 tests in 2 files: 200 ms; 14,300 objects/);
    assert.match(all, /running 50\.0 % 100 ms\s+GVL wait 5\.0 % 10\.0 ms\s+blocked 35\.0 % 70\.0 ms\s+GC 10\.0 %/);
    assert.match(all, /7 tests ran beyond those that have rows/);
    assert.match(all, /1,001 more are not in this page/);
    const tests = await rows(page, "Slowest tests");
    assert.equal(tests.length, 4);
    assert.match(
      tests[1],
      /^49\.0 ms\s+30\.0 ms\s+4\.00 ms\s+0 s\s+15\.0 ms\s+2,962\s+Cart <b>adds<\/b>\s*spec\/cart_spec\.rb\[1:1\]$/,
    );
    assert.match(tests[2], /–\s+OrderTest#test_total\s*spec\/orders_spec\.rb$/);
    const files = await rows(page, "Files");
    assert.match(files[0], /^119 ms\s+3\s+6\.00 ms\s+40\.0 ms.*9,000\s+spec\/cart_spec\.rb$/s);
    const factories = await rows(page, "Factories");
    assert.match(factories[1], /^4\.00 ms\s+13\.0 ms\s+4\s+4\s+1,200\s+team \(create\)$/);
  });
});

test("a long title gives way to the file and the id, which tell rows of shared examples apart", async () => {
  const draft = shopTests();
  const suite = shopSuite();
  const title = `Cart behaves like ${"a list of things ".repeat(20)}`.trim();
  const names = [1, 2].map((at) => `spec/features/checkout/cart_spec.rb[1:${at}:1:2]`);
  suite.tests = names.map((name) => ({ ...suite.tests[0], name, title, file: "spec/features/checkout/cart_spec.rb" }));
  draft.profiles[0].suite = suite;
  const url = `${writePage("long-titles", encode(draft))}#view=tests`;
  const options = { viewport: { width: 1_500, height: 900 } };
  await visit(
    url,
    async (page) => {
      const cells = section(page, "Slowest tests").locator("tbody th");
      const told = await cells.evaluateAll((all) =>
        all.map((cell) => {
          const [button, note] = [cell.querySelector("button"), cell.querySelector(".note")] as HTMLElement[];
          const right = Math.min(cell.getBoundingClientRect().right, document.documentElement.clientWidth);
          return {
            isCut: button.scrollWidth > button.clientWidth,
            note: note.innerText,
            isWhole: note.scrollWidth <= note.clientWidth && note.getBoundingClientRect().right <= right,
            title: cell.querySelector("[title]")?.getAttribute("title"),
          };
        }),
      );
      assert.deepEqual(
        told,
        names.map((note) => ({ isCut: true, note, isWhole: true, title: `${title}\n${note}` })),
      );
    },
    options,
  );
});

test("a test with samples opens the flame graph of these alone, one without stays, and so does its row", async () => {
  await visit(shop, async (page) => {
    const tests = section(page, "Slowest tests");
    const without = tests.getByRole("button", { name: "OrderTest#test_total" });
    assert.equal(await without.getAttribute("aria-disabled"), "true");
    await without.focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#tab-tests").getAttribute("aria-selected"), "true");
    for (const key of ["Home", "Enter"]) await page.keyboard.press(key);
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
    assert.deepEqual(await chips(page), ["tagfocus example=^spec/cart_spec\\.rb\\[1:2\\]$"]);
    assert.match(await page.locator(".crumbs").innerText(), /All: 59\.0 ms/);
    // Another one takes its place; the numbers of the tab are still those of all.
    await page.keyboard.press("8");
    assert.equal((await rows(page, "Slowest tests")).length, 4);
    await section(page, "Files").getByRole("button", { name: "spec/cart_spec.rb" }).click();
    assert.deepEqual(await chips(page), ["tagfocus group=^spec/cart_spec\\.rb$"]);
    assert.match(await page.locator(".crumbs").innerText(), /All: 65\.0 ms/);
    await page.goBack();
    await page.getByRole("button", { name: "Samples of all tests, by gem" }).click();
    assert.deepEqual(await chips(page), ["tagfocus example=.", "tagignore example=^\\[hooks\\]$"]);
    assert.equal(await page.locator("#tab-top").getAttribute("aria-selected"), "true");
    assert.match(await page.locator(".table-box tbody").innerText(), /59\.0 ms[\s\S]*rspec-core/);
  });
});

test("each table is sorted by any column, and the URL restores that", async () => {
  await visit(shop, async (page) => {
    const names = (where: Page, name: string) => section(where, name).locator("tbody th button").allInnerTexts();
    const sort = (name: string, column: string) =>
      section(page, name).locator("thead").getByRole("button", { name: column }).click();
    await sort("Slowest tests", "objects");
    await sort("Files", "tests");
    await sort("Factories", "total");
    const tests = ["Cart <b>adds</b>", "Cart waits", "(further tests)", "OrderTest#test_total"];
    assert.deepEqual(await names(page, "Slowest tests"), tests);
    assert.match((await rows(page, "Factories"))[0], /team/);
    await visit(`${shop.split("#")[0]}${await fragment(page)}`, async (again) => {
      assert.deepEqual(await names(again, "Slowest tests"), tests);
      assert.deepEqual(await names(again, "Files"), ["spec/orders_spec.rb", "spec/cart_spec.rb"]);
      assert.match((await rows(again, "Factories"))[0], /team/);
    });
  });
});

test("the first ten views have a digit, and arrows go to all", async () => {
  const draft = shopTests();
  const [profile] = draft.profiles;
  const [{ requests }] = slowShop().profiles;
  const both = encode({ ...draft, profiles: [{ ...profile, requests }, profile] });
  await visit(`${writePage("all-tabs", both)}#view=changes`, async (page) => {
    const tabs = page.getByRole("tab");
    assert.equal(await tabs.count(), 11);
    const titles = await tabs.evaluateAll((all) => all.map((tab) => tab.getAttribute("title")));
    assert.deepEqual(titles, [...[1, 2, 3, 4, 5, 6, 7, 8, 9, 0].map((key) => `Key ${key}`), null]);
    await page.keyboard.press("9");
    assert.equal(await page.locator("#tab-tests").getAttribute("aria-selected"), "true");
    await page.locator("#tab-tests").focus();
    await page.keyboard.press("End");
    assert.equal(await page.locator("#tab-snapshots").getAttribute("aria-selected"), "true");
  });
});

test("axe finds nothing, light and dark, and it works on narrow windows and with forced colours", async () => {
  for (const colorScheme of ["light", "dark"] as const)
    await visit(
      shop,
      async (page) => {
        await page.waitForSelector(".tests");
        assert.deepEqual(await axeViolations(page), [], colorScheme);
      },
      { colorScheme, bypassCSP: true },
    );
  for (const options of NARROW_AND_FORCED)
    await visit(
      shop,
      async (page) => {
        assert.ok(await page.getByRole("button", { name: "Cart waits" }).isVisible());
        await assertFits(page);
      },
      options,
    );
});

test("a suite's tests: the numbers of rperf report --tests --format json, and a way to their samples", async () => {
  const rperf = (...args: string[]) => checkout.rperf(...args);
  checkout.ruby(join(ROOT, "viewer", "test", "support", "suite.rb"), "record");
  rperf("report", "suite.pb.gz", "--html", "-o", "page.html");
  const suite = checkout.dataOf("page.html").profiles[0].suite.suite();
  assert.ok(suite);
  const {
    gems: _,
    ops: __,
    ...told
  } = JSON.parse(rperf("report", "--tests", "--format", "json", "-n", "0", "suite.pb.gz")).tests;
  assert.deepEqual(suiteJson(suite), told);
  assert.deepEqual([suite.total.count, suite.tests.length, suite.tests[0].name], [23, 23, "CartTest#test_waits"]);
  assert.deepEqual(
    suite.factories.map(({ name, count, topLevel }) => [name, count, topLevel]),
    [
      ["user (create)", 2, 0],
      ["team (create)", 1, 1],
    ],
  );
  await visit(`${pathToFileURL(checkout.path("page.html")).href}#view=tests`, async (page) => {
    await section(page, "Slowest tests").getByRole("button", { name: "CartTest#test_waits" }).click();
    assert.deepEqual(await chips(page), ["tagfocus example=^CartTest#test_waits$"]);
    assert.match(await page.locator(".summary").innerText(), /of wall time \([\d.]+ % of all; filters are on\)/);
  });
});

test("a suite that is told in part says so for each table", async () => {
  const draft = shopTests();
  const suite = shopSuite();
  const total = { ...suite.total, tests: 4, files: 9, factories: 3 };
  const url = writePage("part", encode({ ...draft, profiles: [{ ...draft.profiles[0], suite: { ...suite, total } }] }));
  await visit(`${url}#view=tests`, async (page) => {
    const left = (name: string) => section(page, name).locator("p.muted").allInnerTexts();
    assert.deepEqual(await left("Slowest tests"), []);
    assert.match((await left("Files")).join(), /^7 more are not in this page/);
    assert.match((await left("Factories")).join(), /^1 more /);
  });
});
