import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { usePage } from "../app/context.ts";
import type { BoxTree } from "../model/box_tree.ts";
import { sameBox } from "../model/renewal.ts";
import { useSize } from "../ui/size.ts";
import { describe, Tooltip } from "./describe.tsx";
import { hit, layout } from "./layout.ts";
import { fills, widthWeight } from "./look.ts";
import { Painter, ROW, rowAt, rowTop } from "./painter.ts";

interface Props {
  tree: BoxTree;
  /** The box that has the whole width; 0 for all. */
  zoom: number;
  onZoom(box: number): void;
  /** Rows grow upwards. */
  flipped: boolean;
  label: string;
  id: string;
}

/** What the pointer or the keyboard is at. */
interface At {
  box: number;
  x: number;
  y: number;
}

/** A flame graph: one canvas of its window's size over an area that scrolls. */
export function FlameGraph({ tree, zoom, onZoom, flipped, label, id }: Props) {
  const page = usePage();
  const { state, session, found, dark } = page;
  const area = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter | null>(null);
  const size = useSize(area);
  const [cursor, setCursor] = useState(-1);
  const [hover, setHover] = useState<At | null>(null);
  const [focused, setFocused] = useState(false);

  const weight = useMemo(() => widthWeight(tree, state.width), [tree, state.width]);
  const rows = useMemo(
    () => (size.width > 0 ? layout(tree, zoom, size.width, weight) : []),
    [tree, zoom, size.width, weight],
  );
  const depths = useMemo(() => {
    const depths = new Map<number, [depth: number, at: number]>();
    rows.forEach((row, depth) => {
      row.box.forEach((box, at) => {
        if (box >= 0) depths.set(box, [depth, at]);
      });
    });
    return depths;
  }, [rows]);
  const fill = useMemo(() => fills(page, tree), [tree, state.colouring, dark]);

  const paint = () => {
    const element = area.current;
    if (!element || !canvas.current || size.width === 0) return;
    painter.current ??= new Painter(canvas.current);
    const { frames } = tree.view.tree;
    painter.current.paint(rows, size.width, size.height, element.scrollTop, {
      fill,
      text: (box) => frames.name[tree.frame[box]],
      isFound: found ? (box) => found.frames[tree.frame[box]] === 1 : null,
      cursor: focused ? cursor : -1,
      hover: hover?.box ?? -1,
      dark,
      flipped,
    });
  };
  const latest = useRef(paint);
  latest.current = paint;
  const pending = useRef(0);
  const repaint = () => {
    if (pending.current === 0) {
      pending.current = requestAnimationFrame(() => {
        pending.current = 0;
        latest.current();
      });
    }
  };
  useLayoutEffect(paint);
  useEffect(() => () => cancelAnimationFrame(pending.current), []);

  // Newer data leave all where it was.
  const last = useRef({ tree, session });
  const renewed = last.current.session !== session;
  // A flipped graph begins at its foot.
  useLayoutEffect(() => {
    const element = area.current;
    if (element && !renewed) element.scrollTop = flipped ? element.scrollHeight : 0;
  }, [flipped, tree, size.height]);
  useLayoutEffect(() => {
    const same = renewed ? sameBox(last.current.tree, tree) : () => -1;
    last.current = { tree, session };
    setCursor(same);
    setHover((at) => {
      const box = at ? same(at.box) : -1;
      return at && box >= 0 ? { ...at, box } : null;
    });
  }, [tree]);

  const boxAt = (event: MouseEvent): At | null => {
    const element = area.current as HTMLDivElement;
    const bounds = element.getBoundingClientRect();
    const y = event.clientY - bounds.top + element.scrollTop;
    const row = rows[rowAt(y, rows.length, size.height, flipped)];
    const at = row ? hit(row, event.clientX - bounds.left) : -1;
    return at < 0 || row.box[at] < 0 ? null : { box: row.box[at], x: event.clientX, y: event.clientY };
  };

  /** Where a box is in the window, for a tooltip or menu that the keyboard asks for. */
  const placeOf = (box: number): At | null => {
    const place = depths.get(box);
    const element = area.current;
    if (!place || !element) return null;
    const bounds = element.getBoundingClientRect();
    const [depth, at] = place;
    const y = rowTop(depth, rows.length, size.height, flipped) - element.scrollTop;
    return { box, x: bounds.left + rows[depth].x[at] + Math.min(20, rows[depth].width[at]), y: bounds.top + y + ROW };
  };

  const moveTo = (box: number) => {
    const place = depths.get(box);
    const element = area.current;
    if (!place || !element) return;
    const top = rowTop(place[0], rows.length, size.height, flipped);
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW > element.scrollTop + size.height) element.scrollTop = top + ROW - size.height;
    setCursor(box);
    setHover(null);
  };
  const openMenu = (at: At) =>
    page.openMenu({ frame: tree.frame[at.box], x: at.x, y: at.y, zoom: () => onZoom(at.box) });

  const shownKids = (box: number) => tree.children(box).filter((kid) => depths.has(kid));
  const nextFound = (step: number) => {
    if (!found) return;
    const hits = [...depths.keys()].filter((box) => found.frames[tree.frame[box]] === 1);
    if (hits.length === 0) return page.say("Nothing that was found is in the graph.");
    const at = hits.indexOf(cursor);
    moveTo(hits[at < 0 ? (step > 0 ? 0 : hits.length - 1) : (at + step + hits.length) % hits.length]);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = cursor >= 0 && depths.has(cursor) ? cursor : -1;
    const siblings = at >= 0 ? shownKids(tree.parent[at]) : [];
    const beside = (step: number) => siblings[siblings.indexOf(at) + step];
    const [outward, inward] = flipped ? ["ArrowDown", "ArrowUp"] : ["ArrowUp", "ArrowDown"];
    const actions: Record<string, () => void> = {
      [inward]: () => {
        const kid = at < 0 ? (rows[0]?.box[0] ?? -1) : shownKids(at)[0];
        if (kid !== undefined && kid >= 0) moveTo(kid);
      },
      [outward]: () => at >= 0 && tree.parent[at] !== 0 && moveTo(tree.parent[at]),
      ArrowLeft: () => beside(-1) !== undefined && moveTo(beside(-1)),
      ArrowRight: () => beside(1) !== undefined && moveTo(beside(1)),
      Home: () => rows[0] && moveTo(rows[0].box[0]),
      Enter: () => at >= 0 && onZoom(at),
      Escape: () => onZoom(zoom === 0 ? 0 : tree.parent[zoom]),
      ...(page.settings.letterKeys && {
        m: () => {
          const place = placeOf(at);
          if (place) openMenu(place);
        },
        p: () => at >= 0 && page.store.set({ method: session.methodName(state, tree.frame[at]), sandwich: true }),
        n: () => nextFound(1),
        N: () => nextFound(-1),
      }),
    };
    const action = actions[event.key];
    if (!action || (event.key === "Escape" && zoom === 0)) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  const tip = hover ?? (focused && cursor >= 0 ? placeOf(cursor) : null);
  const cursorText = cursor >= 0 && depths.has(cursor) ? describe(page, tree, cursor) : "";
  return (
    <div class="flame-frame">
      <div
        ref={area}
        id={id}
        class="flame"
        role="application"
        aria-roledescription="flame graph"
        aria-label={label}
        aria-describedby={`${id}-help`}
        aria-activedescendant={cursorText ? `${id}-cursor` : undefined}
        tabIndex={0}
        onScroll={repaint}
        onKeyDown={onKeyDown}
        onFocus={() => {
          setFocused(true);
          if (cursor < 0 && rows[0]) setCursor(rows[0].box[0]);
        }}
        onBlur={() => setFocused(false)}
        onMouseMove={(event) => {
          const at = boxAt(event);
          if (at?.box !== hover?.box || (at && hover)) setHover(at);
        }}
        onMouseLeave={() => setHover(null)}
        onClick={(event) => {
          const at = boxAt(event);
          if (!at) return;
          setCursor(at.box);
          onZoom(at.box);
        }}
        onDblClick={(event) => {
          const at = boxAt(event);
          if (at) page.store.set({ method: session.methodName(state, tree.frame[at.box]), sandwich: true });
        }}
        onContextMenu={(event) => {
          const at = boxAt(event);
          if (!at) return;
          event.preventDefault();
          setCursor(at.box);
          setHover(null);
          openMenu(at);
        }}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div style={{ height: `${Math.max(0, rows.length * ROW - size.height)}px` }} />
        <div id={`${id}-cursor`} class="hidden-text" role="img" aria-label={cursorText || "nothing"} />
      </div>
      <p id={`${id}-help`} class="hidden-text">
        Arrow keys move between methods, Enter zooms in, Escape zooms out, M opens a menu. The call tree has the same as
        a table.
      </p>
      {tip && tip.box >= 0 && <Tooltip page={page} tree={tree} box={tip.box} zoom={zoom} x={tip.x} y={tip.y} />}
    </div>
  );
}
