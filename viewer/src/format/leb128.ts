import { damaged } from "./error.ts";

// Numbers are put together from three parts, since bit operations work on 32 bits:
// 28 bits, 28 bits, and the 8 bits that are left of 64.
const PART = 2 ** 28;

const TOO_MANY_BITS = "has a number of more than 32 bits";

/** Decodes columns of LEB128 numbers, one after the other. */
export class Leb128 {
  private at = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly column: string,
  ) {}

  /** An unsigned number of at most 32 bits. */
  private small(): number {
    const { bytes } = this;
    let value = bytes[this.at++] ?? this.broken("ends too early");
    if (value < 0x80) return value;
    value &= 0x7f;
    let factor = 0x80;
    for (let more = 0; more < 4; more++) {
      const byte = bytes[this.at++] ?? this.broken("ends too early");
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) {
        return value < 2 ** 32 ? value : this.broken(TOO_MANY_BITS);
      }
      factor *= 0x80;
    }
    return this.broken(TOO_MANY_BITS);
  }

  /** A zigzag number of 64 bits. */
  private signed(): number {
    const { bytes } = this;
    const first = bytes[this.at++] ?? this.broken("ends too early");
    if (first < 0x80) return first & 1 ? -(first >> 1) - 1 : first >> 1;
    let low = first & 0x7f;
    let middle = 0;
    let high = 0;
    for (let place = 1; place < 10; place++) {
      const byte = bytes[this.at++] ?? this.broken("ends too early");
      const bits = byte & 0x7f;
      if (place < 4) low |= bits << (7 * place);
      else if (place < 8) middle |= bits << (7 * (place - 4));
      else high |= bits << (7 * (place - 8));
      if (byte < 0x80) {
        if (high > 0xff) return this.broken("has a number of more than 64 bits");
        const half = (low >>> 1) + middle * (PART / 2) + high * (PART / 2) * PART;
        return low & 1 ? -half - 1 : half;
      }
    }
    return this.broken("has a number of more than 64 bits");
  }

  unsigned(count: number): Uint32Array {
    const numbers = new Uint32Array(count);
    for (let i = 0; i < count; i++) numbers[i] = this.small();
    return this.whole(numbers);
  }

  deltas(count: number): Uint32Array {
    const numbers = new Uint32Array(count);
    let last = 0;
    for (let i = 0; i < count; i++) {
      last += this.signed();
      if (!(last >= 0 && last < 2 ** 32)) this.broken("has a number below 0 or of more than 32 bits");
      numbers[i] = last;
    }
    return this.whole(numbers);
  }

  values(count: number): Float64Array {
    const numbers = new Float64Array(count);
    for (let i = 0; i < count; i++) numbers[i] = this.signed();
    return this.whole(numbers);
  }

  private whole<T>(numbers: T): T {
    return this.at === this.bytes.length ? numbers : this.broken("is longer than its numbers");
  }

  private broken(how: string): never {
    throw damaged(`column ${this.column} ${how}`);
  }
}
