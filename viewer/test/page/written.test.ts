// The page with data that the command has written, from files of rperf's own and of other tools.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { VIEWS } from "../../src/app/state.ts";
import { openBrowser, openPage } from "../support/browser.ts";
import { type Foreign, pprof } from "../support/pprof.ts";

declare const VIEWER: string;

const ROOT = join(VIEWER, "..");
const DIRECTORY = join(VIEWER, "node_modules", ".cache", "written");
const HOSTILE = "</script><script>x</script>";

/** Has rperf save a profile with a method of that name. */
const PROGRAM = `
require "rperf"
main = ["/app/main.rb", "<main>"]
hostile = ["/app/main.rb", ${JSON.stringify(HOSTILE)}]
rows = [[[hostile, main], 40, 1], [[["<GVL>", "[GVL blocked]"], hostile, main], 60, 2]]
samples = rows.map { |frames, count, thread| [frames, count * 1_000_000, thread, 0, count, count * 500_000] }
Rperf.save("rperf.pb.gz", { mode: :wall, frequency: 1000, duration_ns: 10**9, samples: })
`;

const FOREIGN: Record<string, Foreign> = {
  // Counts first, times in microseconds, no default: it is the last type.
  stackprof: {
    types: [
      ["samples", "count"],
      ["wall", "microseconds"],
    ],
    period: ["wall", "microseconds", 1000],
    samples: [
      { stack: [HOSTILE, "Object#work", "<main>"], values: [40, 40_123] },
      { stack: ["(marking)"], values: [2, 2001] },
    ],
  },
  // One type, which is named as the default, and no period.
  pf2: {
    types: [["cpu", "nanoseconds"]],
    default: "cpu",
    samples: [
      { stack: [HOSTILE, "Integer#times", "<main>"], values: [10_000_000], labels: { thread: HOSTILE } },
      { stack: ["<main>"], values: [20_000_000] },
    ],
  },
};

/** File, its value types as the page names them, and a method that it has. */
const FILES: [string, string[], string][] = [
  [join(DIRECTORY, "rperf.pb.gz"), ["samples", "wall time", "CPU time"], HOSTILE],
  [join(ROOT, "spec", "fixtures", "go", "cpu.pb.gz"), ["samples", "CPU time"], "main.fib"],
  [
    join(ROOT, "spec", "fixtures", "go", "heap.pb.gz"),
    ["alloc objects", "alloc space", "inuse objects", "inuse space"],
    "main.keep",
  ],
  [join(DIRECTORY, "stackprof.pb.gz"), ["samples", "wall time"], HOSTILE],
  [join(DIRECTORY, "pf2.pb.gz"), ["CPU time"], HOSTILE],
];

let browser: Browser;
before(async () => {
  rmSync(DIRECTORY, { recursive: true, force: true });
  mkdirSync(DIRECTORY, { recursive: true });
  for (const [name, profile] of Object.entries(FOREIGN))
    writeFileSync(join(DIRECTORY, `${name}.pb.gz`), pprof(profile));
  writeFileSync(join(DIRECTORY, "program.rb"), PROGRAM);
  run("program.rb");
  browser = await openBrowser();
});
after(() => browser?.close());

const rperf = (...args: string[]) => run(join(ROOT, "exe", "rperf"), ...args);

/** Runs a Ruby program with this checkout's rperf, and returns what it prints. */
function run(...args: string[]): string {
  return execFileSync(join(ROOT, "bin", "env"), ["ruby", ...args], {
    cwd: DIRECTORY,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

const measures = (page: Page) => page.locator("label", { hasText: /^Measure/ }).locator("select");

function write(...args: string[]): string {
  rperf(...args, "--html", "-o", "page.html");
  return pathToFileURL(join(DIRECTORY, "page.html")).href;
}

/** Opens the page, and makes sure that it asks for nothing, complains of nothing and runs nothing. */
async function visit(url: string, steps: (page: Page) => Promise<void>) {
  const { page, requests, errors } = await openPage(browser, url);
  try {
    await steps(page);
    assert.deepEqual(errors, []);
    assert.deepEqual(requests, []);
    assert.equal(await page.locator("script:not([type]), script[src]").count(), 1, "the page's own script");
  } finally {
    await page.context().close();
  }
}

for (const [file, types, method] of FILES) {
  const name = file.slice(ROOT.length + 1).replace(/^viewer.*written./, "");
  test(`${name}: all views and values, method names as text`, async () => {
    const url = write("report", file);
    for (const view of VIEWS.filter((it) => it !== "changes" && it !== "snapshots")) {
      await visit(`${url}#view=${view}&method=${encodeURIComponent(method)}`, async (page) => {
        assert.ok((await page.locator("#panel").innerText()).length > 0, view);
      });
    }
    await visit(`${url}#view=top`, async (page) => {
      const rows = await page.locator(".table-box tbody").innerText();
      assert.ok(rows.includes(method), `${method} in: ${rows}`);
      if (types.length === 1) return;
      const measure = measures(page);
      assert.deepEqual(await measure.locator("option").allInnerTexts(), types);
      const seen = new Set<string>();
      for (const label of types) {
        await measure.selectOption({ label });
        seen.add(await page.locator(".words").innerText());
      }
      assert.equal(seen.size, types.length, "each value type has words of its own");
    });
  });
}

/** Verdict, delta in percent, and method, of all rows of `rperf diff --top`. */
function verdicts(...sides: string[]): string[] {
  const rows = rperf("diff", "--top", "-n", "0", ...sides).split("\n");
  const parts = rows.map((row) =>
    row.match(/ ([+-][\d.]+%|new|0\.0%) .* (slower|faster|noise|unknown) {2}(.*) \(.*\)$/),
  );
  return parts.flatMap((row) => (row ? [`${row[3]}: ${row[2] === "noise" ? "noise" : "change"}`] : [])).sort();
}

test("a page of several runs has the verdicts of rperf diff --top, for the spread of the runs", async () => {
  // Five runs each. Of 30 methods 28 are as they were, one is slower by 10 %, and one differs from run to run by more.
  const same = Array.from({ length: 28 }, (_, i) => [`same${i}`, 2000] as const);
  const profile = (slow: number, i: number): Foreign => ({
    types: [
      ["samples", "count"],
      ["cpu", "nanoseconds"],
    ],
    samples: [
      ...same,
      ["slow", slow + i] as const,
      ["wild", 100 + 40 * ((i * 3) % 5) + (slow > 2000 ? 50 : 0)] as const,
    ].map(([name, count]) => ({ stack: [name], values: [count, count * 1e6] })),
  });
  const side = (name: string, slow: number) =>
    Array.from({ length: 5 }, (_, i) => {
      writeFileSync(join(DIRECTORY, `${name}.${i}.pb.gz`), pprof(profile(slow, i)));
      return `${name}.${i}.pb.gz`;
    });
  const sides = ["--base", ...side("base", 2000), "--target", ...side("target", 2200)];
  const told = verdicts(...sides);
  assert.deepEqual(told, ["slow: change", "wild: noise"]);
  await visit(write("diff", ...sides), async (page) => {
    const words = await page.locator(".verdict").innerText();
    assert.match(words, /^base 58\.2 s, target 58\.4 s: \+250 ms/);
    assert.match(words, /means of 5 runs each; the flame graph has their sums/);
    const rows = await page.locator(".pane tbody tr").allInnerTexts();
    const shown = rows.map((row) => `${row.match(/same|slow|wild/)?.[0]}: ${/noise/.test(row) ? "noise" : "change"}`);
    assert.deepEqual(shown.sort(), told);
    assert.match(rows.join("\n"), /\+200 ms\s+\+10(\.0)? %\s+2\.00 s\s+2\.20 s/);
    // By samples, the only way where there are filters, one could not tell.
    await page.getByLabel("Filter", { exact: true }).fill("wild");
    await page.keyboard.press("Enter");
    assert.match(await page.locator(".tools").last().innerText(), /as far as the samples tell/);
    assert.match(await page.locator(".pane").first().innerText(), /^Slower: 1\n/);
  });
});

test("two profiles of one run each: the same verdicts, in each value type", async () => {
  const url = write("diff", "rperf.pb.gz", "rperf.pb.gz");
  await visit(url, async (page) => {
    assert.match(await page.locator(".verdict").innerText(), /, no change\./);
    assert.match(await page.locator(".columns").innerText(), /Slower: 0[\s\S]*Faster: 0/);
    await measures(page).selectOption({ label: "CPU time" });
    assert.match(await page.locator(".verdict").innerText(), /, no change\./);
  });
});
