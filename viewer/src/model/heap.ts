import type { CodePlace, Heap, HeapSite, Step, TreeRow } from "../format/heap.ts";
import { counted, formatCount } from "./units.ts";

/** Steps of a path that are shown; of a longer one the first and the last ones. */
const STEPS = 12;

/** Letters and signs that change the direction of the text around them. */
const TURNS = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufefc]/;

/** A text that leaves the direction of what is beside it alone. */
function apart(text: string): string {
  return TURNS.test(text) ? `\u2068${text}\u2069` : text;
}

/** A class, with the variable that refers to its objects in front. */
export function stepText({ className, name, objects }: Step): string {
  const words = [name, className].filter((word) => word !== "").map(apart);
  if (objects !== null && objects !== 1) words.unshift(formatCount(objects));
  return words.join(" ");
}

/** A path in one line. */
export function pathText(holder: string, steps: Step[]): string {
  const words = [apart(holder), ...steps.map(stepText)].filter((word) => word !== "");
  const more = words.length - STEPS;
  if (more > 0) words.splice(STEPS / 2, more, `(${more} more)`);
  return words.join(" → ");
}

/** Holders and what they hold, as a tree. Row 0 is all of them; row i + 1 is row i of the file. */
export class HeapTree {
  readonly parent: Int32Array;
  readonly depth: Int32Array;
  /** The bytes of all holders together. */
  readonly all: number;
  private readonly kids: number[][];

  constructor(private readonly rows: TreeRow[]) {
    const size = rows.length + 1;
    this.parent = new Int32Array(size);
    this.depth = new Int32Array(size);
    this.kids = Array.from({ length: size }, () => []);
    let all = 0;
    rows.forEach(({ parent, retained }, i) => {
      this.parent[i + 1] = parent + 1;
      this.depth[i + 1] = this.depth[parent + 1] + 1;
      this.kids[parent + 1].push(i + 1);
      if (parent < 0) all += retained;
    });
    this.all = all;
  }

  get size(): number {
    return this.parent.length;
  }

  children(row: number): number[] {
    return this.kids[row];
  }

  weight(row: number): number {
    return row === 0 ? this.all : this.rows[row - 1].retained;
  }

  row(row: number): TreeRow {
    return this.rows[row - 1];
  }

  /** The rows from a holder down to this one. */
  path(row: number): number[] {
    const path = [];
    for (let at = row; at > 0; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  /** What people call a row: its name, and what class it is where that isn't the name. */
  title(row: number): string {
    if (row === 0) return "All";
    const { name, className, isRest } = this.row(row);
    if (isRest) return this.parent[row] === 0 ? "(further holders)" : "(the rest)";
    return this.parent[row] === 0
      ? apart(name || className || "(no name)")
      : stepText({ name, className, objects: null }) || "(no class)";
  }

  /** The holder with this name; 0 for none. */
  holder(name: string): number {
    return this.kids[0].find((row) => this.row(row).name === name) ?? 0;
  }

  /** A row, if it is one. */
  valid(row: number): number {
    return row > 0 && row < this.size ? row : 0;
  }
}

/** The rows of a tree that a search finds, with those above and below them. */
export class FoundTree {
  readonly parent: Int32Array;
  readonly depth: Int32Array;
  /** The rows that match. */
  readonly found: ReadonlySet<number>;
  /** The rows above those. */
  readonly above: ReadonlySet<number>;
  private readonly kept: Uint8Array;

  constructor(
    private readonly tree: HeapTree,
    text: string,
  ) {
    const { parent, depth, size } = tree;
    this.parent = parent;
    this.depth = depth;
    const matches = matcher(text);
    const found = new Set<number>();
    const above = new Set<number>();
    this.kept = new Uint8Array(size);
    for (let row = 1; row < size; row++) {
      const { name, className } = tree.row(row);
      if (matches(name, className)) {
        found.add(row);
        this.kept[row] = 1;
      } else this.kept[row] = this.kept[parent[row]];
    }
    for (let row = size - 1; row > 0; row--) {
      if (!found.has(row) && !above.has(row)) continue;
      this.kept[row] = 1;
      if (parent[row] > 0) above.add(parent[row]);
    }
    this.found = found;
    this.above = above;
  }

  children(row: number): number[] {
    return this.tree.children(row).filter((kid) => this.kept[kid] === 1);
  }

  weight(row: number): number {
    return this.tree.weight(row);
  }
}

/** Whether one of some texts has a text in it, whatever its case. */
export function matcher(text: string): (...texts: string[]) => boolean {
  const wanted = text.toLowerCase();
  return (...texts) => texts.some((it) => it.toLowerCase().includes(wanted));
}

/** Objects of classes that the file has no row of. */
export function objectsWithoutClass({ classes, total }: Heap): number {
  return Math.max(
    0,
    classes.reduce((left, { objects }) => left - objects, total.objects),
  );
}

/** What the sites are a part of: all bytes, or those of their class. */
export function bytesBehindSites({ sites, classes, total }: Heap): number {
  if (!sites || sites.ofClass === null) return total.bytes;
  return classes.find(({ name }) => name === sites.ofClass)?.bytes ?? 0;
}

/** Shortens the paths of code: those of gems from the gem on, others from the directory that they have in common. */
export class CodeNames {
  private readonly common: string;

  constructor(sites: HeapSite[]) {
    const paths = sites.flatMap(({ madeIn, calledBy }) => [madeIn?.path ?? "", calledBy?.path ?? ""]);
    const own = paths.filter((path) => path.startsWith("/") && gemPath(path) === null);
    this.common = own.reduce((common, path) => shared(common, path), own[0]?.replace(/[^/]*$/, "") ?? "");
  }

  /** File and line; nothing for code without a file. */
  place({ path, line }: CodePlace): string {
    if (path === "" || path.startsWith("<")) return "";
    const short = gemPath(path) ?? (path.startsWith(this.common) ? path.slice(this.common.length) : path);
    return line === 0 ? short : `${short}:${line}`;
  }

  method(site: HeapSite): string {
    return site.madeIn?.method || "(unknown site)";
  }

  /** Where the site is, and where the application calls it. */
  note({ madeIn, calledBy }: HeapSite): string {
    const where = madeIn ? this.place(madeIn) : "";
    if (!calledBy) return where;
    const caller = [apart(calledBy.method), this.place(calledBy)].filter((word) => word !== "").join(" ");
    return `${where} ← ${caller}`.trim();
  }
}

/** From the gem on, or from the directory of Ruby's own library. */
function gemPath(path: string): string | null {
  const [, gem] = path.match(/.*\/gems\/([^/]+\/.*)$/s) ?? [];
  if (gem !== undefined) return gem;
  const [, own] = path.match(/\/lib\/ruby\/(?:site_ruby\/|vendor_ruby\/)?\d[^/]*\/(.*)$/s) ?? [];
  return own === undefined ? null : `<ruby>/${own}`;
}

/** The directories with which both begin. */
function shared(directory: string, path: string): string {
  let common = directory;
  while (common !== "" && !path.startsWith(common)) common = common.replace(/[^/]*\/$/, "");
  return common;
}

/** How many rows a search has found, in words. */
export function foundWords(count: number): string {
  return count === 0 ? "Nothing matches." : counted(count, "row");
}
