import type { FunctionComponent } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { ShellContext, useStore } from "../../app/context.ts";
import { HEAP_VIEWS, type HeapState, type HeapViewName, INITIAL_HEAP } from "../../app/heap_state.ts";
import { useKeys, useNewShell } from "../../app/shell.ts";
import type { Store } from "../../app/store.ts";
import type { Heap } from "../../format/heap.ts";
import { FoundTree, foundWords, HeapTree, partsOfHolders, pathRows, siteRows } from "../../model/heap.ts";
import { counted, formatSize, formatTime, formatWhen } from "../../model/units.ts";
import { SearchBox } from "../../ui/SearchBox.tsx";
import { Tabs, tabOfKey } from "../../ui/Tabs.tsx";
import { ThemeButton } from "../../ui/ThemeButton.tsx";
import { Help } from "../Help.tsx";
import { ClassesView, classRows } from "./ClassesView.tsx";
import { HeapContext, type HeapPage } from "./context.ts";
import { HoldersView } from "./HoldersView.tsx";
import { HEAP_HELP } from "./help.ts";
import { MapView } from "./MapView.tsx";
import { PathsView } from "./PathsView.tsx";
import { SitesView } from "./SitesView.tsx";

const TABS: Record<HeapViewName, [title: string, view: FunctionComponent]> = {
  sites: ["Sites", SitesView],
  holders: ["Holders", HoldersView],
  map: ["Map", MapView],
  classes: ["Classes", ClassesView],
  paths: ["Paths", PathsView],
};

/** The views that there is something for. */
export function heapViews({ sites, tree, holders, classes, paths }: Heap): HeapViewName[] {
  const has = {
    sites: sites !== null,
    holders: tree.length + holders.length > 0,
    map: tree.length > 0,
    classes: classes.length > 0,
    paths: paths !== null,
  };
  return HEAP_VIEWS.filter((view) => has[view]);
}

/** The state that a heap's page opens with: where a class was asked for, its paths. */
export function initialHeap(heap: Heap): HeapState {
  return { ...INITIAL_HEAP, view: heap.paths ? "paths" : (heapViews(heap)[0] ?? "sites") };
}

/** The whole page of a heap. */
export function HeapApp({ store, heap }: { store: Store<HeapState>; heap: Heap }) {
  const state = useStore(store);
  const [help, setHelp] = useState(false);
  const title = `heap of ${heap.program || `process ${heap.pid}`}`;
  const { shell, live } = useNewShell(title);
  const tree = useMemo(() => new HeapTree(heap.tree), [heap]);
  const found = useMemo(() => (state.search === "" ? null : new FoundTree(tree, state.search)), [tree, state.search]);
  const arrives = useRef(false);
  const page: HeapPage = { store, state, heap, tree, found, arrives };
  const tabs = useMemo(() => heapViews(heap), [heap]);
  const current = tabs.includes(state.view) ? state.view : tabs[0];
  useKeys(shell, (key) => {
    const tab = tabOfKey(tabs, key);
    if (tab) return () => store.set({ view: tab });
    return key === "/"
      ? () => document.getElementById("search")?.focus()
      : key === "?"
        ? () => setHelp(true)
        : undefined;
  });
  const Current = current && TABS[current][1];
  return (
    <ShellContext.Provider value={shell}>
      <HeapContext.Provider value={page}>
        <header>
          <h1>
            <span class="brand">rperf</span> {title}
          </h1>
          <SearchBox
            label="Search names and classes"
            value={state.search}
            onSearch={(search) => store.set({ search }, true)}
            words={state.search === "" ? "" : foundWords(foundCount(page, current))}
          />
          <ThemeButton />
          <button type="button" title="Keys, and what the words mean (?)" onClick={() => setHelp(true)}>
            Help
          </button>
        </header>
        <Facts heap={heap} />
        <main class="heap pinned">
          <Tabs tabs={tabs} current={current} title={(name) => TABS[name][0]} onPick={(view) => store.set({ view })} />
          <div id="panel" role="tabpanel" aria-labelledby={`tab-${current}`}>
            {Current ? <Current /> : <p class="empty">There are no rows in this heap.</p>}
          </div>
        </main>
        <div ref={live} class="hidden-text" role="status" aria-live="polite" />
        {help && <Help {...HEAP_HELP} onClose={() => setHelp(false)} />}
      </HeapContext.Provider>
    </ShellContext.Provider>
  );
}

/** How many rows of a view a search finds. */
function foundCount({ heap, state, found }: HeapPage, view: HeapViewName): number {
  if (view === "sites") return siteRows(heap, state.search).length;
  if (view === "classes") return classRows(heap, state.search).length;
  if (view === "paths") return pathRows(heap.paths ?? [], state.search).length;
  const inTree = found?.found.size ?? 0;
  if (view === "map") return inTree;
  const holders = heap.tree.length > 0 ? partsOfHolders(heap) : heap.holders;
  return inTree + pathRows(holders, state.search).length;
}

/** What the heap is of, and what there is in all. */
function Facts({ heap }: { heap: Heap }) {
  const { total, unreferenced, references, sites, isWhole } = heap;
  const from = [
    `Process ${heap.pid}`,
    `Ruby ${heap.ruby}`,
    formatWhen(heap.timeMs),
    `taken in ${formatTime(heap.elapsedNs)}`,
  ];
  return (
    <section class="summary" aria-label="Summary">
      <p class="words">
        <strong>{formatSize(total.bytes)}</strong> in {counted(total.objects, "object")} with{" "}
        {counted(references, "reference")}.{" "}
        {unreferenced.objects > 0 &&
          `Nothing refers to ${counted(unreferenced.objects, "object")} of these (${formatSize(unreferenced.bytes)}): the next collection frees them.`}
      </p>
      <p class="muted flags">{from.join(", ")}</p>
      {!isWhole && (
        <p class="loss">
          The copy of the program was ended before it had sent all names: some constants and variables are missing.
        </p>
      )}
      {sites === null && (
        <p class="muted">
          Where the objects were made isn't known:{" "}
          {isWhole ? (
            <>
              no session of this program has <code>--measure heap</code>. A forked worker needs
              <code>RPERF_INHERIT=fork</code>, too.
            </>
          ) : (
            "the program's copy was ended before it had told that."
          )}
        </p>
      )}
    </section>
  );
}
