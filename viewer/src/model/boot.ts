import type { ProfileFile, ProfileRows } from "../format/decode.ts";
import { ALL_LOADING } from "./filters.ts";
import { place } from "./groups.ts";
import { type LoadRow, LoadTree } from "./load_tree.ts";
import { rowStateNames, rowStates } from "./states.ts";

/** What stands for a path where options of RUBYOPT load files. */
const OPTIONS = "(RUBYOPT)";

/** The share of looking for, reading and compiling files from which on a profile has a boot worth a tab. */
const LEAST_LOAD = 0.01;

/** A file, or a line that stands for the files that it loads. */
export interface Place {
  kind: "file" | "line" | "options";
  /** As it was recorded. */
  path: string;
  /** As people see it. */
  file: string;
  /** 0 for a file. */
  line: number;
}

/** What a row is called, and how a filter names it. */
interface Named {
  name: string;
  filter: string;
}

/** What the loading of a file took; `self` is its own time and load. */
export interface LoadedFile extends Named {
  place: Place;
  own: number;
  load: number;
  self: number;
  total: number;
  /** The line that has loaded it; of several, the one with the most. */
  from: Place | null;
}

export interface LoadedGem extends Named {
  files: number;
  self: number;
  total: number;
}

/** A block that Rails runs as it starts. */
export interface Initializer extends Named {
  place: Place;
  total: number;
}

/** Which file loads which; row 0 is the root. */
export interface LoadBranches {
  parent: number[];
  depth: number[];
  total: number[];
  self: number[];
  name: string[];
  filter: string[];
  children(row: number): number[];
  weight(row: number): number;
}

export const placeName = ({ file, line }: Place): string => place(file, line);

/** The loading of a profile's files: what `rperf report --boot` tells, of the rows that are kept. */
export class Boot {
  private readonly tree: LoadTree;
  private readonly places: Place[];
  private readonly gemNames: string[];
  /** The first node of the initializer that runs at each node; 0 for none. */
  private readonly running: Uint32Array;

  constructor(
    private readonly file: ProfileFile,
    private readonly profile: ProfileRows,
    private readonly kept: Uint8Array,
    private readonly values: Float64Array | null,
  ) {
    this.tree = new LoadTree(file, profile, kept, values);
    const { rows, sites } = this.tree;
    const linePlaces = sites.map(({ path, line }) => this.placeOf("line", path, line));
    const filePlaces = this.tree.paths.map((_, path) => this.placeOf("file", path, 0));
    this.places = rows.map(({ what }) => (what < 0 ? linePlaces[~what] : filePlaces[what]));
    const gems = this.tree.paths.map((path, id) => this.gemOf(path, this.tree.frameOf[id]));
    this.gemNames = rows.map(({ what }) => {
      const path = what < 0 ? sites[~what].path : what;
      return path < 0 ? OPTIONS : gems[path];
    });
    const { parent, initializers } = file.nodes;
    this.running = new Uint32Array(parent.length);
    if (initializers.size > 0)
      for (let node = 1; node < parent.length; node++)
        this.running[node] = initializers.has(node) ? node : this.running[parent[node]];
  }

  /** All time in which files were loaded. */
  get total(): number {
    return this.tree.rows[0].total;
  }

  /** Looking for, reading and compiling all of them. */
  get load(): number {
    return this.tree.rows.reduce((sum, { load }) => sum + load, 0);
  }

  /** The part of it that is the own time of the program's first file, and not only loading. */
  get program(): number {
    return this.roots().reduce((sum, { site, own }) => (site < 0 ? sum + own : sum), 0);
  }

  /** The sum of another value, or of this one in each state. */
  sums(values: Float64Array | null): { all: number; states: Map<string, number> } {
    const { rowOf } = this.tree;
    const names = rowStateNames(this.file);
    const stateOf = rowStates(this.file, this.profile);
    const states = new Map(names.map((name) => [name, 0]));
    let all = 0;
    this.profile.node.forEach((node, row) => {
      if (!this.kept[row] || rowOf[node] === 0) return;
      const value = values?.[row] ?? 0;
      const name = names[stateOf(row)];
      all += value;
      states.set(name, (states.get(name) ?? 0) + value);
    });
    return { all, states };
  }

  /** Each file once, and each line that stands for files: the largest own time and load first. */
  files(): LoadedFile[] {
    const { rows, sites } = this.tree;
    const files = new Map<number, LoadedFile & { most: number }>();
    for (let row = 1; row < rows.length; row++) {
      const { what, own, load, total, site } = rows[row];
      let file = files.get(what);
      if (!file) {
        const of = this.places[row];
        const zero = { own: 0, load: 0, self: 0, total: 0, from: null, most: Number.NEGATIVE_INFINITY };
        file = { ...this.named(row), place: of, ...zero };
        files.set(what, file);
      }
      file.own += own;
      file.load += load;
      file.self += own + load;
      if (!this.tree.hasCaller(row, (it) => rows[it].what === what)) file.total += total;
      if (what >= 0 && site >= 0 && total > file.most) {
        file.most = total;
        file.from = this.placeOf("line", sites[site].path, sites[site].line);
      }
    }
    const found = [...files.values()].filter(({ own, total }) => total !== 0 || own !== 0);
    return found.sort((a, b) => b.self - a.self || comparePlaces(a.place, b.place));
  }

  /** The gems of these files, the largest own time and load first. */
  gems(): LoadedGem[] {
    const { rows } = this.tree;
    const gems = new Map<string, LoadedGem>();
    const counted = new Set<number>();
    for (let row = 1; row < rows.length; row++) {
      const { what, own, load, total } = rows[row];
      const name = this.gemNames[row];
      const gem = gems.get(name) ?? { name, filter: `gem ${name}`, files: 0, self: 0, total: 0 };
      gems.set(name, gem);
      if (total !== 0 && what >= 0 && !counted.has(what)) {
        counted.add(what);
        gem.files++;
      }
      gem.self += own + load;
      if (!this.tree.hasCaller(row, (it) => this.gemNames[it] === name)) gem.total += total;
    }
    const found = [...gems.values()].filter(({ total }) => total !== 0);
    return found.sort((a, b) => b.self - a.self || compare(a.name, b.name));
  }

  /** The initializers of Rails, each with all below it, the largest first. */
  initializers(): Initializer[] {
    const { frames, nodes } = this.file;
    const found = new Map<string, Initializer>();
    this.profile.node.forEach((node, row) => {
      const start = this.kept[row] ? this.running[node] : 0;
      if (start === 0) return;
      const filter = this.initializerFilter(start);
      let initializer = found.get(filter);
      if (!initializer) {
        const frame = nodes.frame[start];
        const line = nodes.initializers.get(start) ?? 0;
        const of: Place = { kind: "line", path: frames.path[frame], file: frames.file[frame], line };
        initializer = { name: frames.name[frame], filter, place: of, total: 0 };
        found.set(filter, initializer);
      }
      initializer.total += this.values?.[row] ?? 0;
    });
    return [...found.values()]
      .filter(({ total }) => total !== 0)
      .sort((a, b) => b.total - a.total || comparePlaces(a.place, b.place));
  }

  /** Which file loads which, the largest first. */
  branches(): LoadBranches {
    const { rows } = this.tree;
    const depth = [0];
    for (let row = 1; row < rows.length; row++) depth.push(depth[rows[row].caller] + 1);
    const named = rows.map((_, row) => (row === 0 ? { name: "", filter: "" } : this.named(row)));
    // Where a filter leaves nothing of a file, that isn't shown.
    const sorted = rows.map(({ loads }) =>
      loads.filter((row) => rows[row].total !== 0).sort((a, b) => rows[b].total - rows[a].total || a - b),
    );
    return {
      parent: rows.map(({ caller }) => caller),
      depth,
      total: rows.map(({ total }) => total),
      self: rows.map(({ own, load }) => own + load),
      name: named.map(({ name }) => name),
      filter: named.map(({ filter }) => filter),
      children: (row) => sorted[row],
      weight: (row) => rows[row].total,
    };
  }

  /** Whether this profile has a boot that people may ask for: loading takes some of its time, or Rails started. */
  get isThere(): boolean {
    const all = this.values?.reduce((sum, value, row) => (this.kept[row] ? sum + value : sum), 0) ?? 0;
    const hasRails = this.profile.node.some((node, row) => this.kept[row] === 1 && this.running[node] !== 0);
    return this.total > 0 && (hasRails || this.load >= LEAST_LOAD * all);
  }

  /** Whether each row is of what a filter of kind "boot" names, with all that this loads. */
  rowFilter(text: string): (row: number) => boolean {
    const { rows, rowOf } = this.tree;
    const { node } = this.profile;
    if (text.startsWith("initializer "))
      return (row) => this.running[node[row]] !== 0 && this.initializerFilter(this.running[node[row]]) === text;
    const marked = new Uint8Array(rows.length);
    for (let row = 1; row < rows.length; row++)
      if (
        marked[rows[row].caller] ||
        text === ALL_LOADING ||
        `gem ${this.gemNames[row]}` === text ||
        this.named(row).filter === text
      )
        marked[row] = 1;
    return (row) => marked[rowOf[node[row]]] === 1;
  }

  private named(row: number): Named {
    const place = this.places[row];
    const name = placeName(place);
    return { name, filter: `${place.kind === "file" ? "file" : "line"} ${name}` };
  }

  private initializerFilter(start: number): string {
    const { frames, nodes } = this.file;
    const frame = nodes.frame[start];
    return `initializer ${place(frames.file[frame], nodes.initializers.get(start) ?? 0)} ${frames.name[frame]}`;
  }

  private roots(): LoadRow[] {
    const { rows } = this.tree;
    return rows[0].loads.map((row) => rows[row]);
  }

  private placeOf(kind: "file" | "line", path: number, line: number): Place {
    if (path < 0) return { kind: "options", path: OPTIONS, file: OPTIONS, line: 0 };
    return { kind, path: this.tree.paths[path], file: this.file.frames.file[this.tree.frameOf[path]], line };
  }

  /** The gem with its version, or in brackets whose code it is, as the command's tables have it. */
  private gemOf(path: string, frame: number): string {
    const { frames, categories } = this.file;
    if (frames.library[frame] !== "") return frames.library[frame];
    const isRuby = categories[frames.category[frame]] === "stdlib";
    const version = /^[\s\S]*\/lib(?:64)?\/ruby\/(?:(?:site|vendor)_ruby\/)?(\d[^/]*\.[^/]*)\//.exec(path)?.[1];
    if (isRuby && (version !== undefined || !path.startsWith("<")))
      return `(standard library${version ? ` ${version}` : ""})`;
    if (path.startsWith("<")) return isRuby ? "<internal>" : path;
    return "(application)";
  }
}

const KINDS = ["file", "line", "options"];

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

const comparePlaces = (a: Place, b: Place) =>
  KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) ||
  compare(a.path, b.path) ||
  compare(a.file, b.file) ||
  a.line - b.line;
