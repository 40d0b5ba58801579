import { usePage } from "../app/context.ts";
import type { Op } from "../format/ops.ts";
import type { Requests } from "../format/requests.ts";
import { place } from "../model/groups.ts";
import { OP_PATH, opMeans, opsByTime, ownTime } from "../model/ops.ts";
import { formatCount, formatTime } from "../model/units.ts";
import { MeansCells, PlainTable } from "./plain.tsx";

/** Rows of a table. */
const ROWS = 20;

/** What the ops of an endpoint took: queries, requests to other servers. `onOpen` shows a frame of the file. */
export function RequestOps({ requests, onOpen }: { requests: Requests; onOpen(method: number): void }) {
  const { ops, classes } = requests;
  if (ops.length === 0) return null;
  const { typical, tail } = classes;
  const isCompared = typical.count > 0 && tail.count > 0;
  const isSuspended = ops.some(({ suspended }) => suspended > 0);
  const states = ["blocked", "GVL wait", "running", "GC", ...(isSuspended ? ["suspended"] : [])];
  return (
    <>
      {isCompared && (
        <PlainTable
          caption="What its ops took per request, in the mean"
          columns={["typical", "tail", "difference", "calls", "in the tail"]}
          name="op, and the line that leads to it"
        >
          {opMeans(requests)
            .slice(0, ROWS)
            .map(({ op, calls, wall }) => (
              <tr key={op.name}>
                <MeansCells means={wall} words={formatTime} />
                <td class="number">{formatCount(calls.typical)}</td>
                <td class="number">{formatCount(calls.tail)}</td>
                <OpName op={op} onOpen={onOpen} />
              </tr>
            ))}
        </PlainTable>
      )}
      <PlainTable
        caption="Its ops: sums of all calls, without the ops inside of them (p50, p99: how long a call is blocked)"
        columns={["time", "calls", "per request", ...states, "p50", "p99", "objects"]}
        name="op, and the line that leads to it"
      >
        {opsByTime(ops)
          .slice(0, ROWS)
          .map((op) => (
            <tr key={op.name}>
              <td class="number">{formatTime(ownTime(op))}</td>
              <td class="number">{formatCount(op.calls)}</td>
              <td class="number">{op.requests > 0 ? formatCount(op.calls / op.requests) : "–"}</td>
              {[op.blocked, op.gvlWait, op.running, op.gc, ...(isSuspended ? [op.suspended] : []), op.p50, op.p99].map(
                (ns, i) => (
                  <td key={i} class="number">
                    {formatTime(ns)}
                  </td>
                ),
              )}
              <td class="number">{op.objects === null ? "–" : formatCount(op.objects)}</td>
              <OpName op={op} onOpen={onOpen} />
            </tr>
          ))}
      </PlainTable>
      {ops.length > ROWS && <p class="muted">{formatCount(ops.length - ROWS)} more ops took less.</p>}
      {ops.some(({ repeated }) => repeated > 0) && (
        <p class="muted">
          N+1: one request of ten at least calls it 5 times or more; one query for all would do, most likely. Per
          request: of those that call it.
        </p>
      )}
    </>
  );
}

/** An op, which opens the flame graph if it has samples, and the line that calls it. */
function OpName({ op, onOpen }: { op: Op; onOpen(method: number): void }) {
  const { session, view } = usePage();
  const { frames } = view.file;
  const all = session.kept("frames of ops", () => {
    const found = new Map<string, number>();
    for (let i = 0; i < frames.path.length; i++) if (frames.path[i] === OP_PATH) found.set(frames.name[i], i);
    return found;
  });
  const method = all.get(op.name);
  return (
    <th scope="row" class="name">
      {method === undefined ? (
        <span>{op.name}</span>
      ) : (
        <button type="button" class="link" title="In the flame graph of these requests" onClick={() => onOpen(method)}>
          {op.name}
        </button>
      )}
      {op.repeated > 0 && <strong class="note">N+1</strong>}
      {op.app && (
        <span class="muted note">
          {op.app.name} {place(op.app.file, op.app.line)}
        </span>
      )}
    </th>
  );
}
