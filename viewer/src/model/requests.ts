import type { ProfileFile, ProfileRows } from "../format/decode.ts";
import type { RequestSums, Requests } from "../format/requests.ts";
import { place as filePlace } from "./groups.ts";
import type { View } from "./view.ts";

/** The parts of what a request takes: they add up to its time. */
export const PARTS = ["running", "gvlWait", "blocked", "gc", "suspended"] as const;
export type Part = (typeof PARTS)[number];

/** What a state's time counts as. */
const PART_OF_STATE: Record<string, Part> = {
  running: "running",
  blocked: "blocked",
  wait: "gvlWait",
  gc_mark: "gc",
  gc_sweep: "gc",
};

/** With fewer requests in the tail there is little to tell. */
export const FEW = 20;

/** Places that are told of a part, and holders of the GVL. */
const SITES = 3;

/** The label by which samples tell the class of their request, and that of jobs. */
const LATENCY = "%latency";
const JOB = "job";

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

/** Where time was, as frames of the file; -1 for none. */
export interface Place {
  /** The innermost method. */
  method: number;
  /** The innermost one of the application, or else in a file, and the line in it. */
  app: number;
  line: number;
}

export interface Site extends Place {
  means: Means;
}

/** Who had the GVL while others waited for it. */
export interface Holder extends Place {
  name: string;
  /** The label that it was known by. */
  label: [key: string, value: string] | null;
  /** For how long others waited meanwhile, in the rows that pass the filters. */
  blame: number;
}

/** Why the tail of an endpoint is slow. The places are of the samples that pass the filters, all else is exact. */
export interface Why {
  times: EndpointTimes;
  objects: Means | null;
  sites: Record<Part, Site[]>;
  /** Null if that wasn't measured. */
  holders: Holder[] | null;
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
  const places = new Places(view.file, view.target.rows);
  return {
    times: endpointTimes(requests),
    objects: typical.alone > 0 && tail.alone > 0 ? { typical: objects(typical), tail: objects(tail) } : null,
    ...sitesOf(view, requests, walls, places),
    ...holdersOf(view, blames, places),
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

function sitesOf(view: View, requests: Requests, walls: Float64Array | null, places: Places) {
  const { file, target } = view;
  const { rows, kept } = target;
  const foreign = foreignKeys(view, requests);
  // What each label set makes a row: one of the typical (0), of the tail (1), of those that are open (2), or nothing.
  const kinds = file.labelSets.map((set) => {
    const value = (key: string) => set.find(([name]) => name === key)?.[1];
    if (value(requests.key) !== requests.name || foreign.some((key) => value(key) !== undefined)) return -1;
    return ["typical", "tail", "open"].indexOf(value(LATENCY) ?? "");
  });
  const counts = [requests.classes.typical, requests.classes.tail].map(({ count }) => Math.max(1, count));
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
    if (!part) continue;
    const place = places.of(row);
    const sum = sums[part].get(place) ?? [0, 0];
    sum[kind] += walls[row];
    sums[part].set(place, sum);
  }
  const sites = eachPart((part) => {
    const all = [...sums[part]].map(([place, [typical, tail]]): Site => {
      const means = { typical: Math.trunc(typical / counts[0]), tail: Math.trunc(tail / counts[1]) };
      return { ...places.known[place], means };
    });
    const grown = all.filter(({ means }) => excess(means) > 0);
    grown.sort((a, b) => excess(b.means) - excess(a.means) || places.order(a, b));
    return grown.slice(0, SITES);
  });
  return { sites, open };
}

function holdersOf(view: View, blames: Float64Array | null, places: Places) {
  if (!blames) return { holders: null, blame: 0 };
  const { file, target } = view;
  const keys = judgedKeys(view);
  const labels = file.labelSets.map((set) => {
    const found = keys.flatMap((key) => set.filter(([name]) => name === key).slice(0, 1));
    return found[0] ?? null;
  });
  const sums = new Map<string, { label: Holder["label"]; places: Map<number, number> }>();
  let blame = 0;
  for (let row = 0; row < blames.length; row++) {
    const value = blames[row];
    if (!target.kept[row] || value === 0) continue;
    blame += value;
    const place = places.of(row);
    const label = labels[target.rows.labelSet[row]];
    const name = label ? label.join("=") : threadName(file, target.rows.thread[row], places.known[place]);
    const sum = sums.get(name) ?? { label, places: new Map<number, number>() };
    sums.set(name, sum);
    sum.places.set(place, (sum.places.get(place) ?? 0) + value);
  }
  const holders = [...sums].map(([name, { label, places: of }]): Holder => {
    const all = [...of];
    const most = all.reduce((most, it) => (it[1] > most[1] ? it : most));
    return { name, label, blame: all.reduce((sum, [, value]) => sum + value, 0), ...places.known[most[0]] };
  });
  holders.sort((a, b) => b.blame - a.blame || (a.name < b.name ? -1 : 1));
  return { holders: holders.slice(0, SITES), blame };
}

/** What a thread is called; where nobody had the GVL, as in `[GVL hand-over]`, that. */
function threadName(file: ProfileFile, thread: number, { method, app }: Place): string {
  const { number, name } = file.threads[thread];
  if (number === 0 && method >= 0 && app < 0) return file.frames.name[method];
  if (number === 0) return "(ended threads)";
  return name === "" ? `thread ${number}` : `thread ${number}: ${name}`;
}

/** The path of frames that stand for a stack without any. */
const NO_STACK = "<thread>";

/** Where the rows of a profile are, each place once. */
class Places {
  readonly known: Place[] = [];
  private readonly ids = new Map<string, number>();
  private readonly ofNode = new Map<number, number>();
  private readonly app: number;

  constructor(
    private readonly file: ProfileFile,
    private readonly rows: ProfileRows,
  ) {
    this.app = file.categories.indexOf("app");
  }

  /** The place of a row. */
  of(row: number): number {
    const { parent, frame } = this.file.nodes;
    let node = this.rows.node[row];
    // The last frame stands for the state, or says that there is none.
    const isRunning = this.file.states[this.rows.state[row]].name === "running";
    if (!isRunning || this.file.frames.path[frame[node]] === NO_STACK) node = parent[node];
    let place = this.ofNode.get(node);
    if (place === undefined) {
      place = this.id(this.find(node));
      this.ofNode.set(node, place);
    }
    return place;
  }

  order(a: Place, b: Place): number {
    return this.compare(a.method, b.method) || this.compare(a.app, b.app) || a.line - b.line;
  }

  private find(leaf: number): Place {
    const { parent, frame, line } = this.file.nodes;
    const { path, category } = this.file.frames;
    const method = leaf === 0 ? -1 : frame[leaf];
    let inFile: Place | null = null;
    for (let node = leaf; node !== 0; node = parent[node]) {
      const at = frame[node];
      if (path[at] === "" || path[at].startsWith("<")) continue;
      const place = { method, app: at, line: line[node] };
      if (category[at] === this.app) return place;
      inFile ??= place;
    }
    return inFile ?? { method, app: -1, line: 0 };
  }

  private id(place: Place): number {
    const key = `${place.method} ${place.app} ${place.line}`;
    const known = this.ids.get(key);
    if (known !== undefined) return known;
    this.ids.set(key, this.known.length);
    return this.known.push(place) - 1;
  }

  private compare(a: number, b: number): number {
    if (a < 0 || b < 0) return a - b;
    const { name, path, file } = this.file.frames;
    for (const texts of [name, path, file]) if (texts[a] !== texts[b]) return texts[a] < texts[b] ? -1 : 1;
    return 0;
  }
}

/** A place in words: the method, and the application's own one that leads to it, with its line. */
export function placeWords({ frames }: ProfileFile, { method, app, line }: Place): { name: string; at: string } {
  if (app < 0) return { name: method < 0 ? "(no stack)" : frames.name[method], at: "" };
  const own = frames.name[app];
  const name = method >= 0 && frames.name[method] !== own ? `${frames.name[method]}, in ${own}` : own;
  return { name, at: filePlace(frames.file[app], line) };
}
