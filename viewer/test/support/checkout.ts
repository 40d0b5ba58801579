// This checkout's rperf, for tests of real profiles.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { decode, type ProfileFile } from "../../src/format/decode.ts";

declare const VIEWER: string;

export const ROOT = join(VIEWER, "..");

/** A directory of a test's own, in which Ruby programs run. */
export class Checkout {
  readonly directory: string;

  constructor(name: string) {
    this.directory = join(VIEWER, "node_modules", ".cache", name);
    rmSync(this.directory, { recursive: true, force: true });
    mkdirSync(this.directory, { recursive: true });
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Runs a Ruby program with this checkout's rperf, and returns what it prints. */
  ruby(...args: string[]): string {
    return execFileSync(join(ROOT, "bin", "env"), ["ruby", ...args], {
      cwd: this.directory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  }

  rperf(...args: string[]): string {
    return this.ruby(join(ROOT, "exe", "rperf"), ...args);
  }

  /** What a page has in it. */
  dataOf(name: string): ProfileFile {
    const [, data] = readFileSync(this.path(name), "utf8").match(/id="profile">([^<]*)</) ?? [];
    return decode(gunzipSync(Buffer.from(data, "base64")));
  }
}
