import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { VIEWS } from "../../src/app/state.ts";
import type { Suite } from "../../src/format/suite.ts";
import { openBrowser, openPage, writePage } from "../support/browser.ts";
import { type Draft, encode, toBase64 } from "../support/encode.ts";
import { STATES } from "../support/generate.ts";
import { requestsOf } from "../support/requests.ts";
import { shopSuite } from "../support/suite.ts";

let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser.close());

const NAMES = [
  "</script><script>window.pwned = 1</script>",
  "<!-- <script>",
  '<img src=x onerror="window.pwned = 1">',
  '\\"};window.pwned = 1//',
  "line\u2028separator\u2029s",
  "right\u202eto left\u202c",
  "nul \u0000 and bell \u0007",
  "$\u007bwindow.pwned = 1} {{constructor.constructor('window.pwned=1')()}}",
  "javascript:window.pwned=1",
  "__proto__",
  "x".repeat(1_000_000),
];

/** Tests, files and factories of these names, with times that can't be. */
function hostileSuite(): Suite {
  const { total, tests, files, factories } = shopSuite();
  const odd = { count: -1, wall: -1, running: 2 ** 62 };
  return {
    total: { ...total, ...odd },
    tests: NAMES.map((name) => ({ ...tests[0], ...odd, name, title: name, file: name })),
    files: NAMES.map((name) => ({ ...files[0], ...odd, name })),
    factories: NAMES.map((name) => ({ ...factories[0], ...odd, name })),
  };
}

function hostile(): Draft {
  const place = (name: string) => ({ file: `${name.slice(0, 200)}.rb`, line: 1, library: name.slice(0, 200) });
  const named = NAMES.map((name) => ({ name, ...place(name) }));
  // Each file is loaded from the one before it, and begins an initializer.
  const require = { name: "Kernel#require", file: "<C method>" };
  const loaded = NAMES.flatMap((name) => [require, { name: "<top (required)>", ...place(name) }]);
  const frames = [...named, ...loaded];
  const called = named.map((_, i) => ({ parent: i % 4 === 0 ? 0 : i, frame: i, line: 1 }));
  const loading = loaded.map((_, i) => ({ parent: i === 0 ? 0 : named.length + i, frame: named.length + i, line: 1 }));
  const files = NAMES.map((_, i) => named.length + 2 * i + 2);
  return {
    valueTypes: NAMES.slice(0, 4).map((name) => ({ name, unit: name })),
    states: [...(STATES ?? []), { name: NAMES[0], tag: [NAMES[0], NAMES[1]] }],
    categories: NAMES.slice(0, 5),
    frames,
    nodes: [...called, ...loading],
    initializers: files.map((node) => ({ node, line: 1 })),
    labelSets: NAMES.slice(0, 10).map((name) => [[name, name]]),
    threads: NAMES.slice(0, 10).map((name, number) => ({ number, name })),
    sources: [{ file: `${NAMES[0]}.rb`, text: NAMES.slice(0, 10).join("\n") }],
    profiles: [
      {
        meta: {
          title: NAMES[0],
          program: NAMES[2],
          comments: NAMES.slice(0, 9),
          losses: [{ counter: NAMES[0], value: 1, text: NAMES[2] }],
        },
        requests: NAMES.map((name) =>
          requestsOf(name.slice(0, 5), name, { typical: [9, { wall: -1 }], tail: [99, { wall: 2 ** 62, blocked: 9 }] }),
        ),
        suite: hostileSuite(),
        rows: frames.map((_, i) => ({
          node: i + 1,
          thread: i % 10,
          labelSet: i % 10,
          state: i % 6,
          values: [i + 1, 1, 1, 1],
        })),
      },
      { meta: { title: NAMES[1] }, rows: [{ node: 1, values: [1, 1, 1, 1] }] },
    ],
  };
}

test("hostile names are text in every view; nothing runs, nothing is asked for", async () => {
  const url = writePage("hostile", encode(hostile()));
  for (const view of VIEWS) {
    const method = encodeURIComponent(NAMES[0]);
    const { page, requests, errors } = await openPage(
      browser,
      `${url}#view=${view}&method=${method}&base=1&search=script`,
    );
    assert.equal(await page.locator("[role=tab][aria-selected=true]").getAttribute("id"), `tab-${view}`);
    const text = await page.locator("body").innerText();
    assert.ok(text.includes("<script>window.pwned = 1</script>"), view);
    assert.equal(await page.title(), `${NAMES[0]} – rperf`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    assert.equal(await page.evaluate(() => (window as unknown as { pwned?: number }).pwned), undefined);
    assert.deepEqual(errors, []);
    assert.deepEqual(requests, []);
    await page.context().close();
  }
});

test("the policy stops other scripts, markup from text, and connections", async () => {
  const { page, errors } = await openPage(browser, writePage("policy", encode(hostile())));
  const stopped = await page.evaluate(async () => {
    const tries: Record<string, boolean> = {};
    const attempt = async (name: string, act: () => unknown) => {
      try {
        await act();
        tries[name] = false;
      } catch {
        tries[name] = true;
      }
    };
    await attempt("innerHTML", () => {
      document.createElement("div").innerHTML = "<b>x</b>";
    });
    // Not in this call itself: what the test evaluates is exempt.
    // biome-ignore lint/security/noGlobalEval: it is to fail
    const later = new Promise((done) => setTimeout(() => attempt("eval", () => globalThis.eval("1")).then(done)));
    await later;
    await attempt("policy", () =>
      (
        window as unknown as { trustedTypes: { createPolicy(name: string, rules: object): unknown } }
      ).trustedTypes.createPolicy("x", {}),
    );
    await attempt("fetch", () => fetch("http://127.0.0.1:9/"));
    const script = document.createElement("script");
    await attempt("script", () => {
      script.text = "window.pwned = 1";
      document.body.append(script);
    });
    return tries;
  });
  assert.deepEqual(stopped, { innerHTML: true, eval: true, policy: true, fetch: true, script: true });
  assert.equal(await page.evaluate(() => (window as unknown as { pwned?: number }).pwned), undefined);
  assert.ok(
    errors.some((error) => error.includes("connect-src 'none'")),
    "a page with data may not even ask its own server",
  );
  await page.context().close();
});

test("what can't be shown is said in words", async () => {
  const whole = toBase64(encode(hostile()));
  const cases: [string, string, RegExp][] = [
    ["empty", "", /without a profile/],
    ["cut", whole.slice(0, 4 * Math.floor(whole.length / 8)), /can't be unpacked|changed or cut/],
    ["no-base64", "%%%", /not valid base64/],
    ["other", Buffer.from("GIF89a....").toString("base64"), /doesn't begin with RPV1/],
    ["bad-server", "server://evil.example/", /doesn't accept/],
  ];
  for (const [name, data, message] of cases) {
    const { page, requests } = await openPage(browser, writePage(`broken-${name}`, data));
    assert.match(await page.locator(".failed").innerText(), message);
    assert.deepEqual(requests, []);
    await page.context().close();
  }
});

test("odd hashes are ignored", async () => {
  const url = writePage("odd", encode(hostile()));
  for (const hash of [
    "#view=__proto__&zoom=9.9.9&profile=-7&base=99&type=%00",
    "#focus=(&hide=&tagfocus=[",
    "#%%%&zoom=1e9",
    "#profile=1e99&base=1.5",
  ]) {
    const { page, errors } = await openPage(browser, url + hash);
    await page.waitForSelector("#panel");
    assert.deepEqual(errors, []);
    await page.context().close();
  }
});

test("negative values, no rows, one frame, and 10,000 frames of depth are shown", async () => {
  const base: Draft = {
    valueTypes: [{ name: "inuse_space", unit: "bytes" }],
    frames: [{ name: "a" }, { name: "b" }],
    nodes: [
      { parent: 0, frame: 0 },
      { parent: 1, frame: 1 },
    ],
    profiles: [{ rows: [] }],
  };
  const deep = Array.from({ length: 10_000 }, (_, i) => ({ parent: i, frame: i % 2 }));
  const cases: [string, Draft, RegExp][] = [
    ["none", base, /This profile has no inuse space/],
    [
      "negative",
      {
        ...base,
        profiles: [
          {
            rows: [
              { node: 1, values: [-5] },
              { node: 2, values: [9] },
            ],
          },
        ],
      },
      /4 B \(inuse space\)/,
    ],
    ["all-negative", { ...base, profiles: [{ rows: [{ node: 1, values: [-5] }] }] }, /-5 B/],
    ["deep", { ...base, nodes: deep, profiles: [{ rows: [{ node: 10_000, values: [3] }] }] }, /3 B/],
  ];
  for (const [name, draft, words] of cases) {
    const { page, errors } = await openPage(browser, writePage(`case-${name}`, encode(draft)));
    assert.match(await page.locator(".words").innerText(), words);
    await page.locator("#flame").focus();
    if (name === "deep") {
      await page.locator("#flame").evaluate((element) => element.scrollTo(0, 1e9));
      assert.ok((await page.locator("#flame").evaluate((element) => element.scrollTop)) > 190_000);
      await page.locator("#flame").hover({ position: { x: 50, y: 100 } });
      assert.match(await page.locator(".tooltip").innerText(), /3 B with what it calls/);
    }
    for (const key of ["2", "3", "4", "5", "6", "1", "i"]) await page.keyboard.press(key);
    assert.deepEqual(errors, []);
    await page.context().close();
  }
});
