import type { ValueType } from "../format/header.ts";

const TIME_NS: Record<string, number> = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };
const SIZE: Record<string, number> = { bytes: 1, kilobytes: 1024, megabytes: 1024 ** 2, gigabytes: 1024 ** 3 };

/** Whether values of this type are time. */
export function isTime({ unit }: ValueType): boolean {
  return unit in TIME_NS;
}

/** A value as people read it: `1.24 s`, `38 MB`, `4,711`. */
export function formatValue(value: number, type: ValueType): string {
  if (value < 0) return `-${formatValue(-value, type)}`;
  if (type.unit in TIME_NS) return formatTime(value * TIME_NS[type.unit]);
  if (type.unit in SIZE) return formatSize(value * SIZE[type.unit]);
  const text = formatCount(value);
  return type.unit === "count" || type.unit === "" ? text : `${text} ${type.unit}`;
}

function digits(value: number): string {
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

export function formatTime(ns: number): string {
  if (ns === 0) return "0 s";
  // Chosen by what is printed: 999.96 ms is 1.00 s.
  if (ns < 999.5) return `${Math.round(ns)} ns`;
  if (ns < 999.5e3) return `${digits(ns / 1e3)} µs`;
  if (ns < 999.5e6) return `${digits(ns / 1e6)} ms`;
  if (ns < 600e9) return `${digits(ns / 1e9)} s`;
  if (ns < 7200e9) return `${digits(ns / 60e9)} min`;
  return `${formatCount(Math.round(ns / 360e9) / 10)} h`;
}

/** A longer time in the units that people tell it in: `1 min 31 s`, `3 d 4 h`. */
export function formatElapsed(ns: number): string {
  const seconds = Math.floor(ns / 1e9);
  const units: [string, number][] = [
    ["d", 86_400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const at = units.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "< 1 s";
  const [unit, size] = units[at];
  const [lower, lowerSize] = units[at + 1] ?? ["", Number.POSITIVE_INFINITY];
  const rest = Math.floor((seconds % size) / lowerSize);
  return `${formatCount(Math.floor(seconds / size))} ${unit}${rest > 0 ? ` ${rest} ${lower}` : ""}`;
}

export function formatSize(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return unit === 0 ? `${Math.round(value)} B` : `${digits(value)} ${units[unit]}`;
}

export function formatCount(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

/** So many of something: `1 file`, `2 files`. */
export function counted(count: number, what: string): string {
  return `${formatCount(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** A moment as the reader's place has it, or nothing. */
export function formatWhen(ms: number | null): string {
  return ms === null ? "" : new Date(ms).toLocaleString();
}

/** A share: `34 %`, `3.4 %`, `0.03 %`. */
export function formatShare(part: number, whole: number): string {
  if (whole === 0) return part === 0 ? "0 %" : "–";
  const percent = (100 * part) / whole;
  const size = Math.abs(percent);
  if (size === 0) return "0 %";
  if (size < 0.01) return percent < 0 ? "> -0.01 %" : "< 0.01 %";
  return `${percent.toFixed(size < 0.995 ? 2 : size < 99.95 ? 1 : 0)} %`;
}

/** A change with its sign: `+1.2 ms`. */
export function formatDelta(delta: number, type: ValueType): string {
  return delta > 0 ? `+${formatValue(delta, type)}` : formatValue(delta, type);
}

/** How much of what was there came or went: `+12 %`, `new`, `gone`. */
export function formatRelative(before: number, after: number): string {
  if (before === after) return "0 %";
  if (before === 0) return "new";
  if (after === 0) return "gone";
  const percent = (100 * (after - before)) / Math.abs(before);
  const text = Math.abs(percent) < 9.95 ? percent.toFixed(1) : percent.toFixed(0);
  return `${percent > 0 ? "+" : ""}${text} %`;
}

/** What people call a value type. */
export function typeWords({ name, unit }: ValueType): string {
  if (name === "wall" && unit in TIME_NS) return "wall time";
  if (name === "cpu" && unit in TIME_NS) return "CPU time";
  if (name === "gvl_blame" && unit in TIME_NS) return "blame for the GVL";
  if (name === "gvl_waited_for" && unit in TIME_NS) return "GVL: who kept requests waiting";
  return name === "" ? unit || "value" : name.replaceAll("_", " ");
}
