import type { FrameTable, ProfileFile, ProfileRows } from "../format/decode.ts";

/** Frames of the code of a file outside of methods. */
const MAIN = ["<main>", "<top (required)>"];

/** The methods that load files. */
const LOADERS = new Set(
  ["require", "require_relative", "load"].flatMap((name) => [`Kernel#${name}`, `Kernel.${name}`]),
);

/** What Ruby puts before the name of a method, for code inside of it. */
const INSIDE = /^(?:(?:block|rescue|ensure)(?: [\s\S]*?)?? in )+/;

/** The path of code that was evaluated: its first word isn't spelled out, as the page's builder refuses calls of it. */
const EVALUATED = /^\(ev[a]l at [\s\S]+:\d+\)$/;

/** What a frame means here; all but these mean nothing. */
const FILE = 1;
const LOADER = 2;
const IN_FILE = 3;

/** A line that calls `require` or its like. */
interface Site {
  /** A place in `paths`; -1: Ruby itself loads, as RUBYOPT says. */
  path: number;
  line: number;
  /** The file that has run below it: -1 for none, -2 for several. */
  leadsTo: number;
}

/** A file at a place in the tree, or a line that loads files of which no more is known. */
export interface LoadRow {
  /** A place in `paths`, or `~site`. */
  what: number;
  /** The row that loads it; 0 if none does. */
  caller: number;
  /** The line that does; of several, the one with the most; -1 if none does. */
  site: number;
  own: number;
  load: number;
  /** With all that it loads. */
  total: number;
  loads: number[];
}

/** Which file loads which, by the rules of rperf-report's `boot/load_tree.rs`: `rperf report --boot` says the same. */
export class LoadTree {
  /** Each after the one that loads it. Row 0 is no file: all that no other file loads is below it. */
  readonly rows: LoadRow[] = [{ what: 0, caller: 0, site: -1, own: 0, load: 0, total: 0, loads: [] }];
  readonly sites: Site[] = [];
  readonly paths: string[] = [];
  /** A frame in each of the paths. */
  readonly frameOf: number[] = [];
  /** The row in which the time at each node counts; 0 for none. */
  readonly rowOf: Int32Array;
  private readonly known = new Map<string, number>();
  private readonly siteIds = new Map<string, number>();
  /** For each node: the innermost file that runs, the line that has loaded it, and the one that loads the next. */
  private readonly file: Int32Array;
  private readonly loadedBy: Int32Array;
  private readonly site: Int32Array;

  /** The tree of all files, with the time of the kept rows. */
  constructor(
    private readonly profile: ProfileFile,
    rows: ProfileRows,
    kept: Uint8Array,
    values: Float64Array | null,
  ) {
    const { parent } = profile.nodes;
    this.rowOf = new Int32Array(parent.length);
    this.file = new Int32Array(parent.length);
    this.loadedBy = new Int32Array(parent.length).fill(-1);
    this.site = new Int32Array(parent.length).fill(-1);
    const used = new Uint8Array(parent.length);
    // Rows that filters leave out tell which file a line loads, too.
    for (const leaf of rows.node) for (let node = leaf; node !== 0 && !used[node]; node = parent[node]) used[node] = 1;
    this.read(used);
    this.addValues(rows, kept, values);
    for (let row = this.rows.length - 1; row > 0; row--) {
      const found = this.rows[row];
      found.total += found.own + found.load;
      this.rows[found.caller].total += found.total;
    }
  }

  /** Adds the files and lines of the call tree. */
  private read(used: Uint8Array) {
    const { frames, nodes } = this.profile;
    const kinds = frameKinds(frames);
    const ids = new Map<string, number>();
    const pathIds = frames.path.map((path, frame) => {
      const id = ids.get(path) ?? ids.size;
      if (!ids.has(path)) {
        ids.set(path, id);
        this.paths.push(path);
        this.frameOf.push(frame);
      }
      return id;
    });
    const { file, loadedBy, site } = this;
    // Other code has been called since the line that loads; and the innermost line of a file.
    const isBeyond = new Uint8Array(used.length);
    const path = new Int32Array(used.length).fill(-1);
    const line = new Uint32Array(used.length);
    for (let node = 1; node < used.length; node++) {
      if (!used[node]) continue;
      const above = nodes.parent[node];
      const kind = kinds[nodes.frame[node]];
      const isInFile = kind === FILE || kind === IN_FILE;
      path[node] = isInFile ? pathIds[nodes.frame[node]] : path[above];
      line[node] = isInFile ? nodes.line[node] : line[above];
      file[node] = file[above];
      loadedBy[node] = loadedBy[above];
      site[node] = site[above];
      isBeyond[node] = isBeyond[above];
      if (kind === FILE) {
        if (site[above] >= 0) this.leadsTo(site[above], path[node]);
        loadedBy[node] = site[above] < 0 && path[above] >= 0 ? this.siteId(path[above], line[above]) : site[above];
        file[node] = this.row(file[above], path[node], loadedBy[node]);
        site[node] = -1;
        isBeyond[node] = 0;
      } else if (kind === LOADER && (site[above] < 0 || isBeyond[above])) {
        site[node] = this.siteId(path[above], line[above]);
        isBeyond[node] = 0;
      } else if (kind === IN_FILE) {
        isBeyond[node] = site[above] < 0 ? 0 : 1;
      }
    }
  }

  private addValues(rows: ProfileRows, kept: Uint8Array, values: Float64Array | null) {
    const loads = new Map<string, { file: number; site: number; value: number; nodes: number[] }>();
    const bySite = new Map<string, { row: number; site: number; value: number }>();
    const addSite = (row: number, site: number, value: number) => {
      const key = `${row} ${site}`;
      const sum = bySite.get(key);
      if (sum) sum.value += value;
      else bySite.set(key, { row, site, value });
    };
    for (let at = 0; at < kept.length; at++) {
      if (!kept[at]) continue;
      const node = rows.node[at];
      const value = values?.[at] ?? 0;
      const file = this.file[node];
      const site = this.site[node];
      if (site >= 0) {
        const key = `${file} ${site}`;
        const sum = loads.get(key) ?? { file, site, value: 0, nodes: [] };
        loads.set(key, sum);
        sum.value += value;
        sum.nodes.push(node);
      } else if (file > 0) {
        this.rowOf[node] = file;
        this.rows[file].own += value;
        if (this.loadedBy[node] >= 0) addSite(file, this.loadedBy[node], value);
      }
    }
    const sorted = [...loads.values()].sort((a, b) => a.file - b.file || a.site - b.site);
    for (const { file, site, value, nodes } of sorted) {
      const { leadsTo } = this.sites[site];
      const row = this.row(file, leadsTo >= 0 ? leadsTo : ~site, site);
      this.rows[row].load += value;
      for (const node of nodes) this.rowOf[node] = row;
      addSite(row, site, value);
    }
    const most = new Map<number, number>();
    for (const { row, site, value } of [...bySite.values()].sort((a, b) => a.site - b.site)) {
      if (value <= (most.get(row) ?? Number.NEGATIVE_INFINITY)) continue;
      most.set(row, value);
      this.rows[row].site = site;
    }
  }

  private leadsTo(site: number, path: number) {
    const { leadsTo } = this.sites[site];
    this.sites[site].leadsTo = leadsTo === -1 || leadsTo === path ? path : -2;
  }

  private siteId(path: number, line: number): number {
    const key = `${path} ${line}`;
    const known = this.siteIds.get(key);
    if (known !== undefined) return known;
    this.siteIds.set(key, this.sites.length);
    return this.sites.push({ path, line, leadsTo: -1 }) - 1;
  }

  private row(caller: number, what: number, site: number): number {
    const key = `${caller} ${what}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const row = this.rows.push({ what, caller, site, own: 0, load: 0, total: 0, loads: [] }) - 1;
    this.known.set(key, row);
    this.rows[caller].loads.push(row);
    return row;
  }

  /** Whether a row that leads to this one has `of` true. */
  hasCaller(row: number, of: (row: number) => boolean): boolean {
    for (let at = this.rows[row].caller; at !== 0; at = this.rows[at].caller) if (of(at)) return true;
    return false;
  }
}

/** Ruby writes names that are no files in angle brackets. */
const isFile = (path: string) => path !== "" && !path.startsWith("<");

function frameKinds({ name, path }: FrameTable): Uint8Array {
  return Uint8Array.from(name, (name, frame) => {
    const at = path[frame];
    if (MAIN.includes(name) && !EVALUATED.test(at)) return FILE;
    const method = name.replace(INSIDE, "");
    // What Ruby puts before `require` where there is Bundler: its block is the new method.
    const isReplaced = method.endsWith("replace_require") && at.endsWith("/bundled_gems.rb");
    if (LOADERS.has(method) || isReplaced) return LOADER;
    return isFile(at) ? IN_FILE : 0;
  });
}
