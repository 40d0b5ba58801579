import { MAX_SEARCH } from "../model/heap.ts";

export const HEAP_VIEWS = ["sites", "holders", "map", "classes", "paths"] as const;
export type HeapViewName = (typeof HEAP_VIEWS)[number];

/** What a heap's page shows. All of it is in the URL's hash. */
export interface HeapState {
  view: HeapViewName;
  search: string;
  /** The row of the tree of holders that has the whole map; 0: all. */
  zoom: number;
  /** The row of the tree that a link leads to; 0: none. */
  row: number;
  /** The site, the path and the holder that are shown with all that is known of them, counted from 1; 0: none. */
  site: number;
  path: number;
  holder: number;
  siteSort: string;
  classSort: string;
  pathSort: string;
  holderSort: string;
}

export const INITIAL_HEAP: HeapState = {
  view: "sites",
  search: "",
  zoom: 0,
  row: 0,
  site: 0,
  path: 0,
  holder: 0,
  siteSort: "",
  classSort: "",
  pathSort: "",
  holderSort: "",
};

type Field = keyof HeapState;

/** How it is written; what is as in `initial` is left out, and what isn't valid. */
export const HEAP_STATE = {
  toHash(state: HeapState, initial: HeapState): string {
    const fields = new URLSearchParams();
    for (const key of Object.keys(initial) as Field[])
      if (state[key] !== initial[key]) fields.set(key, String(state[key]));
    return fields.toString();
  },

  fromHash(hash: string, initial: HeapState): HeapState {
    const fields = new URLSearchParams(hash.replace(/^#/, ""));
    const text = (key: Field) => fields.get(key) ?? (initial[key] as string);
    const count = (key: Field) => {
      const number = Number(fields.get(key) ?? initial[key]);
      return Number.isSafeInteger(number) && number >= 0 ? number : 0;
    };
    const view = fields.get("view") as HeapViewName;
    return {
      view: HEAP_VIEWS.includes(view) ? view : initial.view,
      search: text("search").slice(0, MAX_SEARCH),
      zoom: count("zoom"),
      row: count("row"),
      site: count("site"),
      path: count("path"),
      holder: count("holder"),
      siteSort: text("siteSort"),
      classSort: text("classSort"),
      pathSort: text("pathSort"),
      holderSort: text("holderSort"),
    };
  },
};
