import { badColumn, type Columns } from "./columns.ts";
import { tooLarge } from "./error.ts";
import { type Op, OpTable } from "./ops.ts";

/** The classes that requests are judged by, in the order in which files have them. */
export const CLASSES = ["first", "fast", "typical", "slow", "tail"] as const;
export type LatencyClass = (typeof CLASSES)[number];

/** What requests took; times are in nanoseconds. */
export interface RequestValues {
  wall: number;
  running: number;
  gvlWait: number;
  blocked: number;
  gc: number;
  suspended: number;
  gvlBlame: number;
  objects: number;
}

/** All requests of one class together. */
export interface RequestSums extends RequestValues {
  count: number;
  /** How many there are whose objects and blame are known. */
  alone: number;
}

/** One of the slowest requests. */
export interface Slowest extends RequestValues {
  endedMs: number;
  /** The value of its label `%request`, which is on its samples if there was room; null in files without it. */
  id: string | null;
}

/** The requests of one endpoint, or the jobs of one class. */
export interface Requests {
  /** The label that has the name. */
  key: string;
  name: string;
  count: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
  classes: Record<LatencyClass, RequestSums>;
  /** The slowest one first. */
  slowest: Slowest[];
  /** By name. */
  ops: Op[];
}

const VALUES: [keyof RequestValues, column: string][] = [
  ["wall", "wall"],
  ["running", "running"],
  ["gvlWait", "gvl_wait"],
  ["blocked", "blocked"],
  ["gc", "gc"],
  ["suspended", "suspended"],
  ["gvlBlame", "gvl_blame"],
  ["objects", "objects"],
];

/** As many endpoints as a profile has at most. */
const MAX_ENDPOINTS = 1 << 14;

type Column = Float64Array | null;

/** The requests of a profile. They are columns until they are asked for: a small file can have many. */
export class RequestTable {
  readonly length: number;
  private readonly keys: string[];
  private readonly names: string[];
  private readonly walls: Column[];
  private readonly slowestOf: Uint32Array;
  private readonly classes: Column[];
  private readonly slowest: Column[];
  private readonly ops: OpTable;
  private made: Requests[] | null = null;

  constructor(columns: Columns, index: number, string: (column: string, count: number) => string[]) {
    const count = columns.count(`requests/${index}/name`);
    if (count > MAX_ENDPOINTS) throw tooLarge("has too many endpoints");
    this.names = string(`requests/${index}/name`, count);
    this.keys = columns.has(`requests/${index}/key`)
      ? string(`requests/${index}/key`, count)
      : this.names.map(() => "");
    this.length = count;
    const read = (table: string, count: number, names: string[]) =>
      names.map((name) => columns.values(`${table}/${index}/${name}`, count));
    const values = VALUES.map(([, column]) => column);
    this.walls = read("requests", count, ["count", "p50", "p95", "p99", "max"]);
    this.classes = read("request_classes", count * CLASSES.length, ["count", "alone", ...values]);
    this.slowestOf = columns.unsigned(`requests/${index}/slowest`, count);
    const slowest = this.slowestOf.reduce((sum, some) => sum + some, 0);
    if (slowest !== columns.count(`slowest/${index}/wall`))
      throw badColumn(`requests/${index}/slowest`, "asks for other requests than there are");
    this.slowest = read("slowest", slowest, ["ended_ms", "session", "number", ...values]);
    this.ops = new OpTable(columns, index, count, string);
  }

  all(): Requests[] {
    this.made ??= this.make();
    return this.made;
  }

  private make(): Requests[] {
    let at = 0;
    const ops = this.ops.all();
    return this.names.map((name, i) => {
      const [count, p50, p95, p99, max] = numbers(this.walls, i);
      const sums = CLASSES.map((kind, number): [LatencyClass, RequestSums] => {
        const [count, alone, ...values] = numbers(this.classes, i * CLASSES.length + number);
        return [kind, { count, alone, ...named(values) }];
      });
      const slowest = Array.from({ length: this.slowestOf[i] }, () => {
        const [endedMs, session, number, ...values] = numbers(this.slowest, at++);
        return {
          endedMs,
          id: number > 0 ? `${session.toString(16).padStart(8, "0")}-${number}` : null,
          ...named(values),
        };
      });
      const classes = Object.fromEntries(sums) as Requests["classes"];
      return { key: this.keys[i], name, count, p50, p95, p99, max, classes, slowest, ops: ops[i] };
    });
  }
}

const numbers = (columns: Column[], row: number): number[] => columns.map((column) => column?.[row] ?? 0);

const named = (values: number[]) =>
  Object.fromEntries(VALUES.map(([name], i) => [name, values[i]])) as unknown as RequestValues;
