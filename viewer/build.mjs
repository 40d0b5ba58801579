// Builds the page into lib/rperf/viewer: `node build.mjs`. With --check it writes nothing and fails if what is there
// is not what would be built.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, version as esbuildVersion } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "lib", "rperf", "viewer");
const read = (...path) => readFileSync(join(here, ...path), "utf8");
const sha256 = (text, encoding) => createHash("sha256").update(text).digest(encoding);

async function bundle(entry) {
  const { outputFiles } = await build({
    entryPoints: [join(here, entry)],
    bundle: true,
    write: false,
    minify: true,
    target: ["chrome103", "firefox113", "safari16.4"],
    format: "iife",
    charset: "ascii",
    legalComments: "none",
    jsx: "transform",
    jsxFactory: "h",
    jsxFragment: "Fragment",
    inject: [join(here, "src", "jsx.ts")],
    // The types are those of the other way, which makes larger code.
    tsconfigRaw: { compilerOptions: { jsx: "react" } },
    absWorkingDir: here,
  });
  return outputFiles[0].text.trim();
}

/** What goes into the page and decides what it is: the sources, in order, and what they are built with. */
function sources() {
  const files = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) =>
      join(file.parentPath ?? file.path, file.name)
        .slice(here.length + 1)
        .replaceAll("\\", "/"),
    );
  return [...files, "build.mjs", "package.json", "package-lock.json", "tsconfig.json"].sort();
}

/** One digest of all: of lines "DIGEST  PATH", in the order of the paths, as in spec/formats/viewer_asset_spec.rb. */
function sourceDigest() {
  return sha256(
    sources()
      .map((file) => `${sha256(read(file), "hex")}  ${file}\n`)
      .join(""),
    "hex",
  );
}

function fill(page, name, text) {
  if (page.split(name).length !== 2) throw new Error(`the page must have exactly one ${name}`);
  return page.split(name).join(text);
}

const script = await bundle("src/main.tsx");
const style = await bundle("src/style.css");
// Preact has one assignment to innerHTML, for an attribute that nothing here uses.
const risky = script.match(/\beval\b|new Function|insertAdjacentHTML|outerHTML|document\.write/g) ?? [];
const inner = script.match(/\.innerHTML\s*=/g) ?? [];
if (risky.length > 0 || inner.length > 1) throw new Error(`the bundle has ${[...risky, ...inner].join(", ")}`);
if (/<\/(script|style)|<!--/i.test(script + style)) throw new Error("the bundle would end its own element");

const policy = [
  "default-src 'none'",
  `script-src 'sha256-${sha256(script, "base64")}'`,
  `style-src 'sha256-${sha256(style, "base64")}'`,
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];
const license = readFileSync(join(here, "node_modules", "preact", "LICENSE"), "utf8").trim();
let page = read("src", "page.html");
page = fill(page, "@CSP@", policy.join("; "));
page = fill(page, "@LICENSES@", `This page contains Preact.\n\n${license}`);
page = fill(page, "@STYLE@", style);
page = fill(page, "@SCRIPT@", script);
if (page.split("@RPERF_DATA@").length !== 2) throw new Error("the page must have exactly one @RPERF_DATA@");

const lock = `${[
  "# Written by viewer/build.mjs; spec/formats/viewer_asset_spec.rb fails if the page is not what the sources make.",
  `sources ${sourceDigest()}`,
  `viewer.html ${sha256(page, "hex")}`,
  `esbuild ${esbuildVersion}`,
  `csp ${policy.join("; ")}; frame-ancestors 'none'`,
].join("\n")}\n`;

if (process.argv.includes("--check")) {
  const stale = [
    ["viewer.html", page],
    ["viewer.lock", lock],
  ].filter(([name, text]) => {
    try {
      return readFileSync(join(out, name), "utf8") !== text;
    } catch {
      return true;
    }
  });
  if (stale.length > 0) {
    console.error(`${stale.map(([name]) => name).join(" and ")} in lib/rperf/viewer is stale; run: npm run build`);
    process.exit(1);
  }
} else {
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "viewer.html"), page);
  writeFileSync(join(out, "viewer.lock"), lock);
}
const { gzipSync } = await import("node:zlib");
console.log(
  `viewer.html: ${(page.length / 1e3).toFixed(1)} KB, ${(gzipSync(page).length / 1e3).toFixed(1)} KB with gzip`,
);
