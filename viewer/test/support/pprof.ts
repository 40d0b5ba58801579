import { gzipSync } from "node:zlib";

/** A profile as another tool may write it: value types, and stacks, leaf first, with their values. */
export interface Foreign {
  types: [name: string, unit: string][];
  default?: string;
  period?: [name: string, unit: string, period: number];
  samples: { stack: string[]; values: number[]; labels?: Record<string, string> }[];
}

/** Writes pprof's profile.proto, gzip'd. */
export function pprof(profile: Foreign): Uint8Array {
  const strings = [""];
  const string = (text: string) => {
    const known = strings.indexOf(text);
    return known < 0 ? strings.push(text) - 1 : known;
  };
  const valueType = ([name, unit]: string[]) => [...number(1, string(name)), ...number(2, string(unit))];
  const functions: string[] = [];
  const location = (name: string) => {
    const known = functions.indexOf(name);
    return known < 0 ? functions.push(name) : known + 1;
  };
  const message = profile.types.flatMap((type) => field(1, valueType(type)));
  for (const { stack, values, labels = {} } of profile.samples) {
    const sample = [...stack.flatMap((name) => number(1, location(name))), ...values.flatMap((it) => number(2, it))];
    for (const [key, value] of Object.entries(labels)) {
      sample.push(...field(3, [...number(1, string(key)), ...number(2, string(value))]));
    }
    message.push(...field(2, sample));
  }
  functions.forEach((name, i) => {
    message.push(...field(4, [...number(1, i + 1), ...field(4, [...number(1, i + 1), ...number(2, 7)])]));
    message.push(...field(5, [...number(1, i + 1), ...number(2, string(name)), ...number(4, string("lib/app.rb"))]));
  });
  if (profile.period) {
    message.push(...field(11, valueType(profile.period.slice(0, 2) as string[])), ...number(12, profile.period[2]));
  }
  if (profile.default) message.push(...number(14, string(profile.default)));
  for (const text of strings) message.push(...field(6, [...Buffer.from(text, "utf8")]));
  return gzipSync(Uint8Array.from(message));
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return [...bytes, rest];
}

function number(tag: number, value: number): number[] {
  return [...varint(tag << 3), ...varint(value)];
}

function field(tag: number, bytes: number[]): number[] {
  return [...varint((tag << 3) | 2), ...varint(bytes.length), ...bytes];
}
