import { usePage } from "../app/context.ts";
import { type Grouping, type Groups, groupView, labelNames } from "../model/groups.ts";
import { formatDelta, formatRelative, formatShare, formatValue } from "../model/units.ts";
import { Bar, type Column, Table } from "../ui/Table.tsx";

const GROUPINGS: [Grouping, string][] = [
  ["method", "method"],
  ["line", "line"],
  ["file", "file"],
  ["library", "gem or library"],
  ["category", "whose code"],
  ["thread", "thread"],
  ["state", "state"],
];

/** All methods, files, gems or the like, with their own time and that of all they call. */
export function TopView() {
  const page = usePage();
  const { state, store, session, view, found } = page;
  const labels = labelNames(view).map((key): [Grouping, string] => [`label:${key}`, `label ${key}`]);
  const groupings = [...GROUPINGS, ...labels];
  const grouping = groupings.find(([key]) => key === state.group)?.[0] ?? "method";
  const groups = session.kept(`groups ${grouping}`, () => groupView(view, grouping));
  const byMethod = grouping === "method" || grouping === "line";
  const rows = session.kept(`rows ${grouping} ${found ? state.search : ""} ${state.regexp}`, () =>
    rowsOf(groups, byMethod && found ? found.frames : null),
  );
  return (
    <div class="view">
      <div class="tools">
        <label>
          Group by{" "}
          <select value={grouping} onChange={(event) => store.set({ group: event.currentTarget.value, sort: "" })}>
            {groupings.map(([key, words]) => (
              <option key={key} value={key}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <span class="muted">
          {rows.length.toLocaleString("en-US")} rows. <em>Self</em> is what it took itself, <em>total</em> with all that
          it called.
        </span>
      </div>
      <Table
        caption="Where the values are"
        columns={columnsOf(view, groups)}
        rows={rows}
        sort={state.sort || (groups.nested ? "-self" : "-total")}
        onSort={(sort) => store.set({ sort }, true)}
        name={(row) => groups.name[row]}
        nameTitle={groupings.find(([key]) => key === grouping)?.[1] ?? "name"}
        note={(row) => groups.place[row]}
        onOpen={openers(page, groups, grouping)}
        onMenu={byMethod ? (row, x, y) => page.openMenu({ frame: groups.frame[row], x, y }) : undefined}
        empty={found ? "Nothing that the search finds is here." : "There is nothing to show."}
      />
    </div>
  );
}

function rowsOf(groups: Groups, frames: Uint8Array | null): number[] {
  const rows: number[] = [];
  for (let row = 0; row < groups.name.length; row++) {
    const isEmpty = groups.total[row] === 0 && groups.self[row] === 0 && groups.baseTotal[row] === 0;
    if (!isEmpty && (!frames || frames[groups.frame[row]])) rows.push(row);
  }
  return rows;
}

function columnsOf(view: ReturnType<typeof usePage>["view"], groups: Groups): Column<number>[] {
  const type = view.file.valueTypes[view.query.type];
  const { sum } = view.target;
  const measure = (key: string, title: string, help: string, values: Float64Array): Column<number>[] => [
    {
      key,
      title,
      help,
      numeric: true,
      value: (row) => values[row],
      cell: (row) => <Bar share={values[row] / sum}>{formatValue(values[row], type)}</Bar>,
    },
    { key: `${key}-share`, title: "%", numeric: true, cell: (row) => formatShare(values[row], sum) },
  ];
  const change = (key: string, title: string, before: Float64Array, after: Float64Array): Column<number> => ({
    key,
    title,
    help: "target minus base",
    numeric: true,
    value: (row) => after[row] - before[row],
    cell: (row) => `${formatDelta(after[row] - before[row], type)} (${formatRelative(before[row], after[row])})`,
  });
  const columns: Column<number>[] = [];
  if (groups.nested) {
    columns.push(...measure("self", "self", "without what it called", groups.self));
    if (view.base) columns.push(change("self-change", "self: change", groups.baseSelf, groups.self));
  }
  columns.push(...measure("total", "total", "with all that it called", groups.total));
  if (view.base) columns.push(change("total-change", "total: change", groups.baseTotal, groups.total));
  return columns;
}

/** What a click on a row does. */
function openers(
  page: ReturnType<typeof usePage>,
  groups: Groups,
  grouping: Grouping,
): ((row: number) => void) | undefined {
  const { store, session, state } = page;
  switch (grouping) {
    case "method":
      return (row) => store.set({ view: "callers", method: session.methodName(state, groups.frame[row]) });
    case "line":
    case "file":
      return (row) => store.set({ view: "source", method: session.methodName(state, groups.frame[row]) });
    default:
      return undefined;
  }
}
