import { usePage } from "../app/context.ts";
import { latencyKey } from "../format/decode.ts";
import { place } from "../model/groups.ts";
import { type Neighbour, neighbours } from "../model/neighbours.ts";
import { formatCount, formatDelta, formatShare, formatTime, formatValue } from "../model/units.ts";
import { Bar, type Column, Table } from "../ui/Table.tsx";
import { MethodPicker } from "./MethodPicker.tsx";

/** What calls one method, and what it calls, with the lines of the calls. */
export function CallersView() {
  const page = usePage();
  const { state, session, view } = page;
  const method = session.method(state);
  if (method < 0) return <MethodPicker question="Whose callers and callees do you want to see?" />;
  const { frames } = view.tree;
  const tree = session.tree(state, "callees");
  const type = view.file.valueTypes[view.query.type];
  const total = tree.total[0];
  const latency = view.target.rows.latencies.get(latencyKey(frames.name[method], frames.file[method]));
  const self = tree.children(0).length > 0 ? selfOf(page, method) : 0;
  return (
    <div class="view">
      <div class="tools">
        <strong class="subject">{frames.name[method]}</strong>
        <span class="muted" title={frames.path[method]}>
          {place(frames.file[method], frames.line[method])}
        </span>
        <span>
          {formatValue(total, type)} total ({formatShare(total, view.target.sum)}), {formatValue(self, type)} itself (
          {formatShare(self, view.target.sum)})
        </span>
        {latency && (
          <span>
            all calls ({formatCount(latency.calls)}): p50 {formatTime(latency.p50)}, p99 {formatTime(latency.p99)}, max{" "}
            {formatTime(latency.max)}
          </span>
        )}
        <button type="button" onClick={() => page.store.set({ view: "flame", sandwich: true })}>
          As flame graphs
        </button>
        <button type="button" onClick={() => page.store.set({ view: "source" })}>
          Source lines
        </button>
        <button type="button" onClick={() => page.store.set({ method: "" })}>
          Another method
        </button>
      </div>
      <div class="columns">
        <Neighbours frame={method} up whole={total} />
        <Neighbours frame={method} up={false} whole={total} />
      </div>
    </div>
  );
}

function selfOf({ session, view }: ReturnType<typeof usePage>, frame: number): number {
  return session.kept(`self ${frame}`, () => {
    let sum = 0;
    for (let node = 1; node < view.tree.size; node++)
      if (view.tree.frame[node] === frame) sum += view.target.self[node];
    return sum;
  });
}

function Neighbours({ frame, up, whole }: { frame: number; up: boolean; whole: number }) {
  const page = usePage();
  const { session, view, store, state } = page;
  const { frames } = view.tree;
  const type = view.file.valueTypes[view.query.type];
  const rows = session.kept(`neighbours ${frame} ${up}`, () => neighbours(view, frame, up));
  const columns: Column<Neighbour>[] = [
    {
      key: "total",
      title: "total",
      numeric: true,
      cell: (row) => <Bar share={row.total / whole}>{formatValue(row.total, type)}</Bar>,
    },
    { key: "share", title: "%", numeric: true, cell: (row) => formatShare(row.total, whole) },
  ];
  if (view.base) {
    columns.push({
      key: "change",
      title: "change",
      numeric: true,
      cell: (row) => formatDelta(row.total - row.base, type),
    });
  }
  return (
    <section class="pane">
      <h2>{up ? "Called by" : "Calls"}</h2>
      <Table
        caption={up ? "Callers" : "Callees"}
        columns={columns}
        rows={rows}
        sort=""
        onSort={() => undefined}
        name={(row) => (row.frame < 0 ? "(nothing: it is the first of its stack)" : frames.name[row.frame])}
        nameTitle={up ? "caller, and the lines that call" : "callee, and the lines that call it"}
        note={(row) => callLines(row, up ? (frames.file[row.frame] ?? "") : frames.file[frame])}
        onOpen={(row) => row.frame >= 0 && store.set({ method: session.methodName(state, row.frame) })}
        onMenu={(row, x, y) => row.frame >= 0 && page.openMenu({ frame: row.frame, x, y })}
        empty={up ? "Nothing calls it." : "It calls nothing."}
      />
    </section>
  );
}

const LINES = 4;

/** `app.rb:12 (80 %), 14 (20 %)` */
function callLines(row: Neighbour, file: string): string {
  const known = row.lines.filter(({ line }) => line > 0);
  if (known.length === 0) return "";
  const sum = row.lines.reduce((sum, { total }) => sum + total, 0);
  const shown = known
    .slice(0, LINES)
    .map(({ line, total }) => (row.lines.length > 1 ? `${line} (${formatShare(total, sum)})` : line));
  return `${file}:${shown.join(", ")}${known.length > LINES ? `, ${known.length - LINES} more` : ""}`;
}
