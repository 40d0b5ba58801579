import { badColumn, type Columns } from "./columns.ts";
import { tooLarge } from "./error.ts";

/** Calls of an op, and their time. */
export interface OpCalls {
  calls: number;
  wall: number;
}

/** What the calls of an op took in the requests of an endpoint; times are in nanoseconds. */
export interface Op {
  name: string;
  /** The application's method and line that most of its samples lead to. */
  app: { name: string; file: string; line: number } | null;
  calls: number;
  /** The requests that call it. */
  requests: number;
  /** Those that call it again and again; 0 unless the endpoint does. */
  repeated: number;
  /** With the ops inside of it, which the states are without. */
  wall: number;
  running: number;
  gvlWait: number;
  blocked: number;
  gc: number;
  suspended: number;
  /** How long a call is blocked. */
  p50: number;
  p99: number;
  max: number;
  typical: OpCalls;
  tail: OpCalls;
  /** Null if that isn't known of all calls. */
  objects: number | null;
}

const NUMBERS = [
  ...["calls", "requests", "repeated", "wall", "running", "gvl_wait", "blocked", "gc", "suspended"],
  ...["p50", "p99", "max", "typical_calls", "typical_wall", "tail_calls", "tail_wall", "objects"],
];

/** As many as a profile has at most. */
const MAX_OPS = 1 << 14;

/** The ops of a profile's endpoints. They are columns until they are asked for. */
export class OpTable {
  private readonly counts: Uint32Array;
  private readonly names: string[];
  private readonly methods: string[];
  private readonly files: string[];
  private readonly lines: Uint32Array;
  private readonly numbers: (Float64Array | null)[];

  constructor(columns: Columns, index: number, endpoints: number, string: (column: string, count: number) => string[]) {
    const count = columns.count(`ops/${index}/name`);
    if (count > MAX_OPS) throw tooLarge("has too many ops");
    this.counts = columns.unsigned(`requests/${index}/ops`, endpoints);
    if (this.counts.reduce((sum, some) => sum + some, 0) !== count)
      throw badColumn(`requests/${index}/ops`, "asks for other ops than there are");
    const texts = (column: string) => {
      const name = `ops/${index}/${column}`;
      return columns.has(name) ? string(name, count) : new Array(count).fill("");
    };
    this.names = texts("name");
    this.methods = texts("method");
    this.files = texts("file");
    this.lines = columns.unsigned(`ops/${index}/line`, count);
    this.numbers = NUMBERS.map((column) => columns.values(`ops/${index}/${column}`, count));
  }

  /** Those of each endpoint. */
  all(): Op[][] {
    let at = 0;
    return Array.from(this.counts, (count) => Array.from({ length: count }, () => this.op(at++)));
  }

  private op(row: number): Op {
    const numbers = this.numbers.map((column) => column?.[row] ?? 0);
    const [calls, requests, repeated, wall, running, gvlWait, blocked, gc, suspended, ...more] = numbers;
    const [p50, p99, max, typicalCalls, typicalWall, tailCalls, tailWall, objects] = more;
    const name = this.methods[row];
    return {
      name: this.names[row],
      app: name === "" ? null : { name, file: this.files[row], line: this.lines[row] },
      calls,
      requests,
      repeated,
      ...{ wall, running, gvlWait, blocked, gc, suspended, p50, p99, max },
      typical: { calls: typicalCalls, wall: typicalWall },
      tail: { calls: tailCalls, wall: tailWall },
      objects: objects < 0 ? null : objects,
    };
  }
}
