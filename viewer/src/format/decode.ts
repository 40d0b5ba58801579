import { badColumn, Columns, MISSING } from "./columns.ts";
import { DataError, damaged } from "./error.ts";
import {
  type DiffInfo,
  type Meta,
  parseHeader,
  type StateInfo,
  type ValueType,
  VERDICTS,
  type Verdict,
} from "./header.ts";
import { RequestTable } from "./requests.ts";
import { SuiteTable } from "./suite.ts";

/** Functions, one entry each. */
export interface FrameTable {
  name: string[];
  file: string[];
  line: Uint32Array;
  category: Uint32Array;
  library: string[];
  /** The path as it was recorded; `file` is the short one that is shown. */
  path: string[];
}

/** The call tree: node 0 is the root, parents have lower numbers than their children. */
export interface NodeTable {
  parent: Uint32Array;
  frame: Uint32Array;
  line: Uint32Array;
  /** The nodes at which an initializer of Rails begins, each with the first line of its block. */
  initializers: Map<number, number>;
}

export type Label = [key: string, value: string];

export interface Thread {
  number: number;
  name: string;
}

/** One profile: its rows, column by column. */
export interface ProfileRows {
  meta: Meta;
  node: Uint32Array;
  thread: Uint32Array;
  labelSet: Uint32Array;
  state: Uint32Array;
  /** 1 where a thread waits for work. */
  idle: Uint32Array;
  /** One column for each value type; null where the profile doesn't measure it. */
  values: (Float64Array | null)[];
  /** How long the calls of methods took, by `latencyKey`. */
  latencies: Map<string, Latency>;
  requests: RequestTable;
  suite: SuiteTable;
}

/** Of all calls of a method, in nanoseconds. */
export interface Latency {
  calls: number;
  p50: number;
  p99: number;
  max: number;
}

/** A method that differs, as `rperf diff` tells it. */
export interface MethodChange {
  name: string;
  file: string;
  before: number;
  after: number;
  verdict: Verdict;
}

/** Everything that a file holds. */
export interface ProfileFile {
  valueTypes: ValueType[];
  defaultType: number;
  states: StateInfo[];
  categories: string[];
  frames: FrameTable;
  nodes: NodeTable;
  labelSets: Label[][];
  threads: Thread[];
  sources: Map<string, string>;
  profiles: ProfileRows[];
  diff: DiffInfo | null;
  /** What has changed between the diff's profiles, for each value type; null where the file doesn't tell. */
  changes: (MethodChange[] | null)[];
}

const MAGIC = 0x31565052; // "RPV1", little endian

/** Decodes RPV1 (docs/internals/viewer-format.md), after gzip. */
export function decode(bytes: Uint8Array): ProfileFile {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8 || view.getUint32(0, true) !== MAGIC) {
    throw new DataError("This is no profile that the page can read: it doesn't begin with RPV1.");
  }
  const headerLength = view.getUint32(4, true);
  if (headerLength > bytes.length - 8) {
    throw damaged("it ends within its header");
  }
  const header = parseHeader(new TextDecoder().decode(bytes.subarray(8, 8 + headerLength)));
  const columns = new Columns(bytes.subarray(8 + headerLength), header.columns);
  const strings = columns.strings();
  const string = (column: string, count: number) => {
    const indexes = columns.unsigned(column, count, strings.length);
    return Array.from(indexes, (index) => strings[index]);
  };

  const frameCount = columns.count("frames/name");
  const name = string("frames/name", frameCount);
  const file = columns.has("frames/file") ? string("frames/file", frameCount) : new Array(frameCount).fill("");
  const frames: FrameTable = {
    name,
    file,
    path: columns.has("frames/path") ? string("frames/path", frameCount) : file,
    line: columns.unsigned("frames/line", frameCount),
    category: columns.unsigned("frames/category", frameCount, header.categories.length),
    library: columns.has("frames/library") ? string("frames/library", frameCount) : new Array(frameCount).fill(""),
  };
  const nodes = nodeTable(columns, frameCount);
  const labelSets = labelSetTable(columns, string);
  const threadCount = columns.has("threads/number") ? columns.count("threads/number") : 1;
  const threadNumbers = columns.unsigned("threads/number", threadCount);
  const threadNames = columns.has("threads/name") ? string("threads/name", threadCount) : [];
  const threads = Array.from(threadNumbers, (number, i) => ({ number, name: threadNames[i] ?? "" }));
  const sourceCount = columns.count("sources/file");
  const sourceFiles = string("sources/file", sourceCount);
  const sourceTexts = string("sources/text", sourceCount);
  const sources = new Map(sourceFiles.map((file, i) => [file, sourceTexts[i]]));

  const profiles = header.profiles.map((meta, index): ProfileRows => {
    const rows = `profiles/${index}`;
    const count = columns.count(`${rows}/node`);
    return {
      meta,
      node: columns.deltas(`${rows}/node`, count, nodes.parent.length),
      thread: columns.unsigned(`${rows}/thread`, count, threadCount),
      labelSet: columns.unsigned(`${rows}/label_set`, count, labelSets.length),
      state: columns.unsigned(`${rows}/state`, count, header.states.length),
      idle: columns.unsigned(`${rows}/idle`, count, 2),
      values: header.valueTypes.map((_, type) => columns.values(`${rows}/value/${type}`, count)),
      latencies: latencyTable(columns, `latencies/${index}`, string),
      requests: new RequestTable(columns, index, string),
      suite: new SuiteTable(columns, index, string),
    };
  });
  const { valueTypes, defaultType, states, categories, diff } = header;
  const isTold = (type: number) => diff?.changes[type] && columns.has(`changes/${type}/name`);
  const changes = valueTypes.map((_, type) => (isTold(type) ? methodChanges(columns, type, string) : null));
  const tables = { frames, nodes, labelSets, threads, sources };
  return { valueTypes, defaultType, states, categories, ...tables, profiles, diff, changes };
}

/** What tells methods apart. */
export const latencyKey = (name: string, file: string) => `${name}\n${file}`;

function latencyTable(
  columns: Columns,
  table: string,
  string: (column: string, count: number) => string[],
): Map<string, Latency> {
  const names = string(`${table}/name`, columns.count(`${table}/name`));
  const files = string(`${table}/file`, names.length);
  const [calls, p50, p99, max] = ["calls", "p50", "p99", "max"].map(
    (column) => columns.values(`${table}/${column}`, names.length) ?? [],
  );
  return new Map(
    names.map((name, i) => [latencyKey(name, files[i]), { calls: calls[i], p50: p50[i], p99: p99[i], max: max[i] }]),
  );
}

function methodChanges(
  columns: Columns,
  type: number,
  string: (column: string, count: number) => string[],
): MethodChange[] {
  const table = `changes/${type}`;
  const count = columns.count(`${table}/name`);
  const files = columns.has(`${table}/file`) ? string(`${table}/file`, count) : new Array(count).fill("");
  const before = columns.values(`${table}/base`, count) ?? new Float64Array(count);
  const after = columns.values(`${table}/target`, count) ?? new Float64Array(count);
  const verdicts = columns.unsigned(`${table}/verdict`, count, VERDICTS.length);
  return string(`${table}/name`, count).map((name, i) => ({
    name,
    file: files[i],
    before: before[i],
    after: after[i],
    verdict: VERDICTS[verdicts[i]],
  }));
}

function nodeTable(columns: Columns, frameCount: number): NodeTable {
  const count = columns.count("nodes/parent");
  const deltas = columns.unsigned("nodes/parent", count);
  const callees = columns.unsigned("nodes/callee", count);
  const newCallees = columns.unsigned("callees/frame", columns.count("callees/frame"), frameCount);
  const hasLines = columns.has("nodes/line");
  const lines = columns.unsigned("nodes/line", count);
  const newLines = columns.unsigned("lines/line", columns.count("lines/line"));
  const nodes: NodeTable = {
    parent: new Uint32Array(count + 1),
    frame: new Uint32Array(count + 1),
    line: new Uint32Array(count + 1),
    initializers: initializerTable(columns, count + 1),
  };
  for (let i = 0; i < count; i++) {
    const delta = deltas[i];
    if (delta < 1 || delta > i + 1) throw badColumn("nodes/parent", "names a parent that isn't there");
    nodes.parent[i + 1] = i + 1 - delta;
  }
  // The root's callees are listed behind those of all frames.
  const calleesOf = new SeenLists(frameCount + 1, newCallees, "nodes/callee");
  const linesOf = new SeenLists(frameCount, newLines, "nodes/line");
  for (let node = 1; node <= count; node++) {
    const parent = nodes.parent[node];
    const frame = calleesOf.next(parent === 0 ? frameCount : nodes.frame[parent], callees[node - 1]);
    nodes.frame[node] = frame;
    if (hasLines) nodes.line[node] = linesOf.next(frame, lines[node - 1]);
  }
  return nodes;
}

function initializerTable(columns: Columns, nodeCount: number): Map<number, number> {
  const count = columns.count("initializers/node");
  const nodes = columns.deltas("initializers/node", count, nodeCount);
  const lines = columns.unsigned("initializers/line", count);
  return new Map(Array.from(nodes, (node, i) => [node, lines[i]]));
}

/** Lists of what was seen in each of several contexts. An index one beyond a list's end adds the next new item to it. */
class SeenLists {
  private readonly start: Uint32Array;
  private readonly length: Uint32Array;
  private readonly room: Uint32Array;
  /** All lists; one that has filled its room moves to the end. */
  private items: Uint32Array;
  private end = 0;
  private used = 0;

  constructor(
    contexts: number,
    private readonly fresh: Uint32Array,
    private readonly column: string,
  ) {
    this.start = new Uint32Array(contexts);
    this.length = new Uint32Array(contexts);
    this.room = new Uint32Array(contexts);
    this.items = new Uint32Array(1024);
  }

  next(context: number, index: number): number {
    const length = this.length[context];
    return index < length ? this.items[this.start[context] + index] : this.add(context, index, length);
  }

  private add(context: number, index: number, length: number): number {
    if (index > length || this.used >= this.fresh.length) throw badColumn(this.column, MISSING);
    if (length === this.room[context]) this.move(context, length);
    const item = this.fresh[this.used++];
    this.items[this.start[context] + length] = item;
    this.length[context] = length + 1;
    return item;
  }

  private move(context: number, length: number) {
    const room = Math.max(4, 2 * length);
    if (this.end + room > this.items.length) {
      const larger = new Uint32Array(2 * (this.end + room));
      larger.set(this.items);
      this.items = larger;
    }
    this.items.copyWithin(this.end, this.start[context], this.start[context] + length);
    this.start[context] = this.end;
    this.room[context] = room;
    this.end += room;
  }
}

function labelSetTable(columns: Columns, string: (column: string, count: number) => string[]): Label[][] {
  if (!columns.has("label_sets/length")) return [[]];
  const keys = string("labels/key", columns.count("labels/key"));
  const values = string("labels/value", keys.length);
  let at = 0;
  const lengths = columns.unsigned("label_sets/length", columns.count("label_sets/length"));
  const sets = Array.from(lengths, (length) => {
    if (at + length > keys.length) throw badColumn("label_sets/length", "asks for more labels than there are");
    const set = keys.slice(at, at + length).map((key, i): Label => [key, values[at + i]]);
    at += length;
    return set;
  });
  return sets;
}
