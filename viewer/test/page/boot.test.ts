// The tab "Boot": of a made-up start, and of a real one, with the numbers that the command tells.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { Session } from "../../src/app/session.ts";
import { INITIAL } from "../../src/app/state.ts";
import { bootJson, shopBoot } from "../support/boot.ts";
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
  text,
  writePage,
} from "../support/browser.ts";
import { Checkout, ROOT } from "../support/checkout.ts";
import { encode } from "../support/encode.ts";
import { exampleReport } from "../support/example.ts";

const checkout = new Checkout("boot");

let browser: Browser;
let shop: string;
before(async () => {
  browser = await openBrowser();
  shop = `${writePage("boot", encode(shopBoot()))}#view=boot`;
});
after(() => browser?.close());

const visit = (url: string, steps: (page: Page) => Promise<void>, options?: BrowserContextOptions) =>
  pages.visit(browser, url, steps, options);

test("without a boot there is no tab, and its URL shows another view", async () => {
  await visit(`${writePage("no-boot", exampleReport())}#view=boot`, async (page) => {
    assert.equal(await page.locator("#tab-boot").count(), 0);
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
  });
});

test("files, gems and initializers are told, with all that the start took, its states and objects", async () => {
  await visit(shop, async (page) => {
    const all = await text(page, ".boot");
    assert.match(
      all,
      /^Loading 4 files: 75\.0 ms \(71\.4 % of all\), of which 5\.00 ms are the program's own first file; 610 objects/,
    );
    assert.match(all, /running 88\.0 % 66\.0 ms\s+GVL blocked 12\.0 % 9\.00 ms\s+own:/);
    const files = await rows(page, "Files");
    assert.equal(files.length, 5);
    assert.match(
      files[0],
      /^33\.0 ms\s+20\.0 ms\s+13\.0 ms\s+47\.0 ms\s+rack-3\.1\.8\/lib\/rack\.rb\s*from lib\/<b>shop<\/b>\.rb:2$/,
    );
    assert.match(files[3], /^7\.00 ms\s+0 s\s+7\.00 ms\s+7\.00 ms\s+bin\/app:8$/);
    assert.match((await rows(page, "Gems"))[1], /^28\.0 ms\s+75\.0 ms\s+2\s+\(application\)$/);
    assert.match(
      (await rows(page, "Initializers of Rails"))[1],
      /^2\.00 ms\s+block in <class:Railtie>\s*activerecord-8\.0\.1\/railtie\.rb:60$/,
    );
  });
});

test("long names of files leave the numbers in sight", async () => {
  const draft = shopBoot();
  draft.frames = draft.frames.map((frame) => ({ ...frame, file: `${"long/".repeat(60)}${frame.file}` }));
  await visit(`${writePage("long-boot", encode(draft))}#view=boot`, async (page) => {
    const hidden = await page.locator(".boot .table-box tr:not(.room)").evaluateAll((rows) =>
      rows.flatMap(({ children }) => {
        const name = children[children.length - 1].getBoundingClientRect();
        const numbers = [...children].slice(0, -1);
        return numbers.filter((cell) => cell.getBoundingClientRect().right > name.left + 1).map((it) => it.textContent);
      }),
    );
    assert.deepEqual(hidden, []);
  });
});

test("a row opens the flame graph of exactly its part, which takes the place of another", async () => {
  await visit(shop, async (page) => {
    const open = (part: string, name: string, which = 0) =>
      section(page, part).getByRole("button", { name }).nth(which).click();
    const shown = async () => [await chips(page), (await text(page, ".crumbs")).split("\n")[0]];
    await open("Files", "<ruby>/set.rb");
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
    assert.deepEqual(await shown(), [["boot file <ruby>/set.rb"], "All: 14.0 ms"]);
    // The command has no option for it.
    assert.equal(await page.getByRole("button", { name: "Copy as CLI flags" }).count(), 0);
    await page.locator("#tab-boot").click();
    assert.equal((await rows(page, "Files")).length, 5);
    await open("Gems", "rack-3.1.8");
    assert.deepEqual(await shown(), [["boot gem rack-3.1.8"], "All: 47.0 ms"]);
    await page.locator("#tab-boot").click();
    await open("Initializers of Rails", "block in", 1);
    const block = "boot initializer activerecord-8.0.1/railtie.rb:60 block in <class:Railtie>";
    assert.deepEqual(await shown(), [[block], "All: 2.00 ms"]);
    await page.goBack();
    await page.getByRole("button", { name: "Flame graph of all loading" }).click();
    assert.deepEqual(await shown(), [["boot all"], "All: 75.0 ms"]);
    await visit(`${shop.split("#")[0]}${await fragment(page)}`, async (again) => {
      assert.deepEqual(await chips(again), ["boot all"]);
    });
  });
});

test("each table is sorted by any column, and the URL restores that", async () => {
  await visit(shop, async (page) => {
    const names = (where: Page, name: string) => section(where, name).locator("tbody th button").allInnerTexts();
    const sort = (name: string, column: string) =>
      section(page, name).locator("thead").getByRole("button", { name: column }).click();
    await sort("Files", "total");
    await sort("Gems", "gem");
    await sort("Initializers of Rails", "total");
    await sort("Initializers of Rails", "total");
    const check = async (where: Page) => {
      assert.equal((await names(where, "Files"))[0], "bin/app");
      assert.deepEqual(await names(where, "Gems"), ["(application)", "(standard library 3.4.0)", "rack-3.1.8"]);
      assert.match((await rows(where, "Initializers of Rails"))[0], /^2\.00 ms/);
    };
    await check(page);
    await visit(`${shop.split("#")[0]}${await fragment(page)}`, check);
  });
});

test("the tree of files opens and closes by keys, and leads to the flame graph by a key and a click", async () => {
  await visit(shop, async (page) => {
    const tree = page.getByRole("treegrid", { name: "Which file loads which" });
    const lines = async () => (await tree.locator("tbody tr").allInnerTexts()).map((it) => it.split(/[\s▾▸]+/).at(-1));
    // The path where most of it goes is open.
    assert.deepEqual(await lines(), [
      "bin/app",
      "lib/<b>shop</b>.rb",
      "rack-3.1.8/lib/rack.rb",
      "<ruby>/set.rb",
      "lib/<b>shop</b>.rb",
      "bin/app:8",
    ]);
    await tree.locator("tbody tr").first().focus();
    await page.keyboard.press("ArrowLeft");
    assert.deepEqual(await lines(), ["bin/app"]);
    for (const key of ["*", "Home", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
    const current = tree.locator("tbody tr[tabindex='0']");
    assert.match(await current.innerText(), /47\.0 ms\s+62\.7 %\s+33\.0 ms\s+▾?\s*rack-3\.1\.8\/lib\/rack\.rb/);
    assert.equal(await current.getAttribute("aria-level"), "3");
    await page.keyboard.press("Enter");
    assert.deepEqual(await chips(page), ["boot file rack-3.1.8/lib/rack.rb"]);
    await page.goBack();
    await tree.getByRole("button", { name: "bin/app:8" }).click();
    assert.deepEqual(await chips(page), ["boot line bin/app:8"]);
    assert.match(await text(page, ".crumbs"), /All: 7\.00 ms/);
  });
});

test("other filters and value types change the numbers", async () => {
  await visit(`${shop}&ignore=set&type=alloc_objects`, async (page) => {
    assert.match(await text(page, ".boot p"), /^Loading 4 files: 530 \(34\.6 % of all\)/);
  });
  await visit(`${shop}&focus=nothing`, async (page) => {
    assert.match(await text(page, ".boot"), /No files were loaded/);
  });
});

test("axe finds nothing, light and dark, and it works on narrow windows and with forced colours", async () => {
  for (const colorScheme of ["light", "dark"] as const)
    await visit(
      shop,
      async (page) => {
        await page.waitForSelector(".boot");
        assert.deepEqual(await axeViolations(page), [], colorScheme);
      },
      { colorScheme, bypassCSP: true },
    );
  for (const options of NARROW_AND_FORCED)
    await visit(
      shop,
      async (page) => {
        assert.ok(await section(page, "Gems").getByRole("button", { name: "rack" }).isVisible());
        await assertFits(page);
      },
      options,
    );
});

test("a program's start: the numbers of rperf report --boot --format json, and a way to their samples", async () => {
  const program = join(ROOT, "viewer", "test", "support", "boot.rb");
  checkout.ruby(program, "record");
  checkout.rperf("report", "boot.pb.gz", "--html", "-o", "page.html");
  const session = new Session(checkout.dataOf("page.html"));
  assert.equal(session.hasBoot(INITIAL), true);
  for (const ignore of ["", "optparse"]) {
    const flags = ignore ? ["--ignore", ignore] : [];
    const told = checkout.rperf("report", "--boot", "--format", "json", "-n", "0", ...flags, "boot.pb.gz");
    const filters = ignore ? [{ kind: "ignore" as const, text: ignore }] : [];
    const boot = session.boot({ ...INITIAL, filters });
    assert.deepEqual(bootJson(boot), JSON.parse(told).boot);
  }
  const boot = session.boot(INITIAL);
  assert.ok(boot.files().length > 5 && boot.gems().length > 1);
  assert.deepEqual(
    boot.initializers().map(({ name, place: { file, line } }) => [name, file.split("/").pop(), line]),
    [
      ["block in <class:Railtie>", "boot.rb", 31],
      ["block in <class:Railtie>", "boot.rb", 34],
    ],
  );
  await visit(`${pathToFileURL(checkout.path("page.html")).href}#view=boot`, async (page) => {
    await section(page, "Gems").getByRole("button", { name: "(standard library" }).click();
    assert.match((await chips(page)).join(), /^boot gem \(standard library [\d.]+\)$/);
    assert.match(await text(page, ".summary"), /of wall time \([\d.]+ % of all; filters are on\)/);
  });
});
