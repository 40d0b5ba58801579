import { createContext } from "preact";
import { useInside } from "../../app/context.ts";
import type { HeapState } from "../../app/heap_state.ts";
import type { Store } from "../../app/store.ts";
import type { Heap } from "../../format/heap.ts";
import type { FoundTree, HeapTree } from "../../model/heap.ts";

/** What every part of a heap's page may use. */
export interface HeapPage {
  store: Store<HeapState>;
  state: HeapState;
  heap: Heap;
  tree: HeapTree;
  /** The rows of the tree that a search finds; null without a search. */
  found: FoundTree | null;
  /** Whether a link leads to what is shown: then that takes the focus. */
  arrives: { current: boolean };
}

export const HeapContext = createContext<HeapPage | null>(null);
export const useHeap = () => useInside(HeapContext);

/** What shows a row of the tree in the map: the row itself, or what it is in if there is nothing in it. */
export function useShowInMap() {
  const { store, tree, arrives } = useHeap();
  return (row: number) => {
    arrives.current = true;
    // "Back" leads to the row.
    store.set({ row }, true);
    store.set({ view: "map", row, zoom: tree.children(row).length > 0 ? row : tree.parent[row] });
  };
}

/** What shows a row of the map in the tree of holders. */
export function useShowInTree() {
  const { store, arrives } = useHeap();
  return (row: number) => {
    arrives.current = true;
    store.set({ row }, true);
    store.set({ view: "holders", row, search: "" });
  };
}
