import { DataError } from "./error.ts";
import { isObject, type Json } from "./json.ts";

/** Some objects, and their bytes. */
export interface Sum {
  objects: number;
  bytes: number;
}

/** All objects of a class. */
export interface HeapClass extends Sum {
  name: string;
  retained: number;
  /** Those of them that nothing refers to. */
  unreferenced: Sum;
}

/** A step of a path: a class, and the instance variable by which its objects are held, or the empty string. */
export interface Step {
  className: string;
  name: string;
  /** How many objects there are; null where it isn't told. */
  objects: number | null;
}

/** What is held by a name, and on which path. */
export interface HeapPath {
  holder: string;
  steps: Step[];
  objects: number;
  /** Of the instances; null for holders, which tell only what would go with them. */
  bytes: number | null;
  retained: number;
  /** The holder of which it is a part, whose bytes count it, too; the empty string for none. */
  within: string;
}

export interface CodePlace {
  method: string;
  path: string;
  line: number;
}

/** How a part of a site's bytes is held. */
export interface SitePath {
  holder: string;
  steps: Step[];
  /** From 0 to 1. */
  part: number;
}

/** What a place in code has made of a class and is there still, as samples tell. */
export interface HeapSite extends Sum {
  madeIn: CodePlace | null;
  calledBy: CodePlace | null;
  endpoint: string;
  className: string;
  samples: number;
  deviation: number;
  medianAgeNs: number;
  medianCollections: number;
  oldestNs: number;
  heldBy: SitePath[];
}

export interface HeapSites {
  /** The class that all sites are of; null: of any. */
  ofClass: string | null;
  sessionNs: number;
  bytesPerSample: number;
  lostBytes: number;
  samples: number;
  unreferencedSamples: number;
  total: Sum;
  deviation: number;
  rows: HeapSite[];
}

/** A row of the tree of what holds what: a holder, or below it the objects of a class that one variable refers to. */
export interface TreeRow extends Sum {
  /** The row above; -1 for none. It comes earlier. */
  parent: number;
  name: string;
  className: string;
  retainedObjects: number;
  retained: number;
  /** It stands for all that has no row of its own there. */
  isRest: boolean;
}

/** What `rperf heap --json` tells. */
export interface Heap {
  pid: number;
  program: string;
  ruby: string;
  timeMs: number;
  elapsedNs: number;
  /** Whether all names are there. */
  isWhole: boolean;
  total: Sum;
  unreferenced: Sum;
  references: number;
  classes: HeapClass[];
  holders: HeapPath[];
  tree: TreeRow[];
  sites: HeapSites | null;
  paths: HeapPath[] | null;
}

/** The first byte of the JSON: profiles begin with another one. */
const BRACE = 0x7b;
const KIND = "rperf heap";
const VERSION = 1;
/** Amounts are of 64 bits. */
const MOST = 2 ** 64;
const MAX_ROWS = 100_000;
/** Of longer texts, such as the name of a generated class, this much is kept. */
const MAX_TEXT = 2000;

export function isHeap(data: Uint8Array): boolean {
  return data[0] === BRACE;
}

/** Reads the JSON; what isn't as it must be is an error that says where. */
export function readHeap(data: Uint8Array): Heap {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder().decode(data));
  } catch {
    throw damaged("they are no JSON");
  }
  if (!isObject(json)) throw damaged("they are no object");
  if (json.kind !== KIND) {
    throw new DataError(
      "This page has neither a profile nor a heap. `rperf heap PID --html` makes a page with a heap.",
    );
  }
  if (json.version !== VERSION) {
    throw new DataError(
      `The heap's data have version ${String(json.version).slice(0, 20)}; this page reads version 1. Use the page of the rperf that made them.`,
    );
  }
  const top = new Reader(json, "");
  return {
    pid: top.amount("pid"),
    program: top.text("program"),
    ruby: top.text("ruby"),
    timeMs: top.amount("time_ns") / 1e6,
    elapsedNs: top.amount("elapsed_ns"),
    isWhole: top.isTrue("whole"),
    total: sum(top.object("total")),
    unreferenced: sum(top.object("unreferenced")),
    references: top.amount("references"),
    classes: top.list("classes").map((row) => ({
      name: row.text("name"),
      ...sum(row),
      retained: row.amount("retained_bytes"),
      // Older files don't tell.
      unreferenced: row.has("unreferenced") ? sum(row.object("unreferenced")) : { objects: 0, bytes: 0 },
    })),
    holders: top.list("holders").map((row) => ({
      holder: row.text("name"),
      steps: [heldStep(row), ...row.list("path").map(countedStep)],
      objects: row.amount("objects"),
      bytes: null,
      retained: row.amount("retained_bytes"),
      within: row.has("within") ? row.text("within") : "",
    })),
    tree: top.has("tree") ? tree(top.list("tree")) : [],
    sites: top.has("sites") ? sites(top.object("sites")) : null,
    paths: top.has("paths") ? top.list("paths").map(path) : null,
  };
}

function damaged(how: string): DataError {
  return new DataError(`The heap's data are damaged: ${how}. Write the page again.`);
}

/** An object of the JSON, and where it is. */
class Reader {
  constructor(
    private readonly json: Json,
    private readonly where: string,
  ) {}

  has(key: string): boolean {
    return this.json[key] !== undefined && this.json[key] !== null;
  }

  isTrue(key: string): boolean {
    return this.json[key] === true;
  }

  amount(key: string): number {
    const value = this.json[key];
    if (typeof value !== "number" || !(value >= 0 && value <= MOST)) throw this.wrong(key, "an amount");
    return value;
  }

  text(key: string): string {
    return this.asText(this.json[key], key);
  }

  object(key: string): Reader {
    return this.asReader(this.json[key], key);
  }

  list(key: string): Reader[] {
    return this.items(key).map((item, i) => this.asReader(item, `${key}[${i}]`));
  }

  /** Pairs of texts. */
  pairs(key: string): [string, string][] {
    return this.items(key).map((item, i) => {
      const where = `${key}[${i}]`;
      if (!Array.isArray(item) || item.length !== 2) throw this.wrong(where, "a pair");
      return [this.asText(item[0], where), this.asText(item[1], where)];
    });
  }

  /** The number of an earlier row; -1 for none. */
  above(key: string, row: number): number {
    if (!this.has(key)) return -1;
    const value = this.json[key];
    if (!Number.isInteger(value) || (value as number) < 0 || (value as number) >= row) {
      throw this.wrong(key, "an earlier row");
    }
    return value as number;
  }

  private items(key: string): unknown[] {
    const value = this.json[key];
    if (!Array.isArray(value)) throw this.wrong(key, "a list");
    if (value.length > MAX_ROWS) throw damaged(`${this.where}${key} has more than ${MAX_ROWS} entries`);
    return value;
  }

  private asReader(value: unknown, key: string): Reader {
    if (!isObject(value)) throw this.wrong(key, "an object");
    return new Reader(value, `${this.where}${key}.`);
  }

  private asText(value: unknown, key: string): string {
    if (typeof value !== "string") throw this.wrong(key, "a text");
    return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  }

  private wrong(key: string, what: string): DataError {
    return damaged(`${this.where}${key} is not ${what}`);
  }
}

function sum(row: Reader): Sum {
  return { objects: row.amount("objects"), bytes: row.amount("bytes") };
}

function steps(row: Reader): Step[] {
  return row.pairs("steps").map(([className, name]) => ({ className, name, objects: null }));
}

function countedStep(row: Reader): Step {
  return { className: row.text("class"), name: row.text("name"), objects: row.amount("objects") };
}

/** What a holder's name holds. Older files don't tell how many, nor does the row of rperf. */
function heldStep(row: Reader): Step {
  const objects = Math.max(1, row.has("held") ? row.amount("held") : 1);
  return { className: row.text("class"), name: "", objects };
}

function path(row: Reader): HeapPath {
  const retained = row.amount("retained_bytes");
  return { holder: row.text("holder"), steps: steps(row), ...sum(row), retained, within: "" };
}

function place(row: Reader): CodePlace {
  return { method: row.text("method"), path: row.text("path"), line: row.amount("line") };
}

function sites(all: Reader): HeapSites {
  return {
    ofClass: all.has("of_class") ? all.text("of_class") : null,
    sessionNs: all.amount("session_ns"),
    bytesPerSample: all.amount("bytes_per_sample"),
    lostBytes: all.amount("lost_bytes"),
    samples: all.amount("samples"),
    unreferencedSamples: all.amount("unreferenced_samples"),
    total: sum(all.object("total")),
    deviation: all.amount("deviation_bytes"),
    rows: all.list("rows").map((row) => ({
      madeIn: row.has("made_in") ? place(row.object("made_in")) : null,
      calledBy: row.has("called_by") ? place(row.object("called_by")) : null,
      endpoint: row.text("endpoint"),
      className: row.text("class"),
      samples: row.amount("samples"),
      ...sum(row),
      deviation: row.amount("deviation_bytes"),
      medianAgeNs: row.amount("median_age_ns"),
      medianCollections: row.amount("median_collections"),
      oldestNs: row.amount("oldest_ns"),
      heldBy: row.list("held_by").map((way) => ({
        holder: way.text("holder"),
        steps: steps(way),
        part: Math.min(1, way.amount("part")),
      })),
    })),
  };
}

function tree(rows: Reader[]): TreeRow[] {
  return rows.map((row, i) => ({
    parent: row.above("parent", i),
    name: row.text("name"),
    className: row.text("class"),
    ...sum(row),
    retainedObjects: row.amount("retained_objects"),
    retained: row.amount("retained_bytes"),
    isRest: row.isTrue("rest"),
  }));
}
