import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useShell } from "../app/context.ts";
import { useVisibleRows } from "./rows.ts";

const HEIGHT = 28;
const HOT = 0.5;

/** A tree of rows; row 0 is the root, which isn't shown. */
export interface Rows {
  parent: ArrayLike<number>;
  depth: ArrayLike<number>;
  /** The heaviest first. */
  children(row: number): number[];
  weight(row: number): number;
}

interface Props<T extends Rows> {
  label: string;
  tree: T;
  /** What the tree is made from: newer data are another object. */
  data: object;
  /** The row of newer data that is the same as one of older data; -1 for none. */
  same(from: T, to: T): (row: number) => number;
  columns: { title: string; cell(row: number): ComponentChildren }[];
  nameTitle: string;
  name(row: number): ComponentChildren;
  onOpen(row: number): void;
  onMenu?(row: number, x: number, y: number): void;
  isFound?(row: number): boolean;
  /** What is open at first, and the row that is shown; without it, the hottest path. */
  start?: Start;
}

/** The rows that are shown, in order. */
function visible(tree: Rows, open: Set<number>): number[] {
  const rows: number[] = [];
  const stack = [...tree.children(0)].reverse();
  for (let row = stack.pop(); row !== undefined; row = stack.pop()) {
    rows.push(row);
    if (open.has(row)) for (const kid of [...tree.children(row)].reverse()) stack.push(kid);
  }
  return rows;
}

/** From a row on the heaviest children, while they have most of it. */
function hotPath(tree: Rows, row: number): number[] {
  const path = [];
  for (let at: number | undefined = row; at !== undefined; ) {
    path.push(at);
    const kid: number | undefined = tree.children(at)[0];
    at = kid !== undefined && tree.weight(kid) > 0 && tree.weight(kid) >= HOT * tree.weight(at) ? kid : undefined;
  }
  return path;
}

/** Which rows of a tree are open, and which one has the focus. */
interface Shown<T extends Rows> {
  tree: T;
  data: object;
  open: Set<number>;
  active: number;
}

/** At first the hottest path is open, if nothing else is asked for. */
function fresh<T extends Rows>({ tree, data, start }: Props<T>): Shown<T> {
  if (start) return { tree, data, open: new Set(start.open), active: start.row };
  const top = tree.children(0)[0];
  return { tree, data, open: new Set(top === undefined ? [] : hotPath(tree, top)), active: -1 };
}

/** Where a tree begins. */
export interface Start {
  open: Iterable<number>;
  row: number;
  takesFocus: boolean;
}

/** A tree as a table whose rows open. */
export function TreeGrid<T extends Rows>(props: Props<T>) {
  const { settings } = useShell();
  const { tree, data, columns, onMenu } = props;
  const box = useRef<HTMLDivElement>(null);
  const wantsFocus = useRef(props.start?.takesFocus === true);
  const [shown, setShown] = useState<Shown<T>>(() => fresh(props));
  // Another tree has other rows; newer data have the same ones, and more.
  const present = useMemo(() => {
    if (shown.tree === tree) return shown;
    if (shown.data === data) return fresh(props);
    const { activeElement } = document;
    wantsFocus.current ||= activeElement !== null && activeElement === box.current?.querySelector("[data-active]");
    const same = props.same(shown.tree, tree);
    return { tree, data, open: new Set([...shown.open].map(same)), active: same(shown.active) };
  }, [shown, tree]);
  useLayoutEffect(() => setShown(present), [present]);
  const { open, active } = present;
  const setActive = (active: number) => setShown({ ...present, active });
  const setOpen = (open: Set<number>, at = active) => setShown({ ...present, open, active: at });
  const rows = useMemo(() => visible(tree, open), [tree, open]);
  const at = Math.max(0, rows.indexOf(active));
  const { first, last, before, after, reveal } = useVisibleRows(box, rows.length, HEIGHT);

  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    box.current?.querySelector<HTMLElement>("[data-active]")?.focus();
  });

  // A row that is asked for is in the window.
  useLayoutEffect(() => {
    if (!props.start || active <= 0) return;
    // Above, it wasn't there yet if it is far down.
    wantsFocus.current ||= props.start.takesFocus;
    reveal(at, HEIGHT + 4);
  }, [tree]);

  const go = (row: number) => {
    const to = Math.max(0, Math.min(rows.length - 1, row));
    wantsFocus.current = true;
    setActive(rows[to]);
    reveal(to, HEIGHT + 4);
  };
  const toggle = (row: number, wanted = !open.has(row)) => {
    const next = new Set(open);
    if (wanted) next.add(row);
    else next.delete(row);
    setOpen(next, row);
  };
  const openHotPath = (row: number) => {
    const path = hotPath(tree, row);
    wantsFocus.current = true;
    setOpen(new Set([...open, ...path]), path[path.length - 1]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[at];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const kids = tree.children(row).length;
    const rightward = () => (kids > 0 && !open.has(row) ? toggle(row, true) : kids > 0 && go(at + 1));
    const leftward = () => {
      if (open.has(row) && kids > 0) toggle(row, false);
      else if (tree.parent[row] !== 0) go(rows.indexOf(tree.parent[row]));
    };
    const bounds = (event.target as HTMLElement).getBoundingClientRect();
    const actions: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + 15),
      PageUp: () => go(at - 15),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      ArrowRight: rightward,
      ArrowLeft: leftward,
      "*": () => openHotPath(row),
      Enter: () => props.onOpen(row),
      ...(settings.letterKeys && onMenu && { m: () => onMenu(row, bounds.left + 40, bounds.bottom) }),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  };

  if (rows.length === 0) return <p class="empty">There is nothing to show.</p>;
  return (
    <div ref={box} class="table-box" onKeyDown={onKeyDown}>
      <table role="treegrid" aria-label={props.label} aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ title }) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
            <th scope="col">{props.nameTitle}</th>
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr class="room" aria-hidden="true" style={{ height: `${before}px` }} />}
          {rows.slice(first, last).map((row, i) => {
            const siblings = tree.children(tree.parent[row]);
            const hasKids = tree.children(row).length > 0;
            const isActive = first + i === at;
            return (
              <tr
                key={row}
                aria-level={tree.depth[row]}
                aria-expanded={hasKids ? open.has(row) : undefined}
                aria-posinset={siblings.indexOf(row) + 1}
                aria-setsize={siblings.length}
                aria-rowindex={first + i + 2}
                tabIndex={isActive ? 0 : -1}
                data-active={isActive ? "" : undefined}
                class={props.isFound?.(row) ? "found" : ""}
                onFocus={() => setActive(row)}
                onClick={() => toggle(row)}
                onContextMenu={(event) => {
                  if (!onMenu) return;
                  event.preventDefault();
                  onMenu(row, event.clientX, event.clientY);
                }}
              >
                {columns.map(({ title, cell }) => (
                  <td key={title} class="number">
                    {cell(row)}
                  </td>
                ))}
                <td class="name">
                  <span class="indent" style={{ width: `${Math.min(40, tree.depth[row] - 1) * 14}px` }} />
                  <span class="twist" aria-hidden="true">
                    {hasKids ? (open.has(row) ? "▾" : "▸") : ""}
                  </span>
                  {tree.depth[row] > 41 && <span class="muted">{tree.depth[row]}: </span>}
                  {props.name(row)}
                </td>
              </tr>
            );
          })}
          {after > 0 && <tr class="room" aria-hidden="true" style={{ height: `${after}px` }} />}
        </tbody>
      </table>
    </div>
  );
}
