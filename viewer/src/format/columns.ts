import { type DataError, damaged, tooLarge } from "./error.ts";
import type { ColumnEntry } from "./header.ts";
import { Leb128 } from "./leb128.ts";

export function badColumn(column: string, how: string): DataError {
  return damaged(`column ${column} ${how}`);
}

export const MISSING = "points to an entry that isn't there";

/** Numbers that a file may have; each takes up to eight bytes. */
const MAX_NUMBERS = 200e6;

const ENCODINGS = new Set(["uleb", "sleb", "delta", "bytes"]);

/** The columns by name, each decoded when it is asked for. */
export class Columns {
  private readonly entries = new Map<string, ColumnEntry>();
  /** Bytes that no column has claimed, and numbers that may still come. */
  private left: number;
  private room = MAX_NUMBERS;

  constructor(
    private readonly body: Uint8Array,
    directory: ColumnEntry[],
  ) {
    this.left = body.length;
    for (const entry of directory) if (ENCODINGS.has(entry.encoding)) this.entries.set(entry.name, entry);
  }

  has(name: string): boolean {
    return this.entries.has(name);
  }

  /** How many numbers the column has; 0 if it is missing. */
  count(name: string): number {
    return this.entries.get(name)?.count ?? 0;
  }

  /** Numbers below `limit`; zeros if the column is missing. */
  unsigned(name: string, count: number, limit = 2 ** 32): Uint32Array {
    const column = this.open(name, "uleb", count);
    return this.limited(name, column ? column.unsigned(count) : new Uint32Array(count), limit);
  }

  deltas(name: string, count: number, limit: number): Uint32Array {
    const column = this.open(name, "delta", count);
    return this.limited(name, column ? column.deltas(count) : new Uint32Array(count), limit);
  }

  values(name: string, count: number): Float64Array | null {
    return this.open(name, "sleb", count)?.values(count) ?? null;
  }

  strings(): string[] {
    const count = this.count("strings/length");
    const lengths = this.unsigned("strings/length", count);
    const bytes = this.bytes("strings/text");
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    const whole = decoder.decode(bytes);
    // In ASCII a byte is a character: then cutting the whole is much quicker.
    const ascii = whole.length === bytes.length && !whole.includes("\ufffd");
    let at = 0;
    return Array.from(lengths, (length) => {
      const end = at + length;
      if (end > bytes.length) throw badColumn("strings/text", "is shorter than the strings in it");
      const text = ascii ? whole.slice(at, end) : decoder.decode(bytes.subarray(at, end));
      at = end;
      return text;
    });
  }

  private limited(name: string, numbers: Uint32Array, limit: number): Uint32Array {
    for (let i = 0; i < numbers.length; i++) {
      if (numbers[i] >= limit) throw badColumn(name, MISSING);
    }
    return numbers;
  }

  private bytes(name: string): Uint8Array {
    const entry = this.entries.get(name);
    if (!entry) return new Uint8Array(0);
    const { offset, length } = entry;
    const valid = [offset, length].every((number) => Number.isInteger(number) && number >= 0);
    if (!valid || offset + length > this.body.length) throw badColumn(name, "lies outside of the file");
    this.left -= length;
    if (this.left < 0) throw badColumn(name, "overlaps others");
    return this.body.subarray(offset, offset + length);
  }

  private open(name: string, encoding: string, count: number): Leb128 | null {
    const entry = this.entries.get(name);
    if (!entry) return null;
    if (entry.encoding !== encoding) throw badColumn(name, `is encoded as ${entry.encoding}, not as ${encoding}`);
    if (entry.count !== count) throw badColumn(name, `has ${entry.count} numbers, but its table ${count} entries`);
    const bytes = this.bytes(name);
    // Every number has a byte at least; so a small file can't ask for much memory.
    if (!Number.isInteger(count) || count < 0 || count > bytes.length)
      throw badColumn(name, "is shorter than its numbers");
    this.room -= count;
    if (this.room < 0) throw tooLarge("has too many numbers");
    return new Leb128(bytes, name);
  }
}
