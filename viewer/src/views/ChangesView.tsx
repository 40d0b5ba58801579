import { usePage } from "../app/context.ts";
import { type Change, changes, NORMALISATIONS, type Normalisation } from "../model/changes.ts";
import type { Grouping } from "../model/groups.ts";
import { formatDelta, formatRelative, formatValue, isTime } from "../model/units.ts";
import { type Column, Table } from "../ui/Table.tsx";

const GROUPINGS: [Grouping, string][] = [
  ["method", "method"],
  ["line", "line"],
  ["file", "file"],
  ["library", "gem or library"],
];

/** What got slower and what got faster, in two lists. */
export function ChangesView() {
  const { state, store, session, view } = usePage();
  const { base, target, query, file } = view;
  if (!base || query.base === null) return <ChooseBase />;
  const type = file.valueTypes[query.type];
  const grouping = GROUPINGS.find(([key]) => key === state.group)?.[0] ?? "method";
  const found = session.kept(`changes ${grouping}`, () => changes(view, grouping));
  const scale = session.scale(state, query.target, query.base, query.type);
  const delta = target.sum - base.sum;
  const time = isTime(type);
  return (
    <div class="view">
      <p class="verdict">
        <strong>
          {formatValue(base.sum, type)} before, {formatValue(target.sum, type)} after: {formatDelta(delta, type)} (
          {formatRelative(base.sum, target.sum)}).
        </strong>{" "}
        <span class="muted">
          {base.rows.meta.title} was before, {target.rows.meta.title} is after.
          {query.baseScale !== 1 && ` Values of before are multiplied by ${query.baseScale.toPrecision(4)}.`}
          {scale === null && " What this way of comparing takes is not known; nothing is multiplied."}
        </span>
      </p>
      <div class="tools">
        <label>
          Compare{" "}
          <select value={state.normalise} onChange={(event) => store.set({ normalise: event.currentTarget.value })}>
            {NORMALISATIONS.map((how) => (
              <option key={how} value={how}>
                {normalisationWords(how, file.diff?.normalised ?? null)}
              </option>
            ))}
          </select>
        </label>
        <label>
          By{" "}
          <select value={grouping} onChange={(event) => store.set({ group: event.currentTarget.value })}>
            {GROUPINGS.map(([key, words]) => (
              <option key={key} value={key}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          onClick={() => store.set({ view: "flame", colouring: "change", width: "both", sandwich: false })}
        >
          As a flame graph
        </button>
        <span class="muted">By each one's own time. Grey rows may be chance.</span>
      </div>
      <div class="columns">
        <Changes title={time ? "Slower" : "More"} rows={found.slower} grouping={grouping} empty="Nothing went up." />
        <Changes title={time ? "Faster" : "Less"} rows={found.faster} grouping={grouping} empty="Nothing went down." />
      </div>
    </div>
  );
}

function normalisationWords(how: Normalisation, given: string | null): string {
  switch (how) {
    case "file":
      return given && given !== "none" ? `as the report was made (by ${given})` : "as measured";
    case "none":
      return "absolute values";
    case "total":
      return "shares of the total";
    case "duration":
      return "by the length of the recording";
  }
}

function Changes({
  title,
  rows,
  grouping,
  empty,
}: {
  title: string;
  rows: Change[];
  grouping: Grouping;
  empty: string;
}) {
  const page = usePage();
  const { view, store, session, state } = page;
  const type = view.file.valueTypes[view.query.type];
  const dim = (row: Change, text: string) => <span class={row.noise ? "noise" : ""}>{text}</span>;
  const columns: Column<Change>[] = [
    { key: "delta", title: "change", numeric: true, cell: (row) => dim(row, formatDelta(row.delta, type)) },
    { key: "relative", title: "%", numeric: true, cell: (row) => dim(row, formatRelative(row.before, row.after)) },
    { key: "before", title: "before", numeric: true, cell: (row) => dim(row, formatValue(row.before, type)) },
    { key: "after", title: "after", numeric: true, cell: (row) => dim(row, formatValue(row.after, type)) },
  ];
  const certain = rows.filter(({ noise }) => !noise).length;
  return (
    <section class="pane">
      <h2>
        {title}: {certain}
        {rows.length > certain && <span class="muted"> and {rows.length - certain} that may be chance</span>}
      </h2>
      <Table
        caption={title}
        columns={columns}
        rows={rows}
        sort=""
        onSort={() => undefined}
        name={(row) => row.name}
        nameTitle="name"
        note={(row) => (row.noise ? `may be chance  ${row.place}` : row.place)}
        onOpen={
          grouping === "method"
            ? (row) => store.set({ view: "callers", method: session.methodName(state, row.frame) })
            : undefined
        }
        onMenu={grouping === "method" ? (row, x, y) => page.openMenu({ frame: row.frame, x, y }) : undefined}
        empty={empty}
      />
    </section>
  );
}

function ChooseBase() {
  const { session, view, store } = usePage();
  const others = session.file.profiles.map(({ meta }, i) => ({ meta, i })).filter(({ i }) => i !== view.query.target);
  return (
    <div class="view picker">
      <h2>Compare with which profile?</h2>
      {others.length === 0 && (
        <p class="muted">
          There is one profile here only. <code>rperf diff BEFORE AFTER</code> makes a page with two.
        </p>
      )}
      <ul>
        {others.map(({ meta, i }) => (
          <li key={i}>
            <button type="button" class="link" onClick={() => store.set({ base: i })}>
              {meta.title}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
