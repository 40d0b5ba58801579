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

  constructor(
    private readonly file: ProfileFile,
    private readonly rows: ProfileRows,
  ) {
    this.app = file.categories.indexOf("app");
  }

  /** The node of a row's stack: the last frame stands for the state, or says that there is none. */
  stack(row: number): number {
    const { parent, frame } = this.file.nodes;
    const node = this.rows.node[row];
    const isRunning = this.file.states[this.rows.state[row]].name === "running";
    return isRunning && this.file.frames.path[frame[node]] !== NO_STACK ? node : parent[node];
  }

  /** The place of a row. */
  of(row: number): number {
    const node = this.stack(row);
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

  private find(leaf: number): Place {
    const { parent, frame, line } = this.file.nodes;
    const { path, category } = this.file.frames;
    const method = leaf === 0 ? -1 : frame[leaf];
    let inFile: Place | null = null;
    for (let node = leaf; node !== 0; node = parent[node]) {
      const at = frame[node];
      if (path[at] === "" || path[at].startsWith("<")) continue;
      const place = { method, app: at, line: line[node] };
      if (category[at] === this.app) return place;
      inFile ??= place;
    }
    return inFile ?? { method, app: -1, line: 0 };
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
