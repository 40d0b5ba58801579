import { DataError, damaged } from "./error.ts";
import { isObject, type Json } from "./json.ts";

/** What a value measures. */
export interface ValueType {
  name: string;
  unit: string;
}

/** What a thread was doing, with the pprof tag that says the same. */
export interface StateInfo {
  name: string;
  tag: [string, string] | null;
}

export interface Loss {
  counter: string;
  value: number;
  text: string;
}

/** What is known about a profile as a whole; null is "not known". */
export interface Meta {
  title: string;
  program: string | null;
  startMs: number | null;
  durationNs: number | null;
  frequency: number | null;
  comments: string[];
  losses: Loss[];
}

/** What `rperf diff` says of a difference. */
export type Verdict = "unknown" | "noise" | "more" | "less";
/** By their numbers in files. */
export const VERDICTS: readonly Verdict[] = ["unknown", "noise", "more", "less"];

/** How all of one value type has changed: means of runs, of which there are so many on each side. */
export interface TotalChange {
  runs: [number, number];
  before: number;
  after: number;
  verdict: Verdict;
}

/** Which profiles to compare, and the factor for the base's values. */
export interface DiffInfo {
  base: number;
  target: number;
  scale: number;
  normalised: string;
  /** Whether methods are compared by their own values, or with what they call. */
  by: "self" | "total";
  /** For each value type; null where the file doesn't tell. */
  changes: (TotalChange | null)[];
}

export interface ColumnEntry {
  name: string;
  encoding: string;
  offset: number;
  length: number;
  count: number;
}

export interface Header {
  valueTypes: ValueType[];
  defaultType: number;
  states: StateInfo[];
  categories: string[];
  profiles: Meta[];
  diff: DiffInfo | null;
  columns: ColumnEntry[];
}

/** Columns of values that all profiles have together: a small header can name very many. */
const MAX_COLUMNS = 10_000;

const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const objects = (value: unknown): Json[] => list(value).filter(isObject);
const texts = (value: unknown): string[] => list(value).filter((item) => typeof item === "string");

/** Reads the JSON header. Keys that are not known are skipped. */
export function parseHeader(json: string): Header {
  let header: unknown;
  try {
    header = JSON.parse(json);
  } catch {
    throw damaged("its header is not JSON");
  }
  if (!isObject(header)) throw damaged("its header is no object");
  if (header.version !== 1) {
    throw new DataError(
      `The profile has version ${String(header.version)} of the format; this page reads version 1. Use the page of the rperf that made it.`,
    );
  }
  const valueTypes = objects(header.value_types).map((type) => ({
    name: text(type.name) ?? "",
    unit: text(type.unit) ?? "",
  }));
  const profiles = objects(header.profiles).map(meta);
  if (valueTypes.length === 0) throw new DataError("The profile measures nothing: it has no value types.");
  if (profiles.length === 0) throw new DataError("There is no profile in this file.");
  if (valueTypes.length * profiles.length > MAX_COLUMNS) throw damaged("it has too many columns");
  const defaultType = number(header.default_type) ?? 0;
  const states = objects(header.states).map(state);
  const categories = texts(header.categories);
  return {
    valueTypes,
    defaultType: valueTypes[defaultType] ? defaultType : 0,
    states: states.length > 0 ? states : [{ name: "running", tag: null }],
    categories: categories.length > 0 ? categories : ["other"],
    profiles,
    diff: diff(header.diff, profiles.length, valueTypes.length),
    columns: objects(header.columns).map(column),
  };
}

function state(json: Json): StateInfo {
  const [key, value] = texts(json.tag);
  return { name: text(json.name) ?? "", tag: key !== undefined && value !== undefined ? [key, value] : null };
}

function meta(json: Json, index: number): Meta {
  const program = text(json.program);
  return {
    title: text(json.title) ?? program ?? `profile ${index + 1}`,
    program,
    startMs: number(json.start_ms),
    durationNs: number(json.duration_ns),
    frequency: number(json.frequency),
    comments: texts(json.comments),
    losses: objects(json.losses).map((loss) => ({
      counter: text(loss.counter) ?? "",
      value: number(loss.value) ?? 0,
      text: text(loss.text) ?? "",
    })),
  };
}

function diff(json: unknown, profiles: number, types: number): DiffInfo | null {
  if (!isObject(json)) return null;
  const base = number(json.base) ?? -1;
  const target = number(json.target) ?? -1;
  const inRange = (index: number) => Number.isInteger(index) && index >= 0 && index < profiles;
  if (!inRange(base) || !inRange(target)) {
    throw damaged("its diff names a profile that isn't there");
  }
  const scale = number(json.scale);
  const changes = list(json.changes);
  return {
    base,
    target,
    scale: scale !== null && scale > 0 ? scale : 1,
    normalised: text(json.normalised) ?? "none",
    by: json.by === "total" ? "total" : "self",
    changes: Array.from({ length: types }, (_, type) => totalChange(changes[type])),
  };
}

function totalChange(json: unknown): TotalChange | null {
  if (!isObject(json)) return null;
  const [before, after] = [number(json.base), number(json.target)];
  const [base, target] = list(json.runs).map(number);
  const verdict = VERDICTS[number(json.verdict) ?? -1];
  if (before === null || after === null || !base || !target || !verdict) return null;
  return { runs: [base, target], before, after, verdict };
}

function column(json: Json): ColumnEntry {
  return {
    name: text(json.name) ?? "",
    encoding: text(json.encoding) ?? "",
    offset: number(json.offset) ?? -1,
    length: number(json.length) ?? -1,
    count: number(json.count) ?? -1,
  };
}
