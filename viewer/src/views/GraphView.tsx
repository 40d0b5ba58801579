import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { usePage } from "../app/context.ts";
import type { Session } from "../app/session.ts";
import { css, heatColour, TEXT } from "../flame/colours.ts";
import { type CallGraph, callGraph, type GraphNode } from "../model/call_graph.ts";
import { type Layout, layout } from "../model/graph_layout.ts";
import type { Grouping } from "../model/groups.ts";
import { formatShare, formatValue } from "../model/units.ts";

const COUNTS = ["10", "20", "40", "80", "160"];
const GROUPINGS: [Grouping, string][] = [
  ["method", "method"],
  ["file", "file"],
  ["library", "gem or library"],
];
/** Characters of a line of a name, and lines. */
const LINE = 30;
const LINES = 3;
/** Arrows with less of all have no text. */
const LEAST_TEXT = 0.02;

/** Each method once, with an arrow from each of its callers. */
export function GraphView() {
  const { state, store, session, view } = usePage();
  const grouping = GROUPINGS.find(([key]) => key === state.graphBy)?.[0] ?? "method";
  const count = COUNTS.includes(state.graphCount) ? state.graphCount : "80";
  const graph = session.kept(`graph ${grouping} ${count}`, () => callGraph(view, grouping, Number(count)));
  const picture = session.kept(`layout ${grouping} ${count}`, () => draw(graph, view.target.all));
  const [zoom, setZoom] = useState(0);
  const { nodes, cut } = graph;
  const all = nodes.length + cut.small + cut.further;
  return (
    <div class="view">
      <div class="tools">
        <label>
          Boxes are{" "}
          <select value={grouping} onChange={(event) => store.set({ graphBy: event.currentTarget.value })}>
            {GROUPINGS.map(([key, words]) => (
              <option key={key} value={key}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label>
          At most{" "}
          <select value={count} onChange={(event) => store.set({ graphCount: event.currentTarget.value })}>
            {COUNTS.map((count) => (
              <option key={count}>{count}</option>
            ))}
          </select>
        </label>
        <button type="button" aria-label="Smaller" onClick={() => setZoom(Math.max(-6, zoom - 1))}>
          −
        </button>
        <button type="button" aria-label="Larger" onClick={() => setZoom(Math.min(8, zoom + 1))}>
          +
        </button>
        <span class="muted">
          {nodes.length} of {all}
          {all > nodes.length && `; left out: ${cut.small} too small, ${cut.further} too many`}. Colour and size: self.
          Border: total. Dotted: by way of what is left out. Calls are not counted. Arrow keys, Enter and M work.
        </span>
      </div>
      <Graph key={`${grouping} ${count}`} graph={graph} picture={picture} zoom={zoom} />
    </div>
  );
}

interface Box {
  name: string[];
  /** Of its text, in pixels. */
  size: number;
}

interface Picture extends Layout {
  boxes: Box[];
}

/** Where all is, which follows from the texts. */
function draw(graph: CallGraph, whole: number): Picture {
  const pen = document.createElement("canvas").getContext("2d");
  const boxes = graph.nodes.map(({ name, self }): Box => ({ name: broken(name), size: 11 + 12 * root(self, whole) }));
  const sizes = boxes.map(({ name, size }) => {
    if (pen) pen.font = `${size}px sans-serif`;
    const widths = [...name, "total 000.0 ms (00.0 %)"].map((line) => pen?.measureText(line).width ?? 0);
    return { width: Math.ceil(Math.max(...widths)) + 18, height: (name.length + 2) * size * 1.25 + 12 };
  });
  const arrows = graph.edges.map(({ caller, callee, value }) => ({
    from: caller,
    to: callee,
    weight: 0.02 + root(value, whole),
  }));
  return { ...layout(sizes, arrows), boxes };
}

function root(value: number, whole: number): number {
  return whole === 0 ? 0 : Math.sqrt(Math.min(1, Math.abs(value / whole)));
}

/** A name in lines, broken where its parts are. */
function broken(name: string): string[] {
  const lines = [""];
  for (const part of name.slice(0, 200).split(/(?<=::|\/| in )|(?=#)/)) {
    const last = lines[lines.length - 1];
    if (last !== "" && last.length + part.length > LINE) lines.push(part);
    else lines[lines.length - 1] = last + part;
  }
  const shown = lines.length > LINES ? [...lines.slice(0, LINES - 1), `…${lines[lines.length - 1]}`] : lines;
  return shown.map((line) => (line.length > LINE + 10 ? `${line.slice(0, LINE + 9)}…` : line));
}

function Graph({ graph, picture, zoom }: { graph: CallGraph; picture: Picture; zoom: number }) {
  const page = usePage();
  const { view, dark, store, session, state, found } = page;
  const { nodes, edges } = graph;
  const area = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(-1);
  const [width, setWidth] = useState(0);
  const type = view.file.valueTypes[view.query.type];
  const whole = view.target.all;
  const amount = (value: number) => `${formatValue(value, type)} (${formatShare(value, whole)})`;
  const about = ({ name, place, self, total }: GraphNode) =>
    [name, `self ${amount(self)}`, `total ${amount(total)}`, ...(place ? [place] : [])].join(", ");

  const fitted = Math.min(1, Math.max(0.6, width / Math.max(1, picture.width)));
  const scale = fitted * 1.25 ** zoom;

  useLayoutEffect(() => setWidth(area.current?.clientWidth ?? 0), []);
  const last = useRef<Session | null>(null);
  useLayoutEffect(() => {
    // The largest is in the middle at first; newer data leave all where it was.
    const box = area.current;
    const renewed = width > 0 && last.current !== null && last.current !== session;
    if (width > 0) last.current = session;
    if (box && picture.x.length > 0 && !renewed) box.scrollLeft = picture.x[0] * scale - width / 2;
  }, [picture, width]);
  const boxOf = (node: number) => area.current?.querySelectorAll(".box")[node];
  const pick = (node: number | undefined) => {
    if (node === undefined) return;
    boxOf(node)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    setAt(node);
  };
  const byMethod = state.graphBy === "method";
  const openCallers = (node: number) =>
    byMethod && store.set({ view: "callers", method: session.methodName(state, nodes[node].frame) });
  const openMenu = (node: number, x: number, y: number) =>
    byMethod && page.openMenu({ frame: nodes[node].frame, x, y });
  const onKeyDown = (event: KeyboardEvent) => {
    const node = at;
    if (event.ctrlKey || event.metaKey || event.altKey || nodes.length === 0) return;
    if (node < 0) {
      if (event.key.startsWith("Arrow")) pick(0);
      return;
    }
    const row = picture.rows[picture.row[node]];
    const beside = (step: number) => row[row.indexOf(node) + step];
    const actions: Record<string, () => void> = {
      ArrowDown: () => pick(edges.find(({ caller, callee }) => caller === node && callee !== node)?.callee),
      ArrowUp: () => pick(edges.find(({ caller, callee }) => callee === node && caller !== node)?.caller),
      ArrowLeft: () => pick(beside(-1)),
      ArrowRight: () => pick(beside(1)),
      Home: () => pick(0),
      Enter: () => openCallers(node),
      Escape: () => setAt(-1),
      ...(page.settings.letterKeys && {
        m: () => {
          const bounds = boxOf(node)?.getBoundingClientRect();
          if (bounds) openMenu(node, bounds.left, bounds.bottom);
        },
      }),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  const text = css(TEXT[dark ? "dark" : "light"]);
  const paths = useMemo(() => edges.map((_, i) => curve(picture, edges[i].caller, i)), [edges, picture]);
  return (
    <div
      ref={area}
      id="graph"
      class="graph"
      role="application"
      aria-roledescription="call graph"
      aria-label="Call graph"
      aria-describedby="graph-help"
      aria-activedescendant={at >= 0 ? "graph-cursor" : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocus={() => at < 0 && nodes.length > 0 && setAt(0)}
    >
      <svg
        width={picture.width * scale}
        height={picture.height * scale}
        viewBox={`0 0 ${picture.width} ${picture.height}`}
        aria-hidden="true"
      >
        <defs>
          <marker
            id="head"
            viewBox="0 0 10 10"
            refX="9"
            refY="5"
            markerWidth="9"
            markerHeight="9"
            orient="auto"
            markerUnits="userSpaceOnUse"
          >
            <path d="M0 0L10 5L0 10z" />
          </marker>
        </defs>
        <g>
          {edges.map(({ caller, callee, value, residual }, i) => {
            const near = at < 0 || caller === at || callee === at;
            const [x, y] = paths[i].middle;
            return (
              <g key={`${caller} ${callee}`} class={near ? "arrow" : "arrow far"}>
                <path
                  d={paths[i].line}
                  stroke-width={1 + 6 * root(value, whole)}
                  stroke-dasharray={residual ? "2 5" : undefined}
                  marker-end="url(#head)"
                />
                {(at < 0 ? Math.abs(value) >= LEAST_TEXT * Math.abs(whole) : near) && (
                  <text x={x + 5 + 3 * root(value, whole)} y={y}>
                    {formatValue(value, type)}
                  </text>
                )}
              </g>
            );
          })}
        </g>
        {nodes.map((node, i) => {
          const { name, size } = picture.boxes[i];
          const { width, height } = picture.sizes[i];
          const left = picture.x[i] - width / 2;
          const top = picture.y[i] - height / 2;
          const lines = [...name, `self ${amount(node.self)}`, `total ${amount(node.total)}`];
          return (
            <g
              key={i}
              class={`box${found?.frames[node.frame] === 1 && byMethod ? " found" : ""}${i === at ? " at" : ""}`}
              onClick={() => pick(i)}
              onDblClick={() => openCallers(i)}
              onContextMenu={(event) => {
                event.preventDefault();
                setAt(i);
                openMenu(i, event.clientX, event.clientY);
              }}
            >
              <title>{about(node)}</title>
              <rect
                x={left}
                y={top}
                width={width}
                height={height}
                rx="4"
                fill={css(heatColour(root(node.self, whole), dark))}
                stroke-width={1 + 4 * Math.min(1, Math.abs(node.total / whole))}
              />
              <text x={picture.x[i]} y={top + 6} font-size={size} fill={text}>
                {lines.map((line, i) => (
                  <tspan key={i} x={left + width / 2} dy={`${i === 0 ? 1 : 1.25}em`}>
                    {line}
                  </tspan>
                ))}
              </text>
            </g>
          );
        })}
      </svg>
      <div id="graph-cursor" class="hidden-text" role="img" aria-label={at >= 0 ? about(nodes[at]) : "nothing"} />
      <p id="graph-help" class="hidden-text">
        Up goes to the caller and down to the callee with most, left and right go along the row. Enter shows callers and
        callees, M opens a menu. The view of callers and callees has the same as tables.
      </p>
      {nodes.length === 0 && <p class="muted">There is nothing to draw.</p>}
    </div>
  );
}

/** An arrow as a curve that leaves and enters rows upright, and where its text stands. */
function curve(picture: Picture, caller: number, edge: number): { line: string; middle: [number, number] } {
  const points = picture.points[edge];
  if (points.length === 0) {
    const { width, height } = picture.sizes[caller];
    const x = picture.x[caller] + width / 2;
    const y = picture.y[caller];
    const line = `M${x} ${y - height / 4}C${x + 34} ${y - height / 2} ${x + 34} ${y + height / 2} ${x} ${y + height / 4}`;
    return { line, middle: [x + 24, y] };
  }
  let line = `M${points[0].join(" ")}`;
  for (let i = 1; i < points.length; i++) {
    const [x, y] = points[i - 1];
    const [toX, toY] = points[i];
    const half = (toY - y) / 2;
    line += `C${x} ${y + half} ${toX} ${toY - half} ${toX} ${toY}`;
  }
  const space = 2 * Math.floor(points.length / 4);
  const [a, b] = [points[space], points[space + 1]];
  return { line, middle: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2] };
}
