import type { ProfileFile } from "../format/decode.ts";
import type { Slowest } from "../format/requests.ts";
import {
  excess,
  type Holder,
  holderShare,
  LATENCY,
  type Part,
  partShare,
  REQUEST,
  UNKNOWN,
  unknownShare,
  type Why,
} from "./requests.ts";

/** Below this share it isn't told who had the GVL. */
export const LEAST_SHARE = 0.05;

/** With a smaller share of what the tail takes longer it isn't told where a part grew. */
const LEAST_GROWN = 0.005;

/** Holders of the GVL that are told with a part. */
const MAIN_HOLDERS = 2;

/** Whether a part grew by so much that it matters where. */
export function hasGrown({ times }: Why, part: Part): boolean {
  return excess(times.parts[part]) > 0 && partShare(times, part) >= LEAST_GROWN;
}

/** What it is measured by, among other holders: the time by which it kept slow requests waiting longer, or all blame. */
const weight = ({ means, blame }: Holder): number => (means ? excess(means) : blame);

/** Who kept slow requests waiting most, or all others where that isn't known, and who else did so for half as long or
 * more. What nobody had the GVL for, as hand-overs, is nobody's fault. */
export function mainHolders({ frames }: ProfileFile, why: Why): Holder[] {
  const holders = why.holders ?? [];
  const isNobody = ({ app, method, name }: Holder) => app < 0 && method >= 0 && frames.name[method] === name;
  const known = holders.filter((it) => it.name !== UNKNOWN && !isNobody(it));
  const main = known.slice(0, MAIN_HOLDERS).filter((it) => weight(it) >= Math.trunc(weight(known[0]) / 2));
  return main.length > 0 ? main : holders.slice(0, 1);
}

/** The share of what slow requests wait longer for the GVL that others had than the main holders, and the one of which
 * nobody is known, each with words for it; only those that are worth telling. */
export function restOfWait(file: ProfileFile, why: Why): [share: number, words: string][] {
  const unknown = unknownShare(why);
  if (unknown === null) return [];
  const told = mainHolders(file, why).reduce((sum, it) => sum + holderShare(why, it), 0);
  const rest: [number, string][] = [
    [1 - told - unknown, "by others"],
    [unknown, "isn't known"],
  ];
  return rest.filter(([share]) => share >= LEAST_SHARE);
}

/** The request that has more than half of what a part grew by in all of the tail, if one has: then the part isn't what
 * makes the others slow. */
export function mostlyIn({ labelSets }: ProfileFile, { times }: Why, part: Part): Slowest | undefined {
  const { classes, slowest } = times.requests;
  const all = Math.max(0, excess(times.parts[part])) * classes.tail.count;
  if (all === 0 || classes.tail.count <= 1) return undefined;
  const grew = (it: Slowest) => it[part] - times.parts[part].typical;
  const has = (set: [string, string][], key: string, value: string | null) =>
    set.some(([name, its]) => name === key && its === value);
  const isOfTail = ({ id }: Slowest) =>
    id !== null && labelSets.some((set) => has(set, REQUEST, id) && has(set, LATENCY, "tail"));
  return slowest.find((it) => 2 * grew(it) > all && isOfTail(it));
}
