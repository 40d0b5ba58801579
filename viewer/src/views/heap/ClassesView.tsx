import { useMemo } from "preact/hooks";
import type { Heap, HeapClass } from "../../format/heap.ts";
import { exactSearch, matcher, objectsWithoutClass } from "../../model/heap.ts";
import { counted, formatCount, formatShare, formatSize } from "../../model/units.ts";
import { Bar, number, Table } from "../../ui/Table.tsx";
import { useHeap } from "./context.ts";

/** The classes that a search finds. */
export function classRows({ classes }: Heap, search: string): HeapClass[] {
  if (search === "") return classes;
  const matches = matcher(search);
  return classes.filter(({ name }) => matches(name));
}

/** The objects of each class. A row leads to its objects in the tree of holders. */
export function ClassesView() {
  const { heap, state, store } = useHeap();
  const rows = useMemo(() => classRows(heap, state.search), [heap, state.search]);
  const inTree = useMemo(
    () => new Set(heap.tree.flatMap(({ className, isRest }) => (isRest ? [] : [className]))),
    [heap],
  );
  const left = objectsWithoutClass(heap);
  const all = heap.total.bytes;
  return (
    <div class="view">
      <Table<HeapClass>
        caption="Classes"
        columns={[
          {
            key: "bytes",
            title: "bytes",
            help: "of all objects of the class",
            numeric: true,
            value: ({ bytes }) => bytes,
            cell: ({ bytes }) => <Bar share={bytes / all}>{formatSize(bytes)}</Bar>,
          },
          { key: "%", title: "%", numeric: true, cell: ({ bytes }) => formatShare(bytes, all) },
          number("objects", "how many there are", ({ objects }) => objects),
          number("retained", "what would go with all of them", ({ retained }) => retained, formatSize),
          {
            key: "unreferenced",
            title: "unreferenced",
            help: "objects of it that nothing refers to: the next collection frees them",
            numeric: true,
            value: ({ unreferenced }) => unreferenced.bytes,
            cell: ({ unreferenced: { objects, bytes } }) =>
              objects === 0 ? "" : `${formatSize(bytes)} in ${formatCount(objects)}`,
          },
        ]}
        rows={rows}
        sort={state.classSort}
        onSort={(classSort) => store.set({ classSort }, true)}
        name={({ name }) => name || "(no name)"}
        nameTitle="class"
        onOpen={({ name }) => store.set({ view: "holders", search: exactSearch(name), row: 0 })}
        canOpen={({ name }) => inTree.has(name)}
        empty="Nothing matches."
      />
      {left > 0 && (
        <p class="muted">
          Further classes, which have fewer bytes each, have {counted(left, "object")} together: this page has the{" "}
          {formatCount(heap.classes.length)} largest ones.
        </p>
      )}
    </div>
  );
}
