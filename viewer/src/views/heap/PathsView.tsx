import { useMemo } from "preact/hooks";
import type { HeapPath } from "../../format/heap.ts";
import { classOfPaths, pathRows, pathTitle } from "../../model/heap.ts";
import { formatSize } from "../../model/units.ts";
import { Bar, type Column, number, Table } from "../../ui/Table.tsx";
import { useHeap } from "./context.ts";
import { Largest } from "./Largest.tsx";
import { Steps } from "./Steps.tsx";

/** On which paths the instances of a class are held. */
export function PathsView() {
  const { heap, state, store } = useHeap();
  const ofClass = classOfPaths(heap);
  return (
    <div class="view">
      <p class="flags">
        Paths on which instances of {ofClass === undefined ? "the class" : <strong>{ofClass}</strong>} are held: all
        those that are reached by the same names, over objects of the same classes.{" "}
        <span class="muted">A row opens its path.</span>
      </p>
      <Paths
        paths={heap.paths ?? []}
        caption="Paths"
        chosen={state.path}
        onChoose={(path) => store.set({ path })}
        sort={state.pathSort}
        onSort={(pathSort) => store.set({ pathSort }, true)}
      />
    </div>
  );
}

interface PathsProps {
  paths: HeapPath[];
  caption: string;
  /** Of which bytes the bars show a part; without it, those of all paths. */
  of?: number;
  /** Counted from 1; 0: none. */
  chosen: number;
  onChoose(path: number): void;
  sort: string;
  onSort(sort: string): void;
}

/** A table of paths, and the one that is chosen. */
export function Paths({ paths, caption, of, chosen, onChoose, sort, onSort }: PathsProps) {
  const { state } = useHeap();
  const rows = useMemo(() => pathRows(paths, state.search), [paths, state.search]);
  const all = useMemo(() => of ?? paths.reduce((sum, { retained }) => sum + retained, 0), [paths, of]);
  const path = paths[chosen - 1];
  const columns: Column<HeapPath>[] = [
    {
      key: "retained",
      title: "retained",
      help: "what would go with them",
      numeric: true,
      value: ({ retained }) => retained,
      cell: ({ retained }) => <Bar share={retained / all}>{formatSize(retained)}</Bar>,
    },
  ];
  if (paths.some(({ bytes }) => bytes !== null))
    columns.push(number("bytes", "of the instances", ({ bytes }) => bytes ?? 0, formatSize));
  columns.push(number("objects", "how many there are", ({ objects }) => objects));
  return (
    <>
      <Table<HeapPath>
        caption={caption}
        columns={columns}
        rows={rows}
        sort={sort}
        onSort={onSort}
        name={pathTitle}
        nameTitle="path"
        onOpen={(row) => onChoose(row === path ? 0 : paths.indexOf(row) + 1)}
        isCurrent={(row) => row === path}
        empty={state.search === "" ? "Nothing holds an instance." : "Nothing matches."}
      />
      <Largest count={paths.length} words={caption.toLowerCase()} />
      {path && (
        <section class="detail" aria-label="The path" tabIndex={0}>
          <Steps holder={path.holder} steps={path.steps} within={path.within} />
        </section>
      )}
    </>
  );
}
