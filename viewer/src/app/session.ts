import type { MethodChange, ProfileFile } from "../format/decode.ts";
import type { TotalChange } from "../format/header.ts";
import { Boot } from "../model/boot.ts";
import { BoxTree, outermostNodes } from "../model/box_tree.ts";
import { baseScale, NORMALISATIONS, type Normalisation } from "../model/changes.ts";
import { type Found, search, searchPattern } from "../model/search.ts";
import { otherType, type Sums, type View, Views } from "../model/view.ts";
import { INITIAL, type State } from "./state.ts";

/** Which tree of boxes: all stacks, all inverted, or what calls or is called by a method. */
export type TreeKind = "down" | "up" | "callers" | "callees";

/** A file, and all that follows from it and the state. Each part is made when it is first asked for. */
export class Session {
  private readonly views: Views;
  private cache = new Map<string, unknown>();
  private cachedFor: View | null = null;
  private lastKey = "";
  private readonly sums = new Map<string, number>();
  /** Whether each profile has a boot, as far as somebody has asked. */
  private readonly boots = new Map<number, boolean>();
  /** The columns of `beside` for the last view: to clear them is much quicker than to get new memory. */
  private readonly besides: Sums[] = [];

  constructor(readonly file: ProfileFile) {
    this.views = new Views(file);
  }

  /** The state that the page opens with. */
  get initial(): State {
    const { diff } = this.file;
    return diff ? { ...INITIAL, profile: diff.target, base: diff.base, colouring: "change", view: "changes" } : INITIAL;
  }

  view(state: State): View {
    const profiles = this.file.profiles.length;
    const target = Math.min(state.profile, profiles - 1);
    const base = state.base >= 0 && state.base < profiles && state.base !== target ? state.base : null;
    const type = this.type(state);
    const scale = base === null ? 1 : this.scale(state, target, base, type);
    const query = { target, base, baseScale: scale ?? 1, type, filters: state.filters, idle: state.idle };
    const key = JSON.stringify(query);
    if (!this.cachedFor || key !== this.lastKey) {
      this.cachedFor = this.views.view(query);
      this.lastKey = key;
      this.cache.clear();
    }
    return this.cachedFor;
  }

  type(state: State): number {
    const named = this.file.valueTypes.findIndex(({ name }) => name === state.type);
    return named < 0 ? this.file.defaultType : named;
  }

  /** The factor for the base; null if it isn't known, and then nothing is scaled. */
  scale(state: State, target: number, base: number, type: number): number | null {
    const { diff, profiles } = this.file;
    const isGiven = diff !== null && diff.target === target && diff.base === base;
    return baseScale(this.normalisation(state), {
      target: this.sum(target, type, state.idle),
      base: this.sum(base, type, state.idle),
      durations: [profiles[target].meta.durationNs, profiles[base].meta.durationNs],
      given: isGiven ? diff.scale : 1,
    });
  }

  /** What the file says has changed; null if it says nothing of what the state shows. */
  given(state: State): { total: TotalChange; methods: MethodChange[] } | null {
    const { diff, changes } = this.file;
    const { target, base, type, filters } = this.view(state).query;
    const total = diff?.changes[type];
    const methods = changes[type];
    const isPlain = filters.length === 0 && !(state.idle && this.hasIdle);
    const isShown = diff?.target === target && diff.base === base && isPlain;
    return total && methods && isShown && this.normalisation(state) === "file" ? { total, methods } : null;
  }

  /** Whether any thread of the file was idle. */
  get hasIdle(): boolean {
    return this.file.profiles.some(({ idle }) => idle.includes(1));
  }

  private normalisation({ normalise }: State): Normalisation {
    return NORMALISATIONS.find((how) => how === normalise) ?? "file";
  }

  /** The sum of all rows of a profile that count. */
  private sum(profile: number, type: number, withIdle: boolean): number {
    const key = `${profile} ${type} ${withIdle}`;
    let sum = this.sums.get(key);
    if (sum === undefined) {
      const { values, idle } = this.file.profiles[profile];
      sum = values[type]?.reduce((sum, value, row) => (withIdle || idle[row] === 0 ? sum + value : sum), 0) ?? 0;
      this.sums.set(key, sum);
    }
    return sum;
  }

  /** The frame of the state's method, or -1. */
  method(state: State): number {
    const view = this.view(state);
    return this.kept(`method ${state.method}`, () => {
      const [name, file] = state.method.split("\t");
      const { frames } = view.tree;
      return frames.name.findIndex((other, i) => other === name && (file === undefined || frames.file[i] === file));
    });
  }

  /** How a state names a frame. */
  methodName(state: State, frame: number): string {
    const { frames } = this.view(state).tree;
    return `${frames.name[frame]}\t${frames.file[frame]}`;
  }

  tree(state: State, kind: TreeKind): BoxTree {
    const view = this.view(state);
    const method = kind === "callers" || kind === "callees" ? this.method(state) : -1;
    return this.kept(`tree ${kind} ${method}`, () => {
      if (kind === "down") return BoxTree.topDown(view);
      if (kind === "up") return BoxTree.bottomUp(view);
      const nodes = this.kept(`nodes ${method}`, () => outermostNodes(view.tree, method));
      return kind === "callers" ? BoxTree.callers(view, nodes) : BoxTree.callees(view, nodes);
    });
  }

  /** What the state searches for: nothing, what is wrong with it, or what was found. */
  found(state: State): Found | string | null {
    if (state.search === "") return null;
    const view = this.view(state);
    return this.kept(`search ${state.regexp} ${state.search}`, () => {
      const pattern = searchPattern(state.search, state.regexp);
      if (typeof pattern === "string") return `Not a pattern: ${pattern}.`;
      const found = search(view, pattern);
      return found === "too slow" ? "The pattern takes too long. Use a simpler one." : found;
    });
  }

  /** Whether people may ask for the boot of the state's profile. Traces have no samples that would tell it. */
  hasBoot(state: State): boolean {
    const { query, target } = this.view(state);
    const { valueTypes, defaultType } = this.file;
    let isThere = this.boots.get(query.target);
    if (isThere === undefined) {
      const { idle, values } = target.rows;
      const has = (column: string) => valueTypes.some(({ name }, type) => name === column && values[type]);
      const isTraced = has("calls") && (has("block_calls") || (has("call_time") && !has("samples")));
      const counted = Uint8Array.from(idle, (isIdle) => 1 - isIdle);
      isThere = !isTraced && new Boot(this.file, target.rows, counted, values[defaultType]).isThere;
      this.boots.set(query.target, isThere);
    }
    return isThere;
  }

  /** The loading of the files of what passes the filters, but for those that keep a part of it. */
  boot(state: State): Boot {
    const { query, target } = this.view(state);
    return this.kept(
      "boot",
      () => new Boot(this.file, target.rows, target.keptForBoot, target.rows.values[query.type]),
    );
  }

  /** The number of the value type with this name; -1 where it isn't measured. */
  measured(state: State, name: string): number {
    const type = this.file.valueTypes.findIndex((other) => other.name === name);
    return this.view(state).target.rows.values[type] ? type : -1;
  }

  /** Totals of each node in another value type, such as CPU beside wall; null where it isn't measured. */
  beside(state: State, name: string): Float64Array | null {
    const type = this.measured(state, name);
    if (type < 0) return null;
    return this.kept(`beside ${name}`, () => {
      const view = this.view(state);
      const sums = otherType(view, view.target, type, this.besides[type]);
      this.besides[type] = sums;
      return sums.total;
    });
  }

  /** Keeps what was made for the present view. */
  kept<T>(key: string, make: () => T): T {
    if (!this.cache.has(key)) this.cache.set(key, make());
    return this.cache.get(key) as T;
  }
}
