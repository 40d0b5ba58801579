import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useShell } from "../../app/context.ts";
import { classColour, css } from "../../flame/colours.ts";
import { type HeapTree, markedRows } from "../../model/heap.ts";
import { type Box, boxAt, LINE, treemap } from "../../model/treemap.ts";
import { counted, formatShare, formatSize } from "../../model/units.ts";
import { Crumbs } from "../../ui/Crumbs.tsx";
import { useSize } from "../../ui/size.ts";
import { Tip } from "../../ui/Tip.tsx";
import { useHeap, useShowInTree } from "./context.ts";

/** What a box needs for a line of words. */
const LEAST_FOR_WORDS = { width: 34, height: LINE };

/** Holders and what they hold as boxes in boxes, whose areas are the bytes that they retain. */
export function MapView() {
  const { store, state, tree, found, arrives } = useHeap();
  const showInTree = useShowInTree();
  const { dark, settings } = useShell();
  const area = useRef<HTMLDivElement>(null);
  const size = useSize(area);
  const [cursor, setCursor] = useState(() => tree.valid(state.row));
  const [hover, setHover] = useState<{ row: number; x: number; y: number } | null>(null);
  const [focused, setFocused] = useState(false);
  const asked = tree.valid(state.zoom);
  const zoom = tree.children(asked).length > 0 ? asked : tree.parent[asked];

  const boxes = useMemo(
    () => treemap(tree, zoom, { x: 0, y: 0, width: size.width, height: size.height }),
    [tree, zoom, size.width, size.height],
  );
  const byRow = useMemo(() => new Map(boxes.map((box) => [box.row, box])), [boxes]);
  const hits = useMemo(() => found && markedRows(tree, found, byRow), [tree, found, byRow]);
  // The boxes stay as they are while the pointer and the cursor move.
  const drawn = useMemo(
    () =>
      boxes.map((box) => (
        <MapBox key={box.row} tree={tree} box={box} dark={dark} isFound={hits ? hits.has(box.row) : null} />
      )),
    [boxes, dark, hits],
  );
  useLayoutEffect(() => setCursor(tree.valid(state.row)), [state.row]);
  useLayoutEffect(() => {
    if (arrives.current) area.current?.focus();
    arrives.current = false;
  }, []);

  /** Zooms to a row, with the cursor at another one. */
  const zoomTo = (row: number, at: number) => {
    setHover(null);
    setCursor(at);
    if (row !== zoom) store.set({ zoom: row, row: at });
  };
  /** Zooms into a box, or into the one that it is in if there is nothing in it. */
  const open = (row: number) => {
    const [kid] = tree.children(row);
    if (kid === undefined) zoomTo(tree.parent[row], row);
    else zoomTo(row, kid);
  };
  const kids = (row: number) => tree.children(row).filter((kid) => byRow.has(kid));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = byRow.has(cursor) ? cursor : 0;
    const move = (row: number | undefined) => {
      setHover(null);
      if (row !== undefined) setCursor(row);
    };
    const siblings = kids(at > 0 ? tree.parent[at] : zoom);
    const beside = (step: number) => siblings[at > 0 ? siblings.indexOf(at) + step : 0];
    const actions: Record<string, () => void> = {
      ArrowDown: () => move(at > 0 ? kids(at)[0] : siblings[0]),
      ArrowUp: () => at > 0 && tree.parent[at] !== zoom && move(tree.parent[at]),
      ArrowRight: () => move(beside(1)),
      ArrowLeft: () => move(beside(-1)),
      Home: () => move(siblings[0]),
      End: () => move(siblings[siblings.length - 1]),
      Enter: () => at > 0 && open(at),
      Escape: () => zoomTo(tree.parent[zoom], zoom),
      ...(settings.letterKeys && { h: () => showInTree(at > 0 ? at : zoom) }),
    };
    const action = actions[event.key];
    if (!action || (event.key === "Escape" && zoom === 0)) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };
  const boxOf = (event: MouseEvent) => {
    const bounds = (area.current as HTMLElement).getBoundingClientRect();
    return boxAt(boxes, event.clientX - bounds.left, event.clientY - bounds.top);
  };
  const marked = byRow.get(cursor);
  const tip = hover ?? (focused && marked ? tipOf(marked, area.current) : null);
  const shown = marked ? cursor : zoom;
  const linked = tree.valid(state.row);
  const isTooSmall =
    linked !== zoom && size.width > 0 && !byRow.has(linked) && (zoom === 0 || tree.path(linked).includes(zoom));
  return (
    <div class="view">
      <div class="tools">
        <Crumbs
          path={tree.path(zoom)}
          onZoom={(row) => zoomTo(row, 0)}
          name={(row) => tree.title(row)}
          weight={(row) => tree.weight(row)}
          all={tree.all}
          words={formatSize}
        />
        <span class="muted">A colour is a class.</span>
        {isTooSmall && (
          <span>
            {brief(tree, linked)}: too small to be drawn ({formatSize(tree.weight(linked))})
          </span>
        )}
        <button type="button" disabled={zoom === 0} onClick={() => zoomTo(tree.parent[zoom], zoom)}>
          Zoom out
        </button>
        <button type="button" disabled={shown === 0} onClick={() => showInTree(shown)}>
          Show in the tree
        </button>
      </div>
      <div
        ref={area}
        id="map"
        class="map"
        // What the zoomed row has itself is in its own colour, as in boxes.
        style={{
          background: zoom === 0 ? "" : css(classColour(tree.row(zoom).className, tree.row(zoom).isRest, dark)),
        }}
        role="application"
        aria-roledescription="treemap"
        aria-label="What the names of the program hold; areas are bytes"
        aria-describedby="map-help"
        aria-activedescendant={marked ? "map-cursor" : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onFocus={() => {
          setFocused(true);
          // Before the size is known there are no boxes.
          if (!marked && boxes.length > 0) setCursor(kids(zoom)[0] ?? 0);
        }}
        onBlur={() => setFocused(false)}
        onMouseMove={(event) => {
          const box = boxOf(event);
          setHover(box && { row: box.row, x: event.clientX, y: event.clientY });
        }}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => {
          const box = boxOf(event);
          if (box) open(box.row);
        }}
      >
        {drawn}
        {hover && <Mark box={byRow.get(hover.row)} name="hover" />}
        {focused && <Mark box={marked} name="cursor" />}
        <div id="map-cursor" class="hidden-text" role="img" aria-label={marked ? describe(tree, cursor) : "nothing"} />
      </div>
      <p id="map-help" class="hidden-text">
        Arrow down goes to the largest box inside, arrow up to the box around, left and right to those beside. Enter
        zooms in, Escape zooms out, H shows the box in the tree of holders, which has the same as a table.
      </p>
      {tip && byRow.has(tip.row) && (
        <Tip x={tip.x} y={tip.y}>
          <Words tree={tree} row={tip.row} zoom={zoom} />
        </Tip>
      )}
    </div>
  );
}

/** As much of a row's title as a line may have. */
const brief = (tree: HeapTree, row: number) => tree.title(row).slice(0, 200);

function place({ x, y, width, height }: Box) {
  return { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` };
}

interface MapBoxProps {
  tree: HeapTree;
  box: Box;
  dark: boolean;
  /** Whether a search finds it; null without a search. */
  isFound: boolean | null;
}

function MapBox({ tree, box, dark, isFound }: MapBoxProps) {
  const { row, width, height, head, hasBoxes } = box;
  const { className, isRest } = tree.row(row);
  const hasWords = hasBoxes ? head > 0 : width >= LEAST_FOR_WORDS.width && height >= LEAST_FOR_WORDS.height;
  const isTall = !hasBoxes && height >= 2 * LINE;
  return (
    <div
      class={`map-box${isFound ? " found" : ""}${hasWords ? " named" : ""}`}
      aria-hidden="true"
      style={{ ...place(box), background: css(classColour(className, isRest || isFound === false, dark)) }}
    >
      {hasWords && (
        <>
          {brief(tree, row)}
          {(isTall || width >= 150) && (
            <span class={isTall ? "map-size below" : "map-size"}>{formatSize(tree.weight(row))}</span>
          )}
        </>
      )}
    </div>
  );
}

/** What is around the box that the pointer or the keyboard is at. */
function Mark({ box, name }: { box: Box | undefined; name: string }) {
  return box ? <div class={`map-mark ${name}`} style={place(box)} /> : null;
}

/** Where the words of a box are that the keyboard is at. */
function tipOf({ row, x, y, width, height }: Box, area: HTMLElement | null) {
  const bounds = area?.getBoundingClientRect() ?? { left: 0, top: 0 };
  return { row, x: bounds.left + x + Math.min(20, width), y: bounds.top + y + Math.min(LINE, height) };
}

/** A row in one line, for people who hear the page. */
function describe(tree: HeapTree, row: number): string {
  const { retainedObjects, objects } = tree.row(row);
  const siblings = tree.children(tree.parent[row]);
  return [
    brief(tree, row),
    formatSize(tree.weight(row)),
    `${formatShare(tree.weight(row), tree.all)} of all`,
    `${counted(objects, "object")}, with all below ${counted(retainedObjects, "object")}`,
    `depth ${tree.depth[row]}`,
    `${siblings.indexOf(row) + 1} of ${siblings.length}`,
  ].join(", ");
}

function Words({ tree, row, zoom }: { tree: HeapTree; row: number; zoom: number }) {
  const { bytes, objects, retainedObjects } = tree.row(row);
  const parent = tree.parent[row];
  const all = tree.weight(row);
  return (
    <>
      <strong>{tree.title(row)}</strong>
      <div class="muted">{tree.classNote(row)}</div>
      <div>
        {formatSize(all)} retained in {counted(retainedObjects, "object")}
      </div>
      <div>
        {formatSize(bytes)} of them its own, in {counted(objects, "object")}
      </div>
      <div>
        {formatShare(all, tree.all)} of all
        {zoom !== 0 && `, ${formatShare(all, tree.weight(zoom))} of the view`}
        {parent !== 0 && parent !== zoom && `, ${formatShare(all, tree.weight(parent))} of ${brief(tree, parent)}`}
      </div>
    </>
  );
}
