import { FILTER_KINDS, type Filter, type FilterKind, filterProblem } from "../model/filters.ts";

export const VIEWS = [
  "flame",
  "top",
  "tree",
  "callers",
  "graph",
  "source",
  "labels",
  "requests",
  "tests",
  "boot",
  "changes",
  "snapshots",
] as const;
export type ViewName = (typeof VIEWS)[number];
export const COLOURINGS = ["category", "cpu", "change"] as const;
export type Colouring = (typeof COLOURINGS)[number];
export const WIDTHS = ["after", "before", "both"] as const;
export type Width = (typeof WIDTHS)[number];

/** What the page shows. All of it is in the URL's hash, so that a link or "back" restores it. */
export interface State {
  view: ViewName;
  profile: number;
  /** The profile to compare with, or -1. */
  base: number;
  normalise: string;
  /** The value type's name; empty for the file's default. */
  type: string;
  filters: Filter[];
  /** Whether the time of idle threads counts. */
  idle: boolean;
  search: string;
  regexp: boolean;
  /** The method that callers, source and sandwich are about: "name\tfile", or nothing. */
  method: string;
  /** What is zoomed into: the frames' marks from the root on. */
  zoom: number[];
  inverted: boolean;
  flipped: boolean;
  sandwich: boolean;
  colouring: Colouring;
  width: Width;
  group: string;
  sort: string;
  treeUp: boolean;
  /** The requests that are explained, as "label=name", or nothing: those that cost most. */
  request: string;
  requestSort: string;
  testSort: string;
  testFileSort: string;
  factorySort: string;
  bootFileSort: string;
  bootGemSort: string;
  initializerSort: string;
  /** What the boxes of the call graph are, and how many there may be. */
  graphBy: string;
  graphCount: string;
}

export const INITIAL: State = {
  view: "flame",
  profile: 0,
  base: -1,
  normalise: "file",
  type: "",
  filters: [],
  idle: false,
  search: "",
  regexp: false,
  method: "",
  zoom: [],
  inverted: false,
  flipped: false,
  sandwich: false,
  colouring: "category",
  width: "after",
  group: "method",
  sort: "",
  treeUp: false,
  request: "",
  requestSort: "",
  testSort: "",
  testFileSort: "",
  factorySort: "",
  bootFileSort: "",
  bootGemSort: "",
  initializerSort: "",
  graphBy: "method",
  graphCount: "80",
};

const MAX_ZOOM = 500;

/** The state as the URL's hash; what is as in `initial` is left out. */
export function toHash(state: State, initial: State): string {
  const fields = new URLSearchParams();
  for (const key of Object.keys(initial) as (keyof State)[]) {
    const value = state[key];
    if (key === "filters") {
      for (const { kind, text } of state.filters) fields.append(kind, text);
    } else if (key === "zoom") {
      if (state.zoom.length > 0 && state.zoom.length <= MAX_ZOOM)
        fields.set(key, state.zoom.map((mark) => mark.toString(36)).join("."));
    } else if (value !== initial[key]) {
      fields.set(key, value === true ? "1" : value === false ? "0" : String(value));
    }
  }
  return fields.toString();
}

/** The state that a hash describes. What isn't known or valid is left out. */
export function fromHash(hash: string, initial: State): State {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (key: keyof State) => fields.get(key) ?? (initial[key] as string);
  const flag = (key: keyof State) => (fields.has(key) ? fields.get(key) === "1" : (initial[key] as boolean));
  const index = (key: "profile" | "base") => {
    const number = Number(fields.get(key) ?? Number.NaN);
    return Number.isInteger(number) && number >= -1 ? number : initial[key];
  };
  const choice = <T extends string>(key: keyof State, choices: readonly T[]): T => {
    const value = fields.get(key);
    return choices.includes(value as T) ? (value as T) : (initial[key] as T);
  };
  const filters = [...fields]
    .filter(([kind]) => FILTER_KINDS.includes(kind as FilterKind))
    .map(([kind, text]) => ({ kind: kind as FilterKind, text }))
    .filter((filter) => filterProblem(filter) === null);
  const zoom = (fields.get("zoom") ?? "").split(".").filter((part) => /^[0-9a-z]{1,7}$/.test(part));
  return {
    view: choice("view", VIEWS),
    profile: Math.max(0, index("profile")),
    base: index("base"),
    normalise: text("normalise"),
    type: text("type"),
    filters,
    idle: flag("idle"),
    search: text("search"),
    regexp: flag("regexp"),
    method: text("method"),
    zoom: zoom.slice(0, MAX_ZOOM).map((mark) => Number.parseInt(mark, 36)),
    inverted: flag("inverted"),
    flipped: flag("flipped"),
    sandwich: flag("sandwich"),
    colouring: choice("colouring", COLOURINGS),
    width: choice("width", WIDTHS),
    group: text("group"),
    sort: text("sort"),
    treeUp: flag("treeUp"),
    request: text("request"),
    requestSort: text("requestSort"),
    testSort: text("testSort"),
    testFileSort: text("testFileSort"),
    factorySort: text("factorySort"),
    bootFileSort: text("bootFileSort"),
    bootGemSort: text("bootGemSort"),
    initializerSort: text("initializerSort"),
    graphBy: text("graphBy"),
    graphCount: text("graphCount"),
  };
}

/** How the state of a profile's page is written. */
export const PROFILE_STATE = { toHash, fromHash };
