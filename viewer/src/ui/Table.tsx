import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useShell } from "../app/context.ts";
import { formatCount } from "../model/units.ts";
import { useVisibleRows } from "./rows.ts";

const HEIGHT = 28;

export interface Column<T> {
  key: string;
  title: string;
  /** Says what the column means. */
  help?: string;
  numeric?: boolean;
  /** What to sort by; columns without it are not sorted. */
  value?(row: T): number | string;
  cell(row: T): ComponentChildren;
}

interface Props<T> {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  /** `KEY` or `-KEY` (descending). */
  sort: string;
  onSort(sort: string): void;
  /** The row's name, which opens it if it can be opened. */
  name(row: T): string;
  nameTitle: string;
  note?(row: T): string;
  onOpen?(row: T): void;
  /** Whether there is something to open; without it, always. */
  canOpen?(row: T): boolean;
  onMenu?(row: T, x: number, y: number): void;
  /** Whether the rest of the view is about this row. */
  isCurrent?(row: T): boolean;
  empty: string;
}

/** A table of any length: only the rows in its window are in the page. */
export function Table<T>(props: Props<T>) {
  const { settings } = useShell();
  const { columns, sort, onSort, onOpen, onMenu } = props;
  const box = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const wantsFocus = useRef(false);
  const rows = useMemo(() => sorted(props.rows, columns, sort, props.name), [props.rows, sort]);
  const at = Math.min(active, rows.length - 1);
  const { first, last, before, after, reveal } = useVisibleRows(box, rows.length, HEIGHT);

  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    box.current?.querySelector<HTMLElement>("[data-active]")?.focus();
  });

  const onKeyDown = (event: KeyboardEvent) => {
    if (!(event.target as HTMLElement).closest("tbody")) return;
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / HEIGHT) - 2);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    };
    const to = steps[event.key];
    if (event.key === "m" && settings.letterKeys && onMenu && rows[at]) {
      const bounds = (event.target as HTMLElement).getBoundingClientRect();
      onMenu(rows[at], bounds.left + 20, bounds.bottom);
      event.preventDefault();
      event.stopPropagation();
    }
    if (to === undefined) return;
    event.preventDefault();
    const row = Math.max(0, Math.min(rows.length - 1, to));
    wantsFocus.current = true;
    setActive(row);
    reveal(row, HEIGHT + 4);
  };

  const heading = (column: { key: string; title: string; help?: string; numeric?: boolean; value?: unknown }) => {
    const direction = sort === column.key ? "ascending" : sort === `-${column.key}` ? "descending" : undefined;
    return (
      <th key={column.key} scope="col" class={column.numeric ? "number" : ""} aria-sort={direction} title={column.help}>
        {column.value ? (
          <button type="button" class="sort" onClick={() => onSort(other(column, direction))}>
            {column.title}
            <span aria-hidden="true">{direction === "descending" ? " ▼" : direction ? " ▲" : ""}</span>
          </button>
        ) : (
          column.title
        )}
      </th>
    );
  };

  const scroller: JSX.Element = (
    <div ref={box} class="table-box" onKeyDown={onKeyDown} tabIndex={rows.length === 0 || onOpen ? undefined : 0}>
      <table aria-rowcount={rows.length + 1}>
        <caption class="hidden-text">{props.caption}</caption>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(heading)}
            {heading({ key: "name", title: props.nameTitle, value: true })}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr class="room" aria-hidden="true" style={{ height: `${before}px` }} />}
          {rows.slice(first, last).map((row, i) => (
            <tr
              key={first + i}
              aria-rowindex={first + i + 2}
              class={props.isCurrent?.(row) ? "current" : undefined}
              onContextMenu={(event) => {
                if (!onMenu) return;
                event.preventDefault();
                onMenu(row, event.clientX, event.clientY);
              }}
            >
              {columns.map((column) => (
                <td key={column.key} class={column.numeric ? "number" : ""}>
                  {column.cell(row)}
                </td>
              ))}
              <th scope="row" class="name">
                <span class="named" title={[props.name(row), props.note?.(row)].filter(Boolean).join("\n")}>
                  {onOpen ? (
                    <button
                      type="button"
                      class="link"
                      tabIndex={first + i === at ? 0 : -1}
                      data-active={first + i === at ? "" : undefined}
                      aria-current={props.isCurrent?.(row) || undefined}
                      aria-disabled={props.canOpen?.(row) === false || undefined}
                      onFocus={() => setActive(first + i)}
                      onClick={() => props.canOpen?.(row) !== false && onOpen(row)}
                    >
                      {props.name(row)}
                    </button>
                  ) : (
                    <span>{props.name(row)}</span>
                  )}
                  {props.note?.(row) && <span class="muted note">{props.note(row)}</span>}
                </span>
              </th>
            </tr>
          ))}
          {after > 0 && <tr class="room" aria-hidden="true" style={{ height: `${after}px` }} />}
        </tbody>
      </table>
      {rows.length === 0 && <p class="empty">{props.empty}</p>}
    </div>
  );
  return scroller;
}

/** Numbers begin with the largest, names with A; another click turns it round. */
function other({ key, numeric }: { key: string; numeric?: boolean }, direction: string | undefined): string {
  const descending = direction === undefined ? numeric === true : direction === "ascending";
  return descending ? `-${key}` : key;
}

function sorted<T>(rows: T[], columns: Column<T>[], sort: string, name: (row: T) => string): T[] {
  const descending = sort.startsWith("-");
  const key = descending ? sort.slice(1) : sort;
  const value = key === "name" ? name : columns.find((column) => column.key === key)?.value;
  if (!value) return rows;
  const keyed = rows.map((row) => ({ row, value: value(row) }));
  keyed.sort((a, b) => (a.value < b.value ? -1 : a.value > b.value ? 1 : 0));
  if (descending) keyed.reverse();
  return keyed.map(({ row }) => row);
}

/** A column of counts or times. */
export function number<T>(key: string, help: string, value: (row: T) => number, words = formatCount): Column<T> {
  return { key, title: key, help, numeric: true, value, cell: (row) => words(value(row)) };
}

/** A number with a bar behind it for its share of all. */
export function Bar({ share, children }: { share: number; children: ComponentChildren }) {
  const percent = Math.max(0, Math.min(100, 100 * share));
  return (
    <span class="bar">
      <span class="bar-fill" style={{ width: `${Number.isFinite(percent) ? percent : 0}%` }} />
      <span class="bar-text">{children}</span>
    </span>
  );
}
