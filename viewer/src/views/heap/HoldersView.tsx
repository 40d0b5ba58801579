import { useEffect, useMemo } from "preact/hooks";
import { partsOfHolders, pathRows } from "../../model/heap.ts";
import { counted, formatCount, formatShare, formatSize } from "../../model/units.ts";
import { Bar } from "../../ui/Table.tsx";
import { TreeGrid } from "../../ui/TreeGrid.tsx";
import { useHeap, useShowInMap } from "./context.ts";
import { Paths } from "./PathsView.tsx";

/** What the names of a program hold, as a tree. */
export function HoldersView() {
  const { heap, tree, found, state, store, arrives } = useHeap();
  const show = useShowInMap();
  const start = useMemo(() => {
    const asked = tree.valid(state.row);
    const row = !found || found.keeps(asked) ? asked : 0;
    const above = row > 0 ? tree.path(tree.parent[row]) : [];
    if (found) return { open: [...found.above, ...above], row, takesFocus: false };
    return row > 0 ? { open: above, row, takesFocus: arrives.current } : undefined;
  }, [tree, found, state.row]);
  useEffect(() => {
    arrives.current = false;
  }, []);
  // Files of older versions have no tree, but a path of each holder.
  const hasTree = heap.tree.length > 0;
  const holders = useMemo(() => (hasTree ? partsOfHolders(heap) : heap.holders), [heap]);
  const table = (
    <Paths
      paths={holders}
      caption={hasTree ? "Parts of other holders" : "Holders"}
      of={hasTree ? tree.all : undefined}
      chosen={state.holder}
      onChoose={(holder) => store.set({ holder })}
      sort={state.holderSort}
      onSort={(holderSort) => store.set({ holderSort }, true)}
    />
  );
  if (!hasTree) return <div class="view">{table}</div>;
  const parts = pathRows(holders, state.search).length > 0 && (
    <section class="detail" aria-label="Parts of other holders">
      <p class="muted">
        Parts of other holders, which have names of their own. Their bytes count in those holders, too.
      </p>
      {table}
    </section>
  );
  if (found?.found.size === 0) {
    return parts ? <div class="view">{parts}</div> : <p class="empty">Nothing matches.</p>;
  }
  return (
    <div class="view">
      <p class="muted">
        Below a holder are the objects that it alone holds, by class and variable or field. Arrow keys open and close
        rows; * opens the path where most of it goes; Enter, and a click on a name, show a row in the map.
      </p>
      <TreeGrid
        key={found ? "" : state.row}
        label="Holders"
        tree={found ?? tree}
        data={tree}
        same={() => () => -1}
        start={start}
        columns={[
          {
            title: "retained",
            cell: (row) => <Bar share={tree.weight(row) / tree.all}>{formatSize(tree.weight(row))}</Bar>,
          },
          { title: "%", cell: (row) => formatShare(tree.weight(row), tree.all) },
          { title: "objects", cell: (row) => formatCount(tree.row(row).retainedObjects) },
          { title: "own bytes", cell: (row) => (tree.row(row).bytes === 0 ? "" : formatSize(tree.row(row).bytes)) },
          {
            title: "own objects",
            cell: (row) => (tree.row(row).objects === 0 ? "" : formatCount(tree.row(row).objects)),
          },
        ]}
        nameTitle="holder, and what it holds"
        name={(row) => (
          <>
            {/* No <button>: of one that is too long nothing but dots would be seen. */}
            <span
              role="button"
              class="link"
              tabIndex={-1}
              title={`${counted(tree.row(row).retainedObjects, "object")}: show in the map`}
              onClick={(event) => {
                event.stopPropagation();
                show(row);
              }}
            >
              {tree.title(row)}
            </span>
            {tree.classNote(row) !== "" && <span class="muted note">{tree.classNote(row)}</span>}
          </>
        )}
        onOpen={show}
        isFound={found ? (row) => found.found.has(row) : undefined}
      />
      {parts}
    </div>
  );
}
