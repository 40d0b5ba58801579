import { gzipSync } from "node:zlib";
import type { DiffInfo, Loss } from "../../src/format/header.ts";
import type { Requests } from "../../src/format/requests.ts";
import type { Suite } from "../../src/format/suite.ts";
import { requestColumns } from "./requests.ts";
import { suiteColumns } from "./suite.ts";

/** What a test wants in a file, in the plainest form. */
export interface Draft {
  valueTypes: { name: string; unit: string }[];
  defaultType?: number;
  states?: { name: string; tag?: [string, string] }[];
  categories?: string[];
  frames: { name: string; file?: string; line?: number; category?: number; library?: string; path?: string }[];
  /** Entry i is node i + 1. */
  nodes: { parent: number; frame: number; line?: number }[];
  /** Nodes at which an initializer begins. */
  initializers?: { node: number; line: number }[];
  labelSets?: [string, string][][];
  threads?: { number: number; name: string }[];
  sources?: { file: string; text: string }[];
  profiles: DraftProfile[];
  diff?: Partial<DiffInfo>;
}

export interface DraftProfile {
  meta?: {
    title?: string;
    program?: string;
    start_ms?: number;
    duration_ns?: number;
    frequency?: number;
    comments?: string[];
    losses?: Loss[];
  };
  requests?: Requests[];
  suite?: Suite;
  latencies?: { name: string; file: string; calls: number; p50: number; p99: number; max: number }[];
  rows: {
    node: number;
    thread?: number;
    labelSet?: number;
    state?: number;
    idle?: number;
    values: (number | bigint)[];
  }[];
}

/** Writes RPV1 as docs/internals/viewer-format.md says, without gzip. */
export function encode(
  draft: Draft,
  extra: { header?: object; columns?: [string, string, Uint8Array, number][] } = {},
) {
  const writer = new Writer();
  const { frames, nodes, labelSets = [[]], threads = [{ number: 1, name: "main" }], sources = [] } = draft;
  writer.unsigned(
    "frames/name",
    frames.map((frame) => writer.string(frame.name)),
  );
  writer.unsigned(
    "frames/file",
    frames.map((frame) => writer.string(frame.file ?? "")),
  );
  writer.unsigned(
    "frames/line",
    frames.map((frame) => frame.line ?? 0),
  );
  writer.unsigned(
    "frames/category",
    frames.map((frame) => frame.category ?? 0),
  );
  writer.unsigned(
    "frames/library",
    frames.map((frame) => writer.string(frame.library ?? "")),
  );
  writer.unsigned(
    "frames/path",
    frames.map((frame) => writer.string(frame.path ?? frame.file ?? "")),
  );
  writer.unsigned(
    "nodes/parent",
    nodes.map((node, i) => i + 1 - node.parent),
  );
  const callees = new SeenLists();
  const lines = new SeenLists();
  writer.unsigned(
    "nodes/callee",
    nodes.map((node) => callees.index(nodes[node.parent - 1]?.frame ?? -1, node.frame)),
  );
  writer.unsigned("callees/frame", callees.fresh);
  writer.unsigned(
    "nodes/line",
    nodes.map((node) => lines.index(node.frame, node.line ?? 0)),
  );
  writer.unsigned("lines/line", lines.fresh);
  if (draft.initializers) {
    writer.deltas(
      "initializers/node",
      draft.initializers.map((it) => it.node),
    );
    writer.unsigned(
      "initializers/line",
      draft.initializers.map((it) => it.line),
    );
  }
  const labels = labelSets.flat();
  writer.unsigned(
    "label_sets/length",
    labelSets.map((set) => set.length),
  );
  writer.unsigned(
    "labels/key",
    labels.map(([key]) => writer.string(key)),
  );
  writer.unsigned(
    "labels/value",
    labels.map(([, value]) => writer.string(value)),
  );
  writer.unsigned(
    "threads/number",
    threads.map((thread) => thread.number),
  );
  writer.unsigned(
    "threads/name",
    threads.map((thread) => writer.string(thread.name)),
  );
  writer.unsigned(
    "sources/file",
    sources.map((source) => writer.string(source.file)),
  );
  writer.unsigned(
    "sources/text",
    sources.map((source) => writer.string(source.text)),
  );
  draft.profiles.forEach(({ rows, latencies = [], requests = [], suite }, index) => {
    const name = `profiles/${index}`;
    writer.deltas(
      `${name}/node`,
      rows.map((row) => row.node),
    );
    writer.unsigned(
      `${name}/thread`,
      rows.map((row) => row.thread ?? 0),
    );
    writer.unsigned(
      `${name}/label_set`,
      rows.map((row) => row.labelSet ?? 0),
    );
    writer.unsigned(
      `${name}/state`,
      rows.map((row) => row.state ?? 0),
    );
    if (rows.some((row) => row.idle))
      writer.unsigned(
        `${name}/idle`,
        rows.map((row) => row.idle ?? 0),
      );
    draft.valueTypes.forEach((_, type) => {
      writer.signed(
        `${name}/value/${type}`,
        rows.map((row) => row.values[type]),
      );
    });
    if (latencies.length > 0) {
      for (const column of ["name", "file"] as const)
        writer.unsigned(
          `latencies/${index}/${column}`,
          latencies.map((row) => writer.string(row[column])),
        );
      for (const column of ["calls", "p50", "p99", "max"] as const)
        writer.signed(
          `latencies/${index}/${column}`,
          latencies.map((row) => row[column]),
        );
    }
    for (const { name, texts, numbers, signed } of [
      ...requestColumns(index, requests),
      ...suiteColumns(index, suite),
    ]) {
      const written = texts?.map((text) => writer.string(text)) ?? numbers;
      if (signed) writer.signed(name, written);
      else writer.unsigned(name, written);
    }
  });
  for (const [name, encoding, bytes, count] of extra.columns ?? []) writer.add(name, encoding, bytes, count);
  return writer.finish({
    version: 1,
    value_types: draft.valueTypes,
    default_type: draft.defaultType ?? 0,
    states: draft.states ?? [{ name: "running" }],
    categories: draft.categories ?? ["other"],
    profiles: draft.profiles.map((profile) => profile.meta ?? {}),
    ...(draft.diff ? { diff: draft.diff } : {}),
    ...extra.header,
  });
}

/** As a program embeds it in the page. */
export function toBase64(rpv1: Uint8Array): string {
  return gzipSync(rpv1, { level: 6 }).toString("base64");
}

/** What was seen in each context so far, in order: the mirror of the decoder's lists. */
class SeenLists {
  readonly fresh: number[] = [];
  private readonly lists = new Map<number, Map<number, number>>();

  index(context: number, item: number): number {
    const list = this.lists.get(context) ?? new Map<number, number>();
    this.lists.set(context, list);
    const known = list.get(item);
    if (known !== undefined) return known;
    this.fresh.push(item);
    list.set(item, list.size);
    return list.size - 1;
  }
}

/** Bytes that grow. */
class Bytes {
  private data = new Uint8Array(1024);
  length = 0;

  push(byte: number) {
    if (this.length === this.data.length) {
      const larger = new Uint8Array(2 * this.data.length);
      larger.set(this.data);
      this.data = larger;
    }
    this.data[this.length++] = byte;
  }

  leb(value: number) {
    let rest = value;
    while (rest >= 0x80) {
      this.push((rest % 0x80) | 0x80);
      rest = Math.floor(rest / 0x80);
    }
    this.push(rest);
  }

  zigzag(value: number | bigint) {
    if (typeof value === "number" && Math.abs(value) < 2 ** 51) {
      this.leb(value < 0 ? -2 * value - 1 : 2 * value);
      return;
    }
    let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
    while (rest >= 0x80n) {
      this.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.push(Number(rest));
  }

  done(): Uint8Array {
    return this.data.subarray(0, this.length);
  }
}

class Writer {
  private readonly strings = new Map<string, number>([["", 0]]);
  private readonly columns: { entry: object; bytes: Uint8Array }[] = [];
  private offset = 0;

  string(text: string): number {
    const known = this.strings.get(text);
    if (known !== undefined) return known;
    this.strings.set(text, this.strings.size);
    return this.strings.size - 1;
  }

  unsigned(name: string, numbers: number[]) {
    const bytes = new Bytes();
    for (const number of numbers) bytes.leb(number);
    this.add(name, "uleb", bytes.done(), numbers.length);
  }

  deltas(name: string, numbers: number[]) {
    const bytes = new Bytes();
    let last = 0;
    for (const number of numbers) {
      bytes.zigzag(number - last);
      last = number;
    }
    this.add(name, "delta", bytes.done(), numbers.length);
  }

  signed(name: string, numbers: (number | bigint)[]) {
    const bytes = new Bytes();
    for (const number of numbers) bytes.zigzag(number);
    this.add(name, "sleb", bytes.done(), numbers.length);
  }

  add(name: string, encoding: string, bytes: Uint8Array, count: number) {
    this.columns.push({ entry: { name, encoding, offset: this.offset, length: bytes.length, count }, bytes });
    this.offset += bytes.length;
  }

  finish(header: object): Uint8Array {
    const texts = [...this.strings.keys()].map((text) => Buffer.from(text, "utf8"));
    this.unsigned(
      "strings/length",
      texts.map((text) => text.length),
    );
    const text = Buffer.concat(texts);
    this.add("strings/text", "bytes", text, text.length);
    const json = Buffer.from(JSON.stringify({ ...header, columns: this.columns.map(({ entry }) => entry) }));
    const head = Buffer.alloc(8);
    head.write("RPV1", "latin1");
    head.writeUInt32LE(json.length, 4);
    return Buffer.concat([head, json, ...this.columns.map(({ bytes }) => bytes)]);
  }
}
