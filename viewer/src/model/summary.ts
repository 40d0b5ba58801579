import { type Groups, groupView, methodPlace } from "./groups.ts";
import { neighbours } from "./neighbours.ts";
import { rowStateNames, rowStates } from "./states.ts";
import { formatShare, formatTime, formatValue, isTime, typeWords } from "./units.ts";
import type { View } from "./view.ts";

/** Words for a state: in a legend, and within a sentence. */
interface StateWords {
  short: string;
  long: string;
}

/** Those of the states that the page knows. */
export const STATE_WORDS: Record<string, StateWords> = {
  running: { short: "running", long: "running code" },
  blocked: { short: "GVL blocked", long: "waiting for I/O, sleep or a lock" },
  wait: { short: "GVL wait", long: "waiting for the GVL (another thread ran)" },
  gc_mark: { short: "GC marking", long: "marking objects for the garbage collector" },
  gc_sweep: { short: "GC sweeping", long: "sweeping for the garbage collector" },
  "GVL hand-over": { short: "GVL hand-over", long: "handing over the GVL, while nobody had it" },
  "GVL holder unknown": { short: "GVL holder unknown", long: "waits of which it isn't known who had the GVL" },
};

export interface StateShare {
  name: string;
  words: StateWords;
  value: number;
  /** Finds the state's rows, as a filter. */
  filter: { kind: "tagfocus" | "tagignore" | "focus"; text: string } | null;
}

/** A piece of a sentence: text, or a method that can be followed. */
export type Piece = string | { method: number; name: string };
export type Sentence = Piece[];

/** The time in each state, in the order of their numbers, and that for which nobody is known to have had the GVL, which
 * the filter of running code finds, too. Empty if there is only one. */
export function stateShares(view: View): StateShare[] {
  const { file, target, query } = view;
  const names = rowStateNames(file);
  const sums = names.map(() => 0);
  const stateOf = rowStates(file, target.rows);
  const values = target.rows.values[query.type];
  for (let row = 0; values && row < values.length; row++) if (target.kept[row]) sums[stateOf(row)] += values[row];
  const shares = names.map((name, i): StateShare => {
    const tag = file.states[i]?.tag;
    const others = file.states.filter(({ tag }) => tag !== null).map(({ tag }) => `^${tag?.[0]}:`);
    const filter = tag
      ? ({ kind: "tagfocus", text: `${tag[0]}=^${tag[1]}$` } as const)
      : i >= file.states.length
        ? ({ kind: "focus", text: `^\\[${name}\\]$` } as const)
        : others.length > 0
          ? ({ kind: "tagignore", text: [...new Set(others)].join("|") } as const)
          : null;
    return { name, words: STATE_WORDS[name] ?? { short: name, long: name }, value: sums[i], filter };
  });
  const known = shares.filter(({ value }, i) => i < file.states.length || value > 0);
  return known.filter(({ value }) => value > 0).length > 1 ? known : [];
}

/** Where the time goes, in sentences. */
export function summary(view: View): Sentence[] {
  const { file, target, query } = view;
  const type = file.valueTypes[query.type];
  if (target.sum === 0) {
    const filtered = query.filters.length > 0 && target.all !== 0;
    return [[filtered ? "Nothing passes the filters. Remove one of them." : `This profile has no ${typeWords(type)}.`]];
  }
  const methods = groupView(view, "method");
  const sentences: Sentence[] = [opening(view)];
  const name = (frame: number): Piece => ({ method: frame, name: nameWithPlace(view, frame) });
  const unnamed = unnamedFrames(view);
  const hottest = best(methods, (group) => (unnamed.has(methods.frame[group]) ? 0 : methods.self[group]));
  const own = isTime(type) ? "runs longest itself" : "has most itself";
  if (hottest >= 0) {
    sentences.push([
      name(methods.frame[hottest]),
      ` ${own}: ${share(view, methods.self[hottest])}, without what it calls.`,
    ]);
  }
  const app = file.categories.indexOf("app");
  const heaviest = appEntry(view, methods, app);
  if (heaviest >= 0 && heaviest !== hottest) {
    sentences.push([
      "Of your own code, ",
      name(methods.frame[heaviest]),
      ` takes most with all that it calls: ${share(view, methods.total[heaviest])}.`,
    ]);
  }
  const waiting = stateShares(view).filter((state) => state.name === "blocked" || state.name === "wait");
  for (const state of waiting) {
    if (state.value < 0.1 * target.sum) continue;
    const waiter = waitingMethod(view, state.name);
    const kind = state.name === "wait" ? "for the GVL" : "(I/O, sleep)";
    if (waiter >= 0) sentences.push([`The method with the most waiting ${kind} is `, name(waiter), "."]);
  }
  return sentences;
}

function share(view: View, value: number): string {
  const type = view.file.valueTypes[view.query.type];
  return `${formatValue(value, type)} (${formatShare(value, view.target.sum)})`;
}

function opening(view: View): Sentence {
  const { file, target, query } = view;
  const type = file.valueTypes[query.type];
  const { program, durationNs } = target.rows.meta;
  const filtered = query.filters.length > 0;
  const whole = `${formatValue(target.sum, type)}${isTime(type) ? ` of ${typeWords(type)}` : ` (${typeWords(type)})`}`;
  const who = program ? `${program}: ` : "";
  const by = isTime(type) ? threadWords(view) : "";
  const during = durationNs ? `, recorded in ${formatTime(durationNs)}` : "";
  const states = stateShares(view).filter(({ value }) => value > 0);
  const first = [...states].sort((a, b) => b.value - a.value)[0];
  const most = first ? ` ${formatShare(first.value, target.sum)} of it went into ${first.words.long}.` : "";
  const part = filtered ? ` (${formatShare(target.sum, target.all)} of all; filters are on)` : "";
  return [`${who}${whole}${by}${part}${during}.${most}`];
}

/** How many threads have such values. Those that had ended may be one row, of a thread with the number 0. */
function threadWords({ file, query, target }: View): string {
  const seen = new Set<number>();
  const values = target.rows.values[query.type];
  for (let row = 0; row < target.kept.length; row++)
    if (target.kept[row] && values?.[row]) seen.add(target.rows.thread[row]);
  const living = [...seen].filter((thread) => file.threads[thread]?.number !== 0).length;
  if (seen.size < 2) return "";
  const others = living < seen.size ? " and of ended ones" : "";
  return ` of ${living} thread${living === 1 ? "" : "s"}${others} together`;
}

/** Frames that no sentence is about: those that only stand for a state, and those of rperf itself. */
function unnamedFrames(view: View): Set<number> {
  const { categories, frames } = { categories: view.file.categories, frames: view.tree.frames };
  const synthetic = new Set(["gvl", "gc"].map((name) => categories.indexOf(name)));
  const rperf = categories.indexOf("rperf");
  const found = new Set<number>();
  frames.category.forEach((category, frame) => {
    if (category === rperf) found.add(frame);
    if (synthetic.has(category) && frames.file[frame].startsWith("<")) found.add(frame);
  });
  return found;
}

function best(groups: Groups, value: (group: number) => number): number {
  let best = -1;
  let most = 0;
  for (let group = 0; group < groups.name.length; group++) {
    if (value(group) > most) {
      best = group;
      most = value(group);
    }
  }
  return best;
}

/** What runs a whole file, a class or module, or a block of these: it says little beside a method that it calls. */
const SHELL = /^((block|rescue|ensure)\b.* in )?<[^>]*>$/;

/** Frames with this share of all are around everything. */
const AROUND = 0.95;

/** Frames with this share of what is around them are worth a look. */
const WORTH = 0.25;

/** The name, with the place of what has no name of its own. */
function nameWithPlace({ tree }: View, frame: number): string {
  const name = tree.frames.name[frame];
  const at = methodPlace(name, tree.frames.file[frame], tree.frames.line[frame]);
  return SHELL.test(name) && at !== "" ? `${name} (${at})` : name;
}

/**
 * The method of the app's that is worth a look: the heaviest one that isn't just a frame around everything, or else the
 * innermost of those. A shell only where no method has a good part of its time.
 */
function appEntry(view: View, methods: Groups, app: number): number {
  if (app < 0) return -1;
  const { frames } = view.tree;
  const found = (isShell: boolean) => {
    const total = (group: number) => {
      const frame = methods.frame[group];
      const isWanted = frames.category[frame] === app && SHELL.test(frames.name[frame]) === isShell;
      return isWanted ? methods.total[group] : 0;
    };
    const around = AROUND * view.target.sum;
    const within = best(methods, (group) => (total(group) < around ? total(group) : 0));
    // It has the least; of several with the same the last, as callers come first.
    let innermost = -1;
    for (let group = 0; group < methods.name.length; group++) {
      if (total(group) <= 0 || total(group) < around) continue;
      if (innermost < 0 || total(group) <= total(innermost)) innermost = group;
    }
    if (innermost < 0 || within < 0) return Math.max(innermost, within);
    return methods.total[within] >= WORTH * methods.total[innermost] ? within : innermost;
  };
  const [method, shell] = [found(false), found(true)];
  if (method < 0 || shell < 0) return Math.max(method, shell);
  return methods.total[method] >= WORTH * methods.total[shell] ? method : shell;
}

/** The method that waits most in this state: the caller of the state's own frame. */
function waitingMethod(view: View, state: string): number {
  const { file, tree } = view;
  const leaf = { blocked: "[GVL blocked]", wait: "[GVL wait]" }[state];
  const frame = tree.frames.name.findIndex(
    (name, i) => name === leaf && file.categories[tree.frames.category[i]] === "gvl",
  );
  if (frame < 0) return -1;
  const unnamed = unnamedFrames(view);
  return neighbours(view, frame, true).find((caller) => !unnamed.has(caller.frame))?.frame ?? -1;
}
