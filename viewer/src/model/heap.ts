import type { CodePlace, Heap, HeapPath, HeapSite, Step, TreeRow } from "../format/heap.ts";
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

/** A path in one line, of which the middle is left out if it has more than `most` steps. */
export function pathText(holder: string, steps: Step[], most = STEPS): string {
  const words = [apart(holder), ...steps.map(stepText)].filter((word) => word !== "");
  const more = words.length - most;
  if (more > 0) words.splice(most / 2, more, `(${more} more)`);
  return words.join(" → ");
}

/** A path as a row of a table, which says in which other row it counts, too. */
export function pathTitle({ holder, steps, within }: HeapPath): string {
  const path = pathText(holder, steps);
  return within === "" ? path : `${path} (part of ${apart(within)})`;
}

/** Holders that are part of others: the tree has them below these, without their names. */
export function partsOfHolders({ holders }: Heap): HeapPath[] {
  return holders.filter(({ within }) => within !== "");
}

/** What a search looks at in a path: each of its names, and all of it. */
export function pathNames({ holder, steps }: { holder: string; steps: Step[] }): string[] {
  const names = steps.flatMap(({ className, name }) => [className, name]);
  return [holder, ...names, pathText(holder, steps, Number.POSITIVE_INFINITY)];
}

/** The sites that a search finds, by all their names. */
export function siteRows({ sites }: Heap, search: string): HeapSite[] {
  const rows = sites?.rows ?? [];
  if (search === "") return rows;
  const matches = matcher(search);
  return rows.filter(({ madeIn, calledBy, endpoint, className, heldBy }) =>
    matches(
      ...[madeIn, calledBy].flatMap((place) => (place ? [place.method, place.path] : [])),
      endpoint,
      className,
      ...heldBy.flatMap(pathNames),
    ),
  );
}

/** The paths that a search finds. */
export function pathRows(paths: HeapPath[], search: string): HeapPath[] {
  if (search === "") return paths;
  const matches = matcher(search);
  return paths.filter((path) => matches(...pathNames(path), path.within));
}

/** Files have no more rows than these of sites, of paths and of holders: the largest ones. */
export const MOST_ROWS = 1000;

/** Holders and what they hold, as a tree. Row 0 is all of them; row i + 1 is row i of the file. */
export class HeapTree {
  readonly parent: Int32Array;
  readonly depth: Int32Array;
  /** The bytes of all holders together. */
  readonly all: number;
  private readonly kids: number[][];
  /** Names that several holders have, which differ in their classes. */
  private readonly shared = new Set<string>();

  constructor(private readonly rows: TreeRow[]) {
    const size = rows.length + 1;
    this.parent = new Int32Array(size);
    this.depth = new Int32Array(size);
    this.kids = Array.from({ length: size }, () => []);
    let all = 0;
    const names = new Set<string>();
    rows.forEach(({ parent, retained, name, isRest }, i) => {
      this.parent[i + 1] = parent + 1;
      this.depth[i + 1] = this.depth[parent + 1] + 1;
      this.kids[parent + 1].push(i + 1);
      if (parent >= 0) return;
      all += retained;
      if (name === "" || isRest) return;
      if (names.has(name)) this.shared.add(name);
      names.add(name);
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
    if (this.parent[row] !== 0) return stepText({ name, className, objects: null }) || "(no class)";
    const title = apart(name || className || "(no name)");
    return this.shared.has(name) && className !== "" ? `${title} (${apart(className)})` : title;
  }

  /** The class of a holder, where its title doesn't have that. */
  classNote(row: number): string {
    const { name, className } = this.row(row);
    return this.parent[row] === 0 && name !== "" && !this.shared.has(name) ? className : "";
  }

  /** The holder with this name whose object has this class, or the only one with the name; 0 for none. */
  holder(name: string, className: string | undefined): number {
    const named = this.kids[0].filter((row) => this.row(row).name === name && !this.row(row).isRest);
    return named.find((row) => this.row(row).className === className) ?? (named.length === 1 ? named[0] : 0);
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
    const isExact = exactName(text) !== null;
    const found = new Set<number>();
    const above = new Set<number>();
    this.kept = new Uint8Array(size);
    for (let row = 1; row < size; row++) {
      const { name, className, isRest } = tree.row(row);
      if (isExact ? !isRest && matches(className) : matches(name, className)) {
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

  /** Whether a row matches, or is above or below one that does. */
  keeps(row: number): boolean {
    return this.kept[row] === 1;
  }
}

/**
 * The rows with boxes in the map that a search marks: those that it finds, and the innermost ones around those that are
 * too small for a box, if no other one in them is marked.
 */
export function markedRows(
  { parent, size }: HeapTree,
  { found }: FoundTree,
  drawn: { has(row: number): boolean },
): Set<number> {
  const marked = new Set<number>();
  const innermost = new Int32Array(size);
  for (let row = 1; row < size; row++) {
    innermost[row] = drawn.has(row) ? row : innermost[parent[row]];
    if (found.has(row) && innermost[row] > 0) marked.add(innermost[row]);
  }
  const hasMark = new Uint8Array(size);
  for (let row = size - 1; row > 0; row--) {
    if (hasMark[row] === 1 && !found.has(row)) marked.delete(row);
    if (hasMark[row] === 1 || marked.has(row)) hasMark[parent[row]] = 1;
  }
  return marked;
}

/** The longest search that the URL keeps. */
export const MAX_SEARCH = 200;

/** A search for exactly this name; plain text where it is too long for that. */
export function exactSearch(name: string): string {
  return name.length + 2 <= MAX_SEARCH ? `"${name}"` : name;
}

/** The whole name that a search in double quotes is for; null for other searches. */
function exactName(text: string): string | null {
  return text.match(/^"(.*)"$/s)?.[1] ?? null;
}

/** Whether one of some texts has a text in it, whatever its case, or is the text in double quotes. */
export function matcher(text: string): (...texts: string[]) => boolean {
  const exact = exactName(text);
  if (exact !== null) return (...texts) => texts.includes(exact);
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

/** What the sites are a part of: all bytes, or those of their class; null if the file has no row of that. */
export function bytesBehindSites({ sites, classes, total }: Heap): number | null {
  if (!sites || sites.ofClass === null) return total.bytes;
  return classes.find(({ name }) => name === sites.ofClass)?.bytes ?? null;
}

/** The class that was asked for, as the sites tell, or the ends of its paths; undefined where nothing tells. */
export function classOfPaths({ sites, paths }: Heap): string | undefined {
  return sites?.ofClass ?? paths?.[0]?.steps.at(-1)?.className;
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
