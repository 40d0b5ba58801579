import type { ProfileFile } from "../format/decode.ts";
import type { RequestSums, Requests, Slowest } from "../format/requests.ts";
import { type Place, Places } from "./places.ts";
import type { View } from "./view.ts";

/** The parts of what a request takes: they add up to its time. */
export const PARTS = ["running", "gvlWait", "blocked", "gc", "suspended"] as const;
export type Part = (typeof PARTS)[number];

/** What a state's time counts as. */
export const PART_OF_STATE: Record<string, Part> = {
  running: "running",
  blocked: "blocked",
  wait: "gvlWait",
  gc_mark: "gc",
  gc_sweep: "gc",
};

/** With fewer requests in the tail there is little to tell. */
export const FEW = 20;

/** Places that are told of a part, and holders of the GVL. */
export const SITES = 3;

/** The label by which samples tell the class of their request, and that of jobs. */
export const LATENCY = "%latency";
const JOB = "job";

/** The label on the samples of one of the slowest requests. */
export const REQUEST = "%request";

/** What a typical request has of something, and one of the tail, in the mean. */
export interface Means {
  typical: number;
  tail: number;
}

/** An endpoint, and what makes its slowest requests slow. */
export interface EndpointTimes {
  requests: Requests;
  parts: Record<Part, Means>;
  /** How much longer a request of the tail takes; 0 where there are none to compare. */
  excess: number;
}

export interface Site extends Place {
  means: Means;
}

/** Who had the GVL while others waited for it. */
export interface Holder extends Place {
  name: string;
  /** The label that it was known by. */
  label: [key: string, value: string] | null;
  /** For how long others waited meanwhile, whoever they were, in the rows that pass the filters. */
  blame: number;
  /** For how long a request of the endpoint waited meanwhile; null if that isn't known. */
  means: Means | null;
}

/** Why the tail of an endpoint is slow. The places are of the samples that pass the filters, all else is exact. */
export interface Why {
  times: EndpointTimes;
  objects: Means | null;
  sites: Record<Part, Site[]>;
  /** Null if that wasn't measured. */
  holders: Holder[] | null;
  /** By how much longer all who are known kept a slow request waiting, told above or not; null if that wasn't
   * measured. */
  held: number | null;
  blame: number;
  /** The time of samples of requests that had not ended, or for which there was no room. */
  open: number;
}

/** What the tail has more. */
export const excess = ({ typical, tail }: Means): number => tail - typical;

/** The mean of whole numbers, as one. */
export const mean = (sum: number, count: number): number => (count > 0 ? (sum - (sum % count)) / count : 0);

const eachPart = <T>(of: (part: Part) => T): Record<Part, T> =>
  Object.fromEntries(PARTS.map((part) => [part, of(part)])) as Record<Part, T>;

/** The name of requests with the label's key in front. */
export const fullName = ({ key, name }: Requests): string => `${key}=${name}`;

/** Their name for people. */
export const shownName = (requests: Requests): string =>
  requests.key === "endpoint" ? requests.name : fullName(requests);

export function endpointTimes(requests: Requests): EndpointTimes {
  const { typical, tail } = requests.classes;
  const parts = eachPart((part) => ({
    typical: mean(typical[part], typical.count),
    tail: mean(tail[part], tail.count),
  }));
  const isKnown = typical.count > 0 && tail.count > 0;
  return { requests, parts, excess: isKnown ? PARTS.reduce((sum, part) => sum + excess(parts[part]), 0) : 0 };
}

/** All endpoints, those first whose tail costs most in all. */
export function allTimes(requests: Requests[]): EndpointTimes[] {
  const all = requests.map(endpointTimes);
  const cost = (it: EndpointTimes) => Math.max(0, it.excess) * it.requests.classes.tail.count;
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return all.sort(
    (a, b) => cost(b) - cost(a) || order(a.requests.key, b.requests.key) || order(a.requests.name, b.requests.name),
  );
}

/** The share of a part in what the tail takes longer: of the parts that grew. */
export function partShare({ parts }: EndpointTimes, part: Part): number {
  const grown = (part: Part) => Math.max(0, excess(parts[part]));
  const all = PARTS.reduce((sum, part) => sum + grown(part), 0);
  return all > 0 ? grown(part) / all : 0;
}

/** The value of its label, if samples have it. */
export function labelOf(file: ProfileFile, { id }: Slowest): string | null {
  const isOnSamples = file.labelSets.some((set) => set.some(([key, value]) => key === REQUEST && value === id));
  return isOnSamples ? id : null;
}

/** Whether there are enough of both kinds to be compared. */
export function hasEnough({ classes: { typical, tail } }: Requests): boolean {
  return typical.count > 0 && tail.count >= FEW;
}

/** Why the tail of these requests, which are of the view's profile, is slow. */
export function why(view: View, requests: Requests): Why {
  const { typical, tail } = requests.classes;
  const objects = (sums: RequestSums) => mean(sums.objects, sums.alone);
  const column = (name: string) => {
    const type = view.file.valueTypes.findIndex((it) => it.name === name && it.unit === "nanoseconds");
    return view.target.rows.values[type] ?? null;
  };
  const walls = column("wall");
  const blames = column("gvl_blame");
  const waitedFor = column("gvl_waited_for");
  const places = new Places(view.file, view.target.rows);
  return {
    times: endpointTimes(requests),
    objects: typical.alone > 0 && tail.alone > 0 ? { typical: objects(typical), tail: objects(tail) } : null,
    ...sitesOf(view, requests, walls, places),
    ...holdersOf(view, requests, { walls, blames, waitedFor }, places),
  };
}

/** The labels by which requests and jobs were judged. */
function judgedKeys(view: View): string[] {
  return [...new Set(view.target.rows.requests.all().map(({ key }) => key))].sort();
}

/** The labels that requests of this key don't have: a job that a request runs is a part of that. */
export function foreignKeys(view: View, { key }: Requests): string[] {
  return key === JOB ? judgedKeys(view).filter((other) => other !== JOB) : [];
}

/** What each label set makes a row: one of the typical (0), of the tail (1), of those that are open (2), or nothing. */
export function kindsOf(view: View, requests: Requests): number[] {
  const foreign = foreignKeys(view, requests);
  return view.file.labelSets.map((set) => {
    const value = (key: string) => set.find(([name]) => name === key)?.[1];
    if (value(requests.key) !== requests.name || foreign.some((key) => value(key) !== undefined)) return -1;
    return ["typical", "tail", "open"].indexOf(value(LATENCY) ?? "");
  });
}

/** Sums of the typical requests and of the tail, per request. */
export function meansOf({ classes: { typical, tail } }: Requests, sums: [number, number]): Means {
  const of = (sum: number, count: number) => Math.trunc(sum / Math.max(1, count));
  return { typical: of(sums[0], typical.count), tail: of(sums[1], tail.count) };
}

function sitesOf(view: View, requests: Requests, walls: Float64Array | null, places: Places) {
  const { file, target } = view;
  const { rows, kept } = target;
  const kinds = kindsOf(view, requests);
  const sums = eachPart(() => new Map<number, [number, number]>());
  let open = 0;
  for (let row = 0; walls && row < walls.length; row++) {
    const kind = kept[row] ? kinds[rows.labelSet[row]] : -1;
    if (kind < 0) continue;
    if (kind === 2) {
      open += walls[row];
      continue;
    }
    const part = PART_OF_STATE[file.states[rows.state[row]].name];
    // The time of rperf itself has no place, because the line that called it isn't to blame.
    if (!part || places.isRperfs(row)) continue;
    const place = places.of(row);
    const sum = sums[part].get(place) ?? [0, 0];
    sum[kind] += walls[row];
    sums[part].set(place, sum);
  }
  const sites = eachPart((part) => {
    const all = [...sums[part]].map(([place, of]): Site => ({ ...places.known[place], means: meansOf(requests, of) }));
    const grown = all.filter(({ means }) => excess(means) > 0);
    grown.sort((a, b) => excess(b.means) - excess(a.means) || places.order(a, b));
    return grown.slice(0, SITES);
  });
  return { sites, open };
}

/** The columns by which holders are known. */
interface HolderColumns {
  walls: Float64Array | null;
  blames: Float64Array | null;
  waitedFor: Float64Array | null;
}

/** Those who had the GVL. */
interface AllHolders {
  /** By name: the label, and the blame by stack. */
  names: Map<string, { label: Holder["label"]; stacks: Map<number, number> }>;
  /** Who it was that had these stacks, mostly. */
  ofNodes: Map<number, string>;
}

/** Who had the GVL while these requests waited for it; or if that wasn't measured, while others did. */
function holdersOf(view: View, requests: Requests, columns: HolderColumns, places: Places) {
  const { blames, waitedFor } = columns;
  if (!blames) return { holders: null, held: null, blame: 0 };
  const all = allHolders(view, columns, places);
  const sum = (values: Iterable<number>) => [...values].reduce((sum, value) => sum + value, 0);
  const of = [...all.names].map(([name, { label, stacks }]) => ({ name, label, stacks, blame: sum(stacks.values()) }));
  const blame = sum(of.map((it) => it.blame));
  if (waitedFor) {
    const own = waitedForBy(view, requests, waitedFor, all, places);
    const known = new Map(of.map((it) => [it.name, it.blame]));
    const holders = own
      .slice(0, SITES)
      .map(({ stacks, ...it }): Holder => ({ ...it, ...places.ofMost(stacks), blame: known.get(it.name) ?? 0 }));
    const held = sum(own.filter(({ name }) => name !== UNKNOWN).map(({ means }) => excess(means)));
    return { holders, held: own.length > 0 ? held : null, blame };
  }
  const some = of.filter((it) => it.stacks.size > 0);
  some.sort((a, b) => b.blame - a.blame || (a.name < b.name ? -1 : 1));
  const holders = some
    .slice(0, SITES)
    .map(({ stacks, ...it }): Holder => ({ ...it, means: null, ...places.ofMost(stacks) }));
  return { holders, held: null, blame };
}

function allHolders(view: View, { walls, blames }: HolderColumns, places: Places): AllHolders {
  const { file, target } = view;
  const { rows } = target;
  const keys = judgedKeys(view);
  const labels = file.labelSets.map((set) => {
    const found = keys.flatMap((key) => set.filter(([name]) => name === key).slice(0, 1));
    return found[0] ?? null;
  });
  const hasGvl = file.states.map(({ name }) => name !== "blocked" && name !== "wait");
  const names: AllHolders["names"] = new Map();
  const nodes = new Map<number, Map<string, [number, number]>>();
  for (let row = 0; row < rows.node.length; row++) {
    const [value, wall] = [blames?.[row] ?? 0, walls?.[row] ?? 0];
    // What requests have waited for are stacks of others.
    if ((value === 0 && wall === 0) || !hasGvl[rows.state[row]]) continue;
    const label = labels[rows.labelSet[row]];
    const name = label ? label.join("=") : threadName(file, rows.thread[row], places.known[places.of(row)]);
    const stack = places.stack(row);
    const ofNode = nodes.get(stack) ?? new Map<string, [number, number]>();
    nodes.set(stack, ofNode);
    const times = ofNode.get(name) ?? [0, 0];
    ofNode.set(name, [times[0] + value, times[1] + wall]);
    const holder = names.get(name) ?? { label, stacks: new Map<number, number>() };
    names.set(name, holder);
    if (target.kept[row] && value !== 0) holder.stacks.set(stack, (holder.stacks.get(stack) ?? 0) + value);
  }
  const ofNodes = [...nodes].map(([node, names]): [number, string] => {
    const all = [...names].sort(([a, x], [b, y]) => y[0] - x[0] || y[1] - x[1] || (a < b ? -1 : 1));
    return [node, all[0][0]];
  });
  return { names, ofNodes: new Map(ofNodes) };
}

/** Whose samples were lost. */
export const UNKNOWN = "(unknown)";

function waitedForBy(view: View, requests: Requests, values: Float64Array, all: AllHolders, places: Places) {
  const { rows, kept } = view.target;
  const kinds = kindsOf(view, requests);
  const sums = new Map<string, Map<number, [number, number]>>();
  for (let row = 0; row < values.length; row++) {
    const kind = kept[row] && values[row] !== 0 ? kinds[rows.labelSet[row]] : -1;
    if (kind !== 0 && kind !== 1) continue;
    const stack = places.stack(row);
    // Stacks beyond those that a wait tells apart are told as one without frames.
    if (stack === 0) continue;
    const name = all.ofNodes.get(stack) ?? UNKNOWN;
    const of = sums.get(name) ?? new Map<number, [number, number]>();
    sums.set(name, of);
    const sum = of.get(stack) ?? [0, 0];
    sum[kind] += values[row];
    of.set(stack, sum);
  }
  const found = [...sums].map(([name, of]) => {
    const both = [...of.values()].reduce((a, b): [number, number] => [a[0] + b[0], a[1] + b[1]]);
    const stacks = new Map([...of].map(([stack, sums]) => [stack, excess(meansOf(requests, sums))]));
    const label = all.names.get(name)?.label ?? null;
    return { name, label, means: meansOf(requests, both), stacks };
  });
  const grown = found.filter(({ means }) => excess(means) > 0);
  grown.sort((a, b) => excess(b.means) - excess(a.means) || (a.name < b.name ? -1 : 1));
  return grown;
}

/** The share of a holder in what slow requests wait longer for the GVL; or in all blame, where that isn't known. */
export function holderShare({ times, blame }: Why, holder: Holder): number {
  const [own, all] = holder.means ? [excess(holder.means), excess(times.parts.gvlWait)] : [holder.blame, blame];
  return all > 0 ? Math.min(1, own / all) : 0;
}

/** The share of what slow requests wait longer for the GVL of which no sample tells who had it: nobody, or many for a
 * short time each. Null if nothing was measured for this endpoint, or the wait hasn't grown. */
export function unknownShare({ held, times }: Why): number | null {
  const all = excess(times.parts.gvlWait);
  return held !== null && all > 0 ? Math.max(0, 1 - held / all) : null;
}

/** What a thread is called; where nobody had the GVL, as in `[GVL hand-over]`, that. */
function threadName(file: ProfileFile, thread: number, { method, app }: Place): string {
  const { number, name } = file.threads[thread];
  if (number === 0 && method >= 0 && app < 0) return file.frames.name[method];
  if (number === 0) return "(ended threads)";
  return name === "" ? `thread ${number}` : `thread ${number}: ${name}`;
}
