import type { MethodChange } from "../format/decode.ts";
import type { Verdict } from "../format/header.ts";
import { type Grouping, groupView, methodPlace } from "./groups.ts";
import { otherType, type View } from "./view.ts";

/** How the base's values are made comparable. */
export const NORMALISATIONS = ["file", "none", "total", "duration"] as const;
export type Normalisation = (typeof NORMALISATIONS)[number];

/** The factor for the base's values; null if what it takes is not known. */
export function baseScale(
  how: Normalisation,
  view: { target: number; base: number; durations: (number | null)[]; given: number },
): number | null {
  const [targetDuration, baseDuration] = view.durations;
  switch (how) {
    case "file":
      return view.given;
    case "none":
      return 1;
    case "total":
      return view.target > 0 && view.base > 0 ? view.target / view.base : null;
    case "duration":
      return targetDuration && baseDuration ? targetDuration / baseDuration : null;
  }
}

/** A method, file or the like that changed. */
export interface Change {
  name: string;
  place: string;
  /** One of its frames; -1 for none. */
  frame: number;
  before: number;
  after: number;
  delta: number;
  verdict: Verdict;
}

export interface Changes {
  slower: Change[];
  faster: Change[];
}

/** The least share of all that counts as a change. */
const LEAST_SHARE = 0.001;

/**
 * What got slower and what got faster, by its own time, the largest change first. Below the larger of 0.1 % of all
 * and twice the random error of the samples that both profiles have of it, a change is taken for noise.
 */
export function changes(view: View, grouping: Grouping): Changes {
  const groups = groupView(view, grouping);
  const floor = noiseFloor(view, grouping);
  const all: Change[] = [];
  for (let group = 0; group < groups.name.length; group++) {
    const delta = groups.self[group] - groups.baseSelf[group];
    if (delta === 0) continue;
    const verdict = delta > 0 ? "more" : "less";
    all.push({
      name: groups.name[group],
      place: groups.place[group],
      frame: groups.frame[group],
      before: groups.baseSelf[group],
      after: groups.self[group],
      delta,
      verdict: Math.abs(delta) <= floor(group) ? "noise" : verdict,
    });
  }
  return sorted(all);
}

/** The same as `rperf diff` tells it, which knows the runs one by one. */
export function givenChanges({ tree: { frames } }: View, given: MethodChange[]): Changes {
  const key = (name: string, file: string) => `${name}\t${file}`;
  const known = new Map(frames.name.map((name, i) => [key(name, frames.file[i]), i]));
  return sorted(
    given.map(({ name, file, before, after, verdict }) => {
      const frame = known.get(key(name, file)) ?? -1;
      const at = frame < 0 ? file : methodPlace(name, file, frames.line[frame]);
      return { name, place: at, frame, before, after, delta: after - before, verdict };
    }),
  );
}

function sorted(all: Change[]): Changes {
  const isNoise = ({ verdict }: Change) => Number(verdict === "noise");
  const order = (a: Change, b: Change) => isNoise(a) - isNoise(b) || Math.abs(b.delta) - Math.abs(a.delta);
  return {
    slower: all.filter(({ delta }) => delta > 0).sort(order),
    faster: all.filter(({ delta }) => delta < 0).sort(order),
  };
}

function noiseFloor(view: View, grouping: Grouping): (group: number) => number {
  const { target, base, file } = view;
  const least = LEAST_SHARE * Math.max(target.sum, base?.sum ?? 0);
  const type = file.valueTypes.findIndex(({ name, unit }) => name === "samples" && unit === "count");
  const samples = type < 0 ? null : sampleGroups(view, type, grouping);
  if (!samples) return () => least;
  return (group) => Math.max(least, 2 * Math.sqrt(samples.of(group)) * samples.value);
}

/** How many samples each group has in both profiles, and what one stands for. */
function sampleGroups(
  view: View,
  type: number,
  grouping: Grouping,
): { of: (group: number) => number; value: number } | null {
  const { base } = view;
  if (!base) return null;
  const count = (side: View["target"]) => {
    const unscaled = { ...side, scale: 1 };
    return { ...unscaled, ...otherType(view, unscaled, type) };
  };
  const counted = { ...view, query: { ...view.query, type }, target: count(view.target), base: count(base) };
  const groups = groupView(counted, grouping);
  const number = counted.target.sum + counted.base.sum;
  if (number <= 0) return null;
  return { of: (group) => groups.self[group] + groups.baseSelf[group], value: (view.target.sum + base.sum) / number };
}
