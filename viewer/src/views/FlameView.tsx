import { useMemo } from "preact/hooks";
import { usePage } from "../app/context.ts";
import { COLOURINGS, type Colouring, WIDTHS, type Width } from "../app/state.ts";
import { FlameGraph } from "../flame/FlameGraph.tsx";
import type { BoxTree } from "../model/box_tree.ts";
import { markedBox, marks } from "../model/frame_mark.ts";
import { formatShare, formatValue } from "../model/units.ts";
import { Crumbs } from "../ui/Crumbs.tsx";
import { Legend } from "./Legend.tsx";

const COLOURING_WORDS: Record<Colouring, string> = {
  category: "whose code it is",
  cpu: "share of CPU in wall time",
  change: "change",
};
const WIDTH_WORDS: Record<Width, string> = { after: "after", before: "before", both: "before and after" };

/** The flame graph, upright or inverted, or a method's callers and callees as two of them. */
export function FlameView() {
  const { state, store, session, view } = usePage();
  const method = session.method(state);
  const sandwich = state.sandwich && method >= 0;
  const hasCpu = ["wall", "cpu"].every((name) => session.measured(state, name) >= 0);
  const colourings = COLOURINGS.filter((kind) =>
    kind === "cpu" ? hasCpu : kind === "change" ? view.base !== null : true,
  );
  return (
    <div class="view">
      <div class="tools">
        <button
          type="button"
          aria-pressed={state.inverted}
          disabled={sandwich}
          title="Begins with the methods that run, with their callers below (I)"
          onClick={() => store.set({ inverted: !state.inverted, zoom: [] })}
        >
          Inverted
        </button>
        <button
          type="button"
          aria-pressed={state.flipped}
          disabled={sandwich}
          title="Grows upwards (F)"
          onClick={() => store.set({ flipped: !state.flipped })}
        >
          Upwards
        </button>
        <button
          type="button"
          aria-pressed={sandwich}
          disabled={method < 0}
          title="One method, with its callers above and what it calls below: double-click a method, or press P on it (S)"
          onClick={() => store.set({ sandwich: !state.sandwich })}
        >
          Sandwich
        </button>
        <label>
          Colour{" "}
          <select
            value={colourings.includes(state.colouring) ? state.colouring : "category"}
            onChange={(event) => store.set({ colouring: event.currentTarget.value as Colouring }, true)}
          >
            {colourings.map((kind) => (
              <option key={kind} value={kind}>
                {COLOURING_WORDS[kind]}
              </option>
            ))}
          </select>
        </label>
        {view.base && (
          <label>
            Width{" "}
            <select
              value={state.width}
              onChange={(event) => store.set({ width: event.currentTarget.value as Width }, true)}
            >
              {WIDTHS.map((width) => (
                <option key={width} value={width}>
                  {WIDTH_WORDS[width]}
                </option>
              ))}
            </select>
          </label>
        )}
        <Legend />
      </div>
      {sandwich ? <Sandwich frame={method} /> : <Whole />}
    </div>
  );
}

function Whole() {
  const { state, store, session } = usePage();
  const tree = session.tree(state, state.inverted ? "up" : "down");
  const zoom = useMemo(() => markedBox(tree, state.zoom), [tree, state.zoom]);
  const onZoom = (box: number) => {
    if (box !== zoom) store.set({ zoom: marks(tree, box) });
  };
  return (
    <>
      <Breadcrumb tree={tree} zoom={zoom} onZoom={onZoom} />
      <FlameGraph
        id="flame"
        tree={tree}
        zoom={zoom}
        onZoom={onZoom}
        flipped={state.flipped}
        label={state.inverted ? "Flame graph, inverted" : "Flame graph"}
      />
    </>
  );
}

function Breadcrumb({ tree, zoom, onZoom }: { tree: BoxTree; zoom: number; onZoom(box: number): void }) {
  const { frames } = tree.view.tree;
  const type = tree.view.file.valueTypes[tree.view.query.type];
  return (
    <Crumbs
      path={tree.path(zoom)}
      onZoom={onZoom}
      name={(box) => frames.name[tree.frame[box]]}
      weight={(box) => tree.total[box]}
      all={tree.view.target.sum}
      words={(total) => formatValue(total, type)}
    />
  );
}

function Sandwich({ frame }: { frame: number }) {
  const { state, store, session, view } = usePage();
  const callers = session.tree(state, "callers");
  const callees = session.tree(state, "callees");
  const name = view.tree.frames.name[frame];
  const type = view.file.valueTypes[view.query.type];
  // A click makes another method the middle one.
  const pick = (tree: BoxTree) => (box: number) => {
    if (box !== 0 && tree.frame[box] !== frame) store.set({ method: session.methodName(state, tree.frame[box]) });
  };
  return (
    <>
      <p class="crumbs">
        <strong>{name}</strong>
        <span class="muted">
          {" "}
          {formatValue(callees.total[0], type)}, {formatShare(callees.total[0], view.target.sum)} of all. Callers grow
          upwards, what it calls downwards. A click on a method puts it in the middle.
        </span>
      </p>
      <FlameGraph
        id="flame-callers"
        tree={callers}
        zoom={0}
        onZoom={pick(callers)}
        flipped
        label={`Callers of ${name}`}
      />
      <FlameGraph
        id="flame-callees"
        tree={callees}
        zoom={0}
        onZoom={pick(callees)}
        flipped={false}
        label={`Callees of ${name}`}
      />
    </>
  );
}
