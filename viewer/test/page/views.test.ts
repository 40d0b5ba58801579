import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { VIEWS } from "../../src/app/state.ts";
import { axeViolations, openBrowser, openPage, type Watched, writePage } from "../support/browser.ts";
import { exampleDiff, exampleReport } from "../support/example.ts";

let browser: Browser;
let report: string;
let diff: string;
before(async () => {
  browser = await openBrowser();
  report = writePage("report", exampleReport());
  diff = writePage("diff", exampleDiff());
});
after(() => browser.close());

/** Opens a page, runs the steps, and makes sure that nothing went wrong meanwhile. */
async function visit(
  url: string,
  steps: (page: Page, watched: Watched) => Promise<void>,
  options: BrowserContextOptions = {},
) {
  const watched = await openPage(browser, url, options);
  try {
    await steps(watched.page, watched);
    assert.deepEqual(watched.errors, []);
    assert.deepEqual(watched.requests, []);
  } finally {
    await watched.page.context().close();
  }
}

const text = (page: Page, selector: string) => page.locator(selector).first().innerText();
const cursor = (page: Page, id = "flame") => page.locator(`#${id}-cursor`).getAttribute("aria-label");

test("the first screen says in words where the time goes, and shows the states", async () => {
  await visit(report, async (page) => {
    assert.equal(await page.title(), "after.pb.gz – rperf");
    const words = await text(page, ".words");
    assert.match(
      words,
      /^puma: 2\.\d+ s of wall time of 3 threads together, recorded in 690 ms\. 5\d\.\d % of it went into waiting for I\/O, sleep or a lock\./,
    );
    assert.match(words, /LineItem#price runs longest itself: \d+ ms/);
    assert.match(words, /The method with the most waiting \(I\/O, sleep\) is PG::Connection#exec_params\./);
    assert.match(await text(page, ".loss"), /3 samples \(2\.9 ms\) were dropped/);
    assert.equal(await page.locator(".states .state").count(), 5);
    assert.equal(await page.locator("#tab-changes, #tab-snapshots").count(), 0);
  });
});

test("axe finds nothing, in any view, light and dark", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const view of VIEWS) {
      for (const more of ["", "&method=LineItem%23price&sandwich=1&base=-1"]) {
        await visit(
          `${diff}#view=${view}${more}`,
          async (page) => {
            await page.evaluate(() => document.documentElement.dataset.theme);
            assert.deepEqual(await axeViolations(page), [], `${view} ${colorScheme}`);
          },
          { colorScheme, bypassCSP: true },
        );
      }
    }
  }
});

test("flame graph by mouse: tooltip, zoom, breadcrumb, menu, sandwich, back", async () => {
  await visit(report, async (page) => {
    const flame = page.locator("#flame");
    await flame.hover({ position: { x: 60, y: 10 } });
    assert.match(await text(page, ".tooltip"), /Puma::ThreadPool#spawn_thread[\s\S]*100 % of all/);
    await flame.click({ position: { x: 60, y: 70 } });
    await page.waitForFunction(() => location.hash.includes("zoom="));
    assert.match(await text(page, ".crumbs"), /All: .*OrdersController#index/);
    await flame.hover({ position: { x: 1500, y: 70 } });
    assert.match(await text(page, ".tooltip"), /OrdersController#index/);
    await page.goBack();
    assert.doesNotMatch(await text(page, ".crumbs"), /OrdersController/);
    await flame.click({ position: { x: 60, y: 130 }, button: "right" });
    assert.match(await text(page, ".menu"), /Array#sum[\s\S]*Focus: only stacks with this method/);
    await page.getByRole("menuitem", { name: "Hide this method" }).click();
    assert.match(await text(page, ".chip"), /hide\s+\^Array#sum\$/);
    await page.getByRole("button", { name: /remove the filter/ }).click();
    assert.equal(await page.locator(".chip").count(), 0);
    await flame.dblclick({ position: { x: 60, y: 110 } });
    await page.waitForSelector("#flame-callers");
    assert.match(await text(page, ".crumbs"), /^Order#total/);
    await page.getByRole("button", { name: "Sandwich" }).click();
    await page.getByRole("button", { name: "Inverted" }).click();
    await flame.hover({ position: { x: 60, y: 10 } });
    assert.match(await text(page, ".tooltip"), /\[GVL blocked\]/);
    await page.getByRole("button", { name: "Upwards" }).click();
    await page.locator(".view label", { hasText: "Colour" }).locator("select").selectOption("cpu");
  });
});

test("flame graph by keyboard: every box, zoom, menu, pivot", async () => {
  await visit(report, async (page) => {
    await page.locator("#flame").focus();
    assert.match(
      (await cursor(page)) ?? "",
      /^Puma::ThreadPool#spawn_thread, 2\.\d+ s, 100 %, itself 0 s, depth 1, 1 of 1$/,
    );
    for (let depth = 0; depth < 4; depth++) await page.keyboard.press("ArrowDown");
    assert.match((await cursor(page)) ?? "", /^Array#map,.*depth 5, 1 of 3/);
    await page.keyboard.press("ArrowRight");
    assert.match((await cursor(page)) ?? "", /^ActiveRecord::Relation#load,.*2 of 3/);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowUp");
    assert.match((await cursor(page)) ?? "", /^OrdersController#index/);
    await page.keyboard.press("Enter");
    assert.match(await text(page, ".crumbs"), /OrdersController#index/);
    await page.keyboard.press("Escape");
    assert.doesNotMatch(await text(page, ".crumbs"), /OrdersController#index/);
    await page.keyboard.press("m");
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Zoom to here");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "flame");
    await page.keyboard.press("p");
    await page.waitForSelector("#flame-callees");
    await page.keyboard.press("s");
    await page.keyboard.press("i");
    assert.equal(await page.getByRole("button", { name: "Inverted" }).getAttribute("aria-pressed"), "true");
    await page.keyboard.press("f");
    assert.equal(await page.getByRole("button", { name: "Upwards" }).getAttribute("aria-pressed"), "true");
    await page.locator("#flame").focus();
    await page.keyboard.press("ArrowUp");
    assert.match((await cursor(page)) ?? "", /depth 2/);
  });
});

test("call graph: boxes by keyboard and mouse, fewer of them, by file, larger", async () => {
  await visit(`${report}#view=graph`, async (page) => {
    const boxes = page.locator(".graph .box");
    const focused = async () => (await cursor(page, "graph")) ?? "";
    assert.match(await text(page, ".view .tools"), /(\d+) of \1\. Colour/);
    await page.locator("#graph").focus();
    assert.match(await focused(), /^Puma::ThreadPool#spawn_thread, self 0 s \(0 %\), total 2\.\d+ s \(100 %\)/);
    await page.keyboard.press("ArrowDown");
    const second = await focused();
    assert.doesNotMatch(second, /spawn_thread/);
    assert.ok((await page.locator(".graph .far").count()) > 0, "arrows elsewhere are pale");
    await page.keyboard.press("ArrowUp");
    assert.match(await focused(), /spawn_thread/);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("m");
    assert.ok(second.startsWith(await text(page, ".menu-title")));
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "graph");
    assert.equal(await focused(), second);
    await page.keyboard.press("Enter");
    assert.ok(second.startsWith(await text(page, ".subject")));
    await page.goBack();
    const width = () => page.locator(".graph svg").evaluate((svg) => svg.getBoundingClientRect().width);
    const before = await width();
    await page.getByRole("button", { name: "Larger" }).click();
    assert.ok((await width()) > before);
    const all = await boxes.count();
    await page.locator(".view label", { hasText: "At most" }).locator("select").selectOption("10");
    await page.waitForFunction(() => document.querySelectorAll(".graph .box").length === 10);
    assert.ok(all > 10);
    assert.match(await text(page, ".view .tools"), /10 of \d+; left out: 0 too small, \d+ too many\./);
    assert.match(await page.evaluate(() => location.hash), /graphCount=10/);
    await page.locator(".view label", { hasText: "Boxes are" }).locator("select").selectOption("file");
    assert.match(await boxes.first().innerHTML(), /<title>[^<]*\.rb, self/);
    await boxes.first().click({ button: "right" });
    assert.equal(await page.locator(".menu").count(), 0, "a file has no menu");
  });
});

test("search counts hits once, filters the table, and walks from hit to hit", async () => {
  await visit(report, async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("category#");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector(".search")?.textContent?.includes("1 method, 6."));
    await page.locator("#flame").focus();
    await page.keyboard.press("n");
    assert.match((await cursor(page)) ?? "", /^Category#path,.*found$/);
    await page.keyboard.press("Shift+N");
    await page.keyboard.press("2");
    assert.equal(await page.locator(".table-box tbody tr").count(), 1);
    await page.locator("#search").fill("no such method");
    await page.locator("#search").press("Enter");
    await page.waitForFunction(() => document.querySelector("[role=status]")?.textContent === "Nothing matches.");
    await page.getByLabel("regexp").check();
    await page.locator("#search").fill("Order#(total|x");
    await page.locator("#search").press("Enter");
    await page.waitForFunction(() =>
      document.querySelector(".search .problem")?.textContent?.startsWith("Not a pattern"),
    );
    await page.locator("#search").press("Escape");
    assert.equal(await page.locator("#search").inputValue(), "");
  });
});

test("top table: sorts, groups, opens by mouse and by key", async () => {
  await visit(`${report}#view=top`, async (page) => {
    const firstName = () => text(page, ".table-box tbody tr .named > :first-child");
    assert.equal(await firstName(), "[GVL blocked]");
    await page.getByRole("button", { name: "total", exact: true }).click();
    assert.equal(await firstName(), "Puma::ThreadPool#spawn_thread");
    await page.getByRole("button", { name: "method", exact: true }).click();
    assert.equal(await firstName(), "ActionController::Metal#dispatch");
    await page.getByRole("button", { name: /^method/ }).click();
    assert.equal(await firstName(), "[GVL wait]");
    for (const [group, name] of [
      ["file", "<GVL>"],
      ["library", "(no gem: waiting)"],
      ["category", "waiting"],
      ["thread", "1 puma srv tp 001"],
      ["state", "blocked"],
      ["label:endpoint", "OrdersController#index"],
    ]) {
      await page.getByLabel("Group by").selectOption(group);
      assert.equal(await firstName(), name);
    }
    await page.getByLabel("Group by").selectOption("method");
    await page.locator(".table-box tbody button").first().focus();
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "LineItem#price");
    await page.keyboard.press("m");
    assert.match(await text(page, ".menu"), /LineItem#price/);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Enter");
    assert.equal(await text(page, ".subject"), "LineItem#price");
    await page.getByRole("button", { name: "BigDecimal#round" }).click();
    assert.equal(await text(page, ".subject"), "BigDecimal#round");
    await page.goBack();
    assert.match(await text(page, ".columns"), /BigDecimal#round\s*app\/models\/line_item\.rb:5/);
  });
});

test("call tree: opens, closes and walks by key, from either end", async () => {
  await visit(`${report}#view=tree`, async (page) => {
    const focused = () =>
      page.evaluate(() => (document.activeElement as HTMLElement).querySelector(".name")?.textContent ?? "");
    await page.locator("[role=treegrid] tbody tr").first().focus();
    assert.match(await focused(), /Puma::ThreadPool#spawn_thread/);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await page.locator("[role=treegrid] tbody tr").count(), 1);
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("[role=treegrid] tbody tr").first().getAttribute("aria-expanded"), "true");
    await page.keyboard.press("ArrowRight");
    assert.match(await focused(), /Puma::Server#process_client/);
    await page.keyboard.press("*");
    assert.match(await focused(), /LineItem#price/);
    await page.keyboard.press("End");
    await page.keyboard.press("Home");
    assert.match(await focused(), /spawn_thread/);
    await page.keyboard.press("m");
    await page.keyboard.press("Escape");
    await page.getByLabel("Begin with").selectOption("up");
    assert.match(await text(page, "[role=treegrid] tbody tr"), /\[GVL blocked\]/);
    await page.locator("[role=treegrid] tbody tr").first().click();
  });
});

test("source: lines with time, by key to the hottest", async () => {
  await visit(`${report}#view=source`, async (page) => {
    await page.getByRole("button", { name: "LineItem#price" }).last().click();
    assert.match(await text(page, ".source"), /4\s+discount = product\.discounts/);
    assert.match(await text(page, ".source tr.hot"), /\d+ ms\s+\d+ ms\s+16\.\d %/);
    await page.locator(".source").focus();
    await page.keyboard.press("n");
    await page.getByRole("button", { name: "Another file" }).click();
    await page.getByRole("button", { name: "Order#total" }).last().click();
    assert.match(await text(page, ".view"), /no source text: lines with time only/);
    assert.match(await text(page, ".source tbody"), /9/);
  });
});

test("labels, threads, processes and states are filters, and the same as flags", async () => {
  await visit(`${report}#view=labels`, async (page) => {
    await page.getByRole("button", { name: "only OrdersController#show" }).click();
    await page.getByRole("button", { name: "only 4711" }).click();
    await page.getByRole("button", { name: "only 1 puma srv tp 001" }).click();
    await page.getByRole("button", { name: "only blocked" }).click();
    assert.equal(
      await page.getByRole("button", { name: "Copy as CLI flags" }).getAttribute("title"),
      "--tagfocus='endpoint=^OrdersController#show$' --pid=4711 --thread=1 --tagfocus='%GVL=^blocked$'",
    );
    assert.match(await text(page, ".words"), /puma: \d+(\.\d+)? ms of wall time \(.* of all; filters are on\)/);
    await page.getByRole("button", { name: "Remove all" }).click();
    await page.getByRole("button", { name: "Group the stacks by it" }).first().click();
    await page.keyboard.press("1");
    await page.locator("#flame").focus();
    assert.match((await cursor(page)) ?? "", /^OrdersController#index,.*1 of 3/);
    await page.getByLabel("Kind of filter").selectOption("ignore");
    await page.getByLabel("Filter", { exact: true }).fill("(");
    await page.getByRole("button", { name: "Add filter" }).click();
    assert.match(await text(page, ".filters .problem"), /not a regular expression/);
    await page.getByLabel("Filter", { exact: true }).fill("Puma");
    await page.keyboard.press("Enter");
    assert.match(await text(page, ".words"), /Nothing passes the filters/);
  });
});

test("any value type can be picked, and the URL restores all of it", async () => {
  await visit(report, async (page) => {
    await page.getByLabel("Measure").selectOption({ label: "alloc space" });
    assert.match(await text(page, ".words"), /puma: [\d.]+ MB \(alloc space\)/);
    await page.getByLabel("Measure").selectOption({ label: "CPU time" });
    await page.keyboard.press("Tab");
    await page.locator("#tab-top").click();
    await page.getByLabel("Group by").selectOption("file");
    const hash = await page.evaluate(() => location.hash);
    assert.equal(hash, "#view=top&type=cpu&group=file");
    await visit(report + hash, async (again) => {
      assert.equal(await again.locator("#tab-top").getAttribute("aria-selected"), "true");
      assert.equal(await text(again, ".table-box tbody tr .name"), await text(page, ".table-box tbody tr .name"));
    });
  });
});

test("a diff opens with what got slower, and colours the flame graph", async () => {
  await visit(diff, async (page) => {
    assert.match(await text(page, ".verdict"), /base 1\.\d+ s, target 2\.\d+ s: \+\d+ ms \(\+\d+ %\)/);
    assert.match(
      await text(page, ".pane"),
      /Slower: 2 and \d within the noise[\s\S]*\+1\d\d ms\s*\+1\d\d %[\s\S]*LineItem#price/,
    );
    await page.locator(".view label", { hasText: "Compare" }).locator("select").selectOption("total");
    assert.match(await text(page, ".verdict"), /Values of the base are multiplied by 1\.\d+/);
    await page.getByRole("button", { name: "As a flame graph" }).click();
    await page.locator("#flame").focus();
    assert.match((await cursor(page)) ?? "", /before 2\.\d+ s/);
    await page.getByLabel("Width").selectOption("before");
    await page.getByLabel("compared with").selectOption("-1");
    assert.equal(await page.getByLabel("Width").count(), 0);
    await page.keyboard.press("9");
    await page.getByRole("button", { name: "show: before.pb.gz" }).click();
    assert.match(await page.title(), /^before\.pb\.gz/);
    await page.keyboard.press("]");
    assert.match(await page.title(), /^after\.pb\.gz/);
  });
});

test("tabs, help, theme and the switch for letter keys work by key", async () => {
  await visit(report, async (page) => {
    await page.locator("#tab-flame").focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("#tab-top").getAttribute("aria-selected"), "true");
    await page.keyboard.press("?");
    assert.match(await text(page, "dialog"), /Keys[\s\S]*Words[\s\S]*ruby 3\.4\.5/);
    await page.getByLabel(/Keys that are a single/).uncheck();
    await page.keyboard.press("Escape");
    await page.keyboard.press("3");
    assert.equal(await page.locator("#tab-top").getAttribute("aria-selected"), "true");
    await page.getByRole("button", { name: "Dark colours" }).click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await page.reload();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  });
});

test("the page works at 200 % zoom, on a narrow window and with forced colours", async () => {
  for (const options of [
    { viewport: { width: 640, height: 480 } },
    { viewport: { width: 400, height: 800 } },
    { forcedColors: "active" as const },
  ]) {
    await visit(
      report,
      async (page) => {
        await page.locator("#flame").focus();
        await page.keyboard.press("ArrowDown");
        assert.match((await cursor(page)) ?? "", /Puma::Server/);
        const overflow = await page.evaluate(
          () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
        );
        assert.ok(overflow <= 0, `the page is ${overflow} px too wide`);
      },
      options,
    );
  }
});
