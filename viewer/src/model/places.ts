import type { ProfileFile, ProfileRows } from "../format/decode.ts";
import { place as filePlace } from "./groups.ts";

/** Where time was, as frames of the file; -1 for none. */
export interface Place {
  /** The innermost method. */
  method: number;
  /** The innermost one of the application, or else in a file, and the line in it. */
  app: number;
  line: number;
}

/** The path of frames that stand for a stack without any. */
const NO_STACK = "<thread>";

/** Where the rows of a profile are, each place once. */
export class Places {
  readonly known: Place[] = [];
  private readonly ids = new Map<string, number>();
  private readonly ofNode = new Map<number, number>();
  private readonly app: number;
  private readonly rperf: number;

  constructor(
    private readonly file: ProfileFile,
    private readonly rows: ProfileRows,
  ) {
    this.app = file.categories.indexOf("app");
    this.rperf = file.categories.indexOf("rperf");
  }

  /** The node of a row's stack: the last frame stands for the state, or says that there is none. */
  stack(row: number): number {
    const { parent, frame } = this.file.nodes;
    const node = this.rows.node[row];
    const isRunning = this.file.states[this.rows.state[row]].name === "running";
    return isRunning && this.file.frames.path[frame[node]] !== NO_STACK ? node : parent[node];
  }

  /** Whether the innermost function of a row is rperf's own: what it took is no time of its callers. */
  isRperfs(row: number): boolean {
    const { frames, nodes } = this.file;
    const node = this.stack(row);
    return node !== 0 && frames.category[nodes.frame[node]] === this.rperf;
  }

  /** The place of a row. */
  of(row: number): number {
    return this.ofStack(this.stack(row));
  }

  private ofStack(node: number): number {
    let place = this.ofNode.get(node);
    if (place === undefined) {
      place = this.id(this.find(node));
      this.ofNode.set(node, place);
    }
    return place;
  }

  order(a: Place, b: Place): number {
    return this.compare(a.method, b.method) || this.compare(a.app, b.app) || a.line - b.line;
  }

  /** The innermost function of the application, or else in a file, that at least half of the time of these stacks is in,
   * with the line that most of it is at, and below it the innermost function of all of which that is true. If there is
   * none, the place that most of the time is at. A small helper that more time is at than at any other single place
   * doesn't stand for its caller. */
  ofMost(stacks: Map<number, number>): Place {
    const timed = [...stacks].filter(([, time]) => time > 0);
    const all = timed.reduce((sum, [, time]) => sum + time, 0);
    const most = this.innermost(
      timed.map(([node, time]) => [this.own(node), time]),
      all,
    );
    if (most === null) return this.single(timed);
    const { frame, line } = this.file.nodes;
    const lines = new Map<number, number>();
    const below: [number[], number][] = [];
    for (const [leaf, time] of timed) {
      const nodes = this.nodes(leaf);
      const place = nodes.findIndex((node) => frame[node] === most);
      if (place < 0) continue;
      const at = line[nodes[place]];
      lines.set(at, (lines.get(at) ?? 0) + time);
      below.push([nodes.slice(0, place + 1), time]);
    }
    const [first] = [...lines].sort(([a, x], [b, y]) => y - x || a - b);
    return { method: this.innermost(below, all) ?? most, app: most, line: first[0] };
  }

  /** The innermost function of most of these stacks, among those that at least half of `all` is in. */
  private innermost(stacks: [nodes: number[], time: number][], all: number): number | null {
    const { frame } = this.file.nodes;
    const totals = new Map<number, number>();
    for (const [nodes, time] of stacks)
      for (const at of new Set(nodes.map((node) => frame[node]))) totals.set(at, (totals.get(at) ?? 0) + time);
    const total = (at: number) => totals.get(at) ?? 0;
    const sums = new Map<number, number>();
    for (const [nodes, time] of stacks) {
      const node = nodes.find((node) => 2 * total(frame[node]) >= all);
      if (node !== undefined) sums.set(frame[node], (sums.get(frame[node]) ?? 0) + time);
    }
    const [most] = [...sums].sort(([a, x], [b, y]) => y - x || total(a) - total(b) || this.compare(a, b));
    return most?.[0] ?? null;
  }

  private single(stacks: [node: number, time: number][]): Place {
    const sums = new Map<number, number>();
    for (const [node, time] of stacks) {
      const place = this.ofStack(node);
      sums.set(place, (sums.get(place) ?? 0) + time);
    }
    const { known } = this;
    const [most] = [...sums].sort(([a, x], [b, y]) => y - x || this.order(known[a], known[b]));
    return most ? known[most[0]] : { method: -1, app: -1, line: 0 };
  }

  /** The nodes of a stack, the innermost first, without rperf's own. */
  private nodes(leaf: number): number[] {
    const { parent, frame } = this.file.nodes;
    const nodes: number[] = [];
    for (let node = leaf; node !== 0; node = parent[node])
      if (this.file.frames.category[frame[node]] !== this.rperf) nodes.push(node);
    return nodes;
  }

  /** The application's ones of a stack, or else those in files. */
  private own(leaf: number): number[] {
    const { path, category } = this.file.frames;
    const { frame } = this.file.nodes;
    const inFiles = this.nodes(leaf).filter((node) => path[frame[node]] !== "" && !path[frame[node]].startsWith("<"));
    const own = inFiles.filter((node) => category[frame[node]] === this.app);
    return own.length > 0 ? own : inFiles;
  }

  private find(leaf: number): Place {
    const { frame, line } = this.file.nodes;
    const [innermost] = this.nodes(leaf);
    const [own] = this.own(leaf);
    const method = innermost === undefined ? -1 : frame[innermost];
    return own === undefined ? { method, app: -1, line: 0 } : { method, app: frame[own], line: line[own] };
  }

  private id(place: Place): number {
    const key = `${place.method} ${place.app} ${place.line}`;
    const known = this.ids.get(key);
    if (known !== undefined) return known;
    this.ids.set(key, this.known.length);
    return this.known.push(place) - 1;
  }

  private compare(a: number, b: number): number {
    if (a < 0 || b < 0) return a - b;
    const { name, path, file } = this.file.frames;
    for (const texts of [name, path, file]) if (texts[a] !== texts[b]) return texts[a] < texts[b] ? -1 : 1;
    return 0;
  }
}

/** A place in words: the method, and the application's own one that leads to it, with its line. */
export function placeWords({ frames }: ProfileFile, { method, app, line }: Place): { name: string; at: string } {
  if (app < 0) return { name: method < 0 ? "(no stack)" : frames.name[method], at: "" };
  const own = frames.name[app];
  const name = method >= 0 && frames.name[method] !== own ? `${frames.name[method]}, in ${own}` : own;
  return { name, at: filePlace(frames.file[app], line) };
}
