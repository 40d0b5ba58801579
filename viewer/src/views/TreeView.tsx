import { usePage } from "../app/context.ts";
import type { BoxTree } from "../model/box_tree.ts";
import { place } from "../model/groups.ts";
import { sameBox } from "../model/renewal.ts";
import { formatDelta, formatShare, formatValue } from "../model/units.ts";
import { Bar } from "../ui/Table.tsx";
import { TreeGrid } from "../ui/TreeGrid.tsx";

/** The call tree as a table whose rows open: the same as the flame graph, for everybody. */
export function TreeView() {
  const { state, store, session } = usePage();
  const tree = session.tree(state, state.treeUp ? "up" : "down");
  return (
    <div class="view">
      <div class="tools">
        <label>
          Begin with{" "}
          <select
            value={state.treeUp ? "up" : "down"}
            onChange={(event) => store.set({ treeUp: event.currentTarget.value === "up" })}
          >
            <option value="down">the first caller, callees below</option>
            <option value="up">the methods that run, callers below</option>
          </select>
        </label>
        <span class="muted">Arrow keys open and close rows; * opens the path where most of it goes.</span>
      </div>
      <Tree key={state.treeUp ? "up" : "down"} tree={tree} />
    </div>
  );
}

function Tree({ tree }: { tree: BoxTree }) {
  const { view, found, store, session, state, openMenu } = usePage();
  const { frames } = view.tree;
  const type = view.file.valueTypes[view.query.type];
  const change = { title: "change", cell: (row: number) => formatDelta(tree.total[row] - tree.base[row], type) };
  return (
    <TreeGrid
      label="Call tree"
      tree={tree}
      data={session}
      same={sameBox}
      columns={[
        {
          title: "total",
          cell: (row) => <Bar share={tree.total[row] / view.target.sum}>{formatValue(tree.total[row], type)}</Bar>,
        },
        { title: "%", cell: (row) => formatShare(tree.total[row], view.target.sum) },
        { title: "self", cell: (row) => (tree.self[row] === 0 ? "" : formatValue(tree.self[row], type)) },
        ...(view.base ? [change] : []),
      ]}
      nameTitle="method"
      name={(row) => (
        <>
          {frames.name[tree.frame[row]]}
          <span class="muted note">{place(frames.file[tree.frame[row]], frames.line[tree.frame[row]])}</span>
        </>
      )}
      onOpen={(row) => store.set({ view: "callers", method: session.methodName(state, tree.frame[row]) })}
      onMenu={(row, x, y) => openMenu({ frame: tree.frame[row], x, y })}
      isFound={(row) => !!found?.frames[tree.frame[row]]}
    />
  );
}
