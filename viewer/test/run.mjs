// Bundles the tests, since this Node runs no TypeScript, and runs them: `node test/run.mjs [page|bench]`.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const directory = process.argv[2] ? join(here, process.argv[2]) : here;
const out = join(here, "..", "node_modules", ".cache", `test-${process.argv[2] ?? "unit"}`);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const tests = readdirSync(directory).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: tests.map((name) => join(directory, name)),
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  packages: "external",
  sourcemap: "inline",
  define: { VIEWER: JSON.stringify(join(here, "..")) },
});
const files = tests.map((name) => join(out, name.replace(/ts$/, "mjs")));
const { status } = spawnSync(
  process.execPath,
  ["--enable-source-maps", "--test", "--test-reporter=spec", "--test-concurrency=1", ...files],
  {
    stdio: "inherit",
  },
);
process.exit(status ?? 1);
