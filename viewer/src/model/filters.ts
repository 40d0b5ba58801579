import type { ProfileFile, ProfileRows } from "../format/decode.ts";

/** The filters of pprof's, with the same names and meanings, and three of ours. */
export const FILTER_KINDS = [
  "focus",
  "ignore",
  "hide",
  "show",
  "tagfocus",
  "tagignore",
  "tagroot",
  "tagleaf",
  "thread",
  "pid",
  "boot",
] as const;
export type FilterKind = (typeof FILTER_KINDS)[number];

export interface Filter {
  kind: FilterKind;
  text: string;
}

/** What each filter does, for people. */
export const FILTER_HELP: Record<FilterKind, string> = {
  focus: "keeps the stacks in which a method or file matches",
  ignore: "drops the stacks in which a method or file matches",
  hide: "takes matching methods out of the stacks; their time goes to their callers",
  show: "takes all but matching methods out of the stacks",
  tagfocus: "keeps what has a matching label: KEY=VALUE, or a text in KEY:VALUE",
  tagignore: "drops what has a matching label: KEY=VALUE, or a text in KEY:VALUE",
  tagroot: "groups by label: its values become the first frames (KEY,KEY...)",
  tagleaf: "splits by label: its values become the last frames (KEY,KEY...)",
  thread: "keeps one thread: its number, or a text in its name",
  pid: "keeps one process: its number",
  boot: "keeps the loading of files: all, file PATH, line PATH:LINE, gem NAME, initializer PATH:LINE NAME",
};

const MAX_PATTERN = 200;
/** Paths and names may be longer than patterns that people write. */
const MAX_BOOT = 5_000;

/** What a filter of the kind "boot" may name: all that loads files, or a part of it. */
export const ALL_LOADING = "all";
const BOOT_TEXT = /^(?:all$|(?:file|line|gem|initializer) .)/;

/** What is wrong with a filter's text, or null. */
export function filterProblem({ kind, text }: Filter): string | null {
  if (text === "") return "is empty";
  if (kind === "boot" && !BOOT_TEXT.test(text)) return "is not all, file, line, gem or initializer with a name";
  if (kind === "boot" && text.length <= MAX_BOOT) return null;
  if (text.length > MAX_PATTERN) return `is longer than ${MAX_PATTERN} characters`;
  if (kind === "tagroot" || kind === "tagleaf" || kind === "pid") return null;
  try {
    for (const pattern of kind === "tagfocus" || kind === "tagignore" ? tagPatterns(text).patterns : [text])
      new RegExp(pattern);
    return null;
  } catch (error) {
    return `is not a regular expression: ${(error as Error).message}`;
  }
}

/** Only names of letters, digits and the like need no escape. */
export function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** The pattern that matches this name alone. */
export function exactly(name: string): string {
  return `^${escapePattern(name)}$`;
}

/** The text of a tagfocus for this value of a label; of one that is too long, for what begins as it does. */
export function labelIs(key: string, value: string): string {
  // A comma would end the pattern.
  const escaped = (text: string) => escapePattern(text).replaceAll(",", "\\x2c");
  const whole = `${key}=^${escaped(value)}$`;
  if (whole.length <= MAX_PATTERN) return whole;
  let text = `${key}=^`;
  for (const character of value) {
    if (text.length + escaped(character).length > MAX_PATTERN) break;
    text += escaped(character);
  }
  return text;
}

/** As options of the command line, ready to paste into a shell. It has none for a part of the boot. */
export function asFlags(filters: Filter[]): string {
  return filters
    .filter(({ kind }) => kind !== "boot")
    .map(({ kind, text }) => `--${kind}=${quoted(text)}`)
    .join(" ");
}

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

const listed = (text: string) =>
  text
    .split(",")
    .map((key) => key.trim())
    .filter((key) => key !== "");

/** The keys of all filters of this kind. */
export function labelKeys(filters: Filter[], kind: "tagroot" | "tagleaf"): string[] {
  return filters.filter((filter) => filter.kind === kind).flatMap((filter) => listed(filter.text));
}

/** What filters know of frames. */
type FilteredFrames = { name: string[]; file: string[]; path: string[] };

/** Marks the frames whose name, file or whole path matches. */
export function matchFrames(frames: FilteredFrames, pattern: string): Uint8Array {
  const regexp = new RegExp(pattern);
  const files = new Map<string, boolean>();
  const matches = (file: string) => {
    let known = files.get(file);
    if (known === undefined) {
      known = regexp.test(file);
      files.set(file, known);
    }
    return known;
  };
  return Uint8Array.from(frames.name, (name, i) =>
    regexp.test(name) || matches(frames.file[i]) || matches(frames.path[i]) ? 1 : 0,
  );
}

/** Marks the frames that hide and show take out of the stacks; null if there is no such filter. */
export function hiddenFrames(frames: FilteredFrames, filters: Filter[]): Uint8Array | null {
  let hidden: Uint8Array | null = null;
  for (const { kind, text } of filters) {
    if (kind !== "hide" && kind !== "show") continue;
    const taken = kind === "hide" ? 1 : 0;
    const matched = matchFrames(frames, text);
    const before: Uint8Array | null = hidden;
    hidden = matched.map((match, i) => (before?.[i] || match === taken ? 1 : 0));
  }
  return hidden;
}

/** All labels of a row as pprof has them: the user's, the state's, and the thread's. */
export function rowTags(file: ProfileFile, rows: ProfileRows, row: number): [string, string][] {
  const state = file.states[rows.state[row]];
  const thread = file.threads[rows.thread[row]];
  const tags: [string, string][] = [...file.labelSets[rows.labelSet[row]]];
  if (state.tag) tags.push(state.tag);
  if (thread.name !== "") tags.push(["thread", thread.name]);
  tags.push(["thread_seq", String(thread.number)]);
  return tags;
}

/** The values of a row's label, joined by commas; null if it has none. */
export function tagText(file: ProfileFile, rows: ProfileRows, row: number, key: string): string | null {
  const values = rowTags(file, rows, row).filter(([name]) => name === key);
  return values.length > 0 ? values.map(([, value]) => value).join(",") : null;
}

/** Of the rows' filters, whether a row passes. Answers are kept: many rows have the same labels. */
export function rowFilter(file: ProfileFile, rows: ProfileRows, filters: Filter[]): ((row: number) => boolean) | null {
  const tests = filters.map(rowTest).filter((test) => test !== null);
  if (tests.length === 0) return null;
  const known = new Map<number, boolean>();
  const { states, threads } = file;
  return (row) => {
    const key = (rows.labelSet[row] * states.length + rows.state[row]) * threads.length + rows.thread[row];
    let passes = known.get(key);
    if (passes === undefined) {
      const tags = rowTags(file, rows, row);
      const thread = threads[rows.thread[row]];
      passes = tests.every((test) => test(tags, thread));
      known.set(key, passes);
    }
    return passes;
  };
}

type RowTest = (tags: [string, string][], thread: { number: number; name: string }) => boolean;

function rowTest({ kind, text }: Filter): RowTest | null {
  switch (kind) {
    case "tagfocus":
      return tagTest(text);
    case "tagignore": {
      const test = tagTest(text);
      return (tags, thread) => !test(tags, thread);
    }
    case "pid":
      return (tags) => tags.some(([key, value]) => key === "%pid" && value === text);
    case "thread": {
      if (/^\d+$/.test(text)) return (_, thread) => thread.number === Number(text);
      const regexp = new RegExp(text);
      return (_, thread) => regexp.test(thread.name);
    }
    default:
      return null;
  }
}

/** As pprof splits it: after KEY= one of the patterns must match a value, without it all of them a `key:value`. */
function tagPatterns(text: string): { key: string | null; patterns: string[] } {
  const equals = text.indexOf("=");
  const key = equals < 0 ? null : text.slice(0, equals);
  return { key, patterns: text.slice(equals + 1).split(",") };
}

function tagTest(text: string): RowTest {
  const { key, patterns } = tagPatterns(text);
  const regexps = patterns.map((pattern) => new RegExp(pattern));
  if (key === null)
    return (tags) => regexps.every((regexp) => tags.some(([name, value]) => regexp.test(`${name}:${value}`)));
  return (tags) => tags.some(([name, value]) => name === key && regexps.some((regexp) => regexp.test(value)));
}
