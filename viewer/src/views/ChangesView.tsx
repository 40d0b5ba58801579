import { usePage } from "../app/context.ts";
import type { TotalChange, Verdict } from "../format/header.ts";
import { type Change, changes, givenChanges, NORMALISATIONS, type Normalisation } from "../model/changes.ts";
import type { Grouping } from "../model/groups.ts";
import { formatDelta, formatRelative, formatValue, isTime } from "../model/units.ts";
import { type Column, Table } from "../ui/Table.tsx";

const GROUPINGS: [Grouping, string][] = [
  ["method", "method"],
  ["line", "line"],
  ["file", "file"],
  ["library", "gem or library"],
];

const NOTES: Record<Verdict, string> = {
  more: "",
  less: "",
  noise: "noise",
  unknown: "unknown",
};

/** What got slower and what got faster, in two lists. */
export function ChangesView() {
  const { state, store, session, view } = usePage();
  const { base, target, query, file } = view;
  if (!base || query.base === null) return <ChooseBase />;
  const type = file.valueTypes[query.type];
  const grouping = GROUPINGS.find(([key]) => key === state.group)?.[0] ?? "method";
  const given = grouping === "method" ? session.given(state) : null;
  const found = session.kept(`changes ${grouping} ${given !== null}`, () =>
    given ? givenChanges(view, given.methods) : changes(view, grouping),
  );
  const scale = session.scale(state, query.target, query.base, query.type);
  const { before, after } = given?.total ?? { before: base.sum, after: target.sum };
  const time = isTime(type);
  return (
    <div class="view">
      <p class="verdict">
        <strong>
          base {formatValue(before, type)}, target {formatValue(after, type)}: {formatDelta(after - before, type)} (
          {formatRelative(before, after)})
          {given && given.total.verdict !== "unknown" && `, ${totalWords(given.total, time)}`}.
        </strong>{" "}
        <span class="muted">
          The base is {base.rows.meta.title}, the target {target.rows.meta.title}.{given && runsWords(given.total)}
          {query.baseScale !== 1 &&
            ` ${given ? "In the flame graph, values" : "Values"} of the base are multiplied by ${query.baseScale.toPrecision(4)}.`}
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
        <span class="muted">{rule(given !== null, file.diff?.by === "total")}</span>
      </div>
      <div class="columns">
        <Changes title={time ? "Slower" : "More"} rows={found.slower} grouping={grouping} empty="Nothing went up." />
        <Changes title={time ? "Faster" : "Less"} rows={found.faster} grouping={grouping} empty="Nothing went down." />
      </div>
    </div>
  );
}

function totalWords({ before, after, verdict }: TotalChange, time: boolean): string {
  switch (verdict) {
    case "more":
      return time ? "slower" : "more";
    case "less":
      return time ? "faster" : "less";
    default:
      return before === after ? "no change" : "noise";
  }
}

/** What the values here are if there were several runs. */
function runsWords({ runs: [before, after] }: TotalChange): string {
  if (before === 1 && after === 1) return "";
  const words = before === after ? `${before} runs each` : `${before} runs of the base and ${after} of the target`;
  return ` Values here are means of ${words}; the flame graph has their sums.`;
}

/** What is compared, and how noise is told. */
function rule(isGiven: boolean, isTotal: boolean): string {
  if (!isGiven) return "By each one's own time. Grey rows are noise, as far as the samples tell.";
  const what = isTotal ? "By the time of each with what it calls." : "By each one's own time.";
  return `${what} Grey rows are noise, by the rule of rperf diff --top.`;
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
  const dim = (row: Change, text: string) => <span class={row.verdict === "noise" ? "noise" : ""}>{text}</span>;
  const opens = (row: Change) => grouping === "method" && row.frame >= 0;
  const columns: Column<Change>[] = [
    { key: "delta", title: "change", numeric: true, cell: (row) => dim(row, formatDelta(row.delta, type)) },
    { key: "relative", title: "%", numeric: true, cell: (row) => dim(row, formatRelative(row.before, row.after)) },
    { key: "before", title: "base", numeric: true, cell: (row) => dim(row, formatValue(row.before, type)) },
    { key: "after", title: "target", numeric: true, cell: (row) => dim(row, formatValue(row.after, type)) },
  ];
  if (rows.some((row) => NOTES[row.verdict] !== "")) {
    columns.push({ key: "verdict", title: "noise?", cell: (row) => dim(row, NOTES[row.verdict]) });
  }
  const count = (...verdicts: Change["verdict"][]) => rows.filter((row) => verdicts.includes(row.verdict)).length;
  const [noise, unknown] = [count("noise"), count("unknown")];
  return (
    <section class="pane">
      <h2>
        {title}: {grouped(count("more", "less"))}
        {noise > 0 && <span class="muted"> and {grouped(noise)} within the noise</span>}
        {unknown > 0 && <span class="muted"> and {grouped(unknown)} not known to be noise or not</span>}
      </h2>
      <Table
        caption={title}
        columns={columns}
        rows={rows}
        sort=""
        onSort={() => undefined}
        name={(row) => row.name}
        nameTitle="name"
        note={(row) => row.place}
        onOpen={
          grouping === "method"
            ? (row) => opens(row) && store.set({ view: "callers", method: session.methodName(state, row.frame) })
            : undefined
        }
        onMenu={
          grouping === "method" ? (row, x, y) => opens(row) && page.openMenu({ frame: row.frame, x, y }) : undefined
        }
        empty={empty}
      />
    </section>
  );
}

function grouped(number: number): string {
  return number.toLocaleString("en-US");
}

function ChooseBase() {
  const { session, view, store } = usePage();
  const others = session.file.profiles.map(({ meta }, i) => ({ meta, i })).filter(({ i }) => i !== view.query.target);
  return (
    <div class="view picker">
      <h2>Compare with which profile?</h2>
      {others.length === 0 && (
        <p class="muted">
          There is one profile here only. <code>rperf diff BASE TARGET</code> makes a page with two.
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
