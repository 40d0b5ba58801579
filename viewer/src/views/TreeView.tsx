import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { usePage } from "../app/context.ts";
import type { Session } from "../app/session.ts";
import type { BoxTree } from "../model/box_tree.ts";
import { place } from "../model/groups.ts";
import { sameBox } from "../model/renewal.ts";
import { formatDelta, formatShare, formatValue } from "../model/units.ts";
import { useVisibleRows } from "../ui/rows.ts";
import { Bar } from "../ui/Table.tsx";

const HEIGHT = 28;
const HOT = 0.5;

/** The call tree as a table whose rows open: the same as the flame graph, for everybody. */
export function TreeView() {
  const { state, store, session } = usePage();
  const tree = session.tree(state, state.treeUp ? "up" : "down");
  return (
    <div class="view">
      <div class="tools">
        <label>
          Begin with{" "}
          <select
            value={state.treeUp ? "up" : "down"}
            onChange={(event) => store.set({ treeUp: event.currentTarget.value === "up" })}
          >
            <option value="down">the first caller, callees below</option>
            <option value="up">the methods that run, callers below</option>
          </select>
        </label>
        <span class="muted">Arrow keys open and close rows; * opens the path where most of it goes.</span>
      </div>
      <TreeGrid key={state.treeUp ? "up" : "down"} tree={tree} />
    </div>
  );
}

/** The boxes that are shown, in order. */
function visible(tree: BoxTree, open: Set<number>): number[] {
  const rows: number[] = [];
  const stack = [...tree.children(0)].reverse();
  for (let box = stack.pop(); box !== undefined; box = stack.pop()) {
    rows.push(box);
    if (open.has(box)) for (const kid of [...tree.children(box)].reverse()) stack.push(kid);
  }
  return rows;
}

/** From a box on the heaviest children, while they have most of it. */
function hotPath(tree: BoxTree, box: number): number[] {
  const path = [];
  for (let at: number | undefined = box; at !== undefined; ) {
    path.push(at);
    const kid: number | undefined = tree.children(at)[0];
    at = kid !== undefined && tree.weight(kid) >= HOT * tree.weight(at) ? kid : undefined;
  }
  return path;
}

/** Which rows of a tree are open, and which one has the focus. */
interface Shown {
  tree: BoxTree;
  /** Whose tree it is. */
  session: Session;
  open: Set<number>;
  active: number;
}

/** At first the hottest path is open. */
function fresh(tree: BoxTree, session: Session): Shown {
  const top = tree.children(0)[0];
  return { tree, session, open: new Set(top === undefined ? [] : hotPath(tree, top)), active: -1 };
}

function TreeGrid({ tree }: { tree: BoxTree }) {
  const page = usePage();
  const { view, found, store, session, state } = page;
  const box = useRef<HTMLDivElement>(null);
  const wantsFocus = useRef(false);
  const [shown, setShown] = useState<Shown>(() => fresh(tree, session));
  // Another tree has other boxes; newer data have the same ones, and more.
  const present = useMemo(() => {
    if (shown.tree === tree) return shown;
    if (shown.session === session) return fresh(tree, session);
    const { activeElement } = document;
    wantsFocus.current ||= activeElement !== null && activeElement === box.current?.querySelector("[data-active]");
    const same = sameBox(shown.tree, tree);
    return { tree, session, open: new Set([...shown.open].map(same)), active: same(shown.active) };
  }, [shown, tree]);
  useLayoutEffect(() => setShown(present), [present]);
  const { open, active } = present;
  const setActive = (active: number) => setShown({ ...present, active });
  const setOpen = (open: Set<number>, at = active) => setShown({ ...present, open, active: at });
  const rows = useMemo(() => visible(tree, open), [tree, open]);
  const at = Math.max(0, rows.indexOf(active));
  const { first, last, before, after, reveal } = useVisibleRows(box, rows.length, HEIGHT);
  const { frames } = view.tree;
  const type = view.file.valueTypes[view.query.type];

  useLayoutEffect(() => {
    if (!wantsFocus.current) return;
    wantsFocus.current = false;
    box.current?.querySelector<HTMLElement>("[data-active]")?.focus();
  });

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
      Enter: () => store.set({ view: "callers", method: session.methodName(state, tree.frame[row]) }),
      ...(page.settings.letterKeys && {
        m: () => page.openMenu({ frame: tree.frame[row], x: bounds.left + 40, y: bounds.bottom }),
      }),
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
      <table role="treegrid" aria-label="Call tree" aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" class="number">
              total
            </th>
            <th scope="col" class="number">
              %
            </th>
            <th scope="col" class="number">
              self
            </th>
            {view.base && (
              <th scope="col" class="number">
                change
              </th>
            )}
            <th scope="col">method</th>
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
                class={found?.frames[tree.frame[row]] ? "found" : ""}
                onFocus={() => setActive(row)}
                onClick={() => toggle(row)}
                onContextMenu={(event) => {
                  event.preventDefault();
                  page.openMenu({ frame: tree.frame[row], x: event.clientX, y: event.clientY });
                }}
              >
                <td class="number">
                  <Bar share={tree.total[row] / view.target.sum}>{formatValue(tree.total[row], type)}</Bar>
                </td>
                <td class="number">{formatShare(tree.total[row], view.target.sum)}</td>
                <td class="number">{tree.self[row] === 0 ? "" : formatValue(tree.self[row], type)}</td>
                {view.base && <td class="number">{formatDelta(tree.total[row] - tree.base[row], type)}</td>}
                <td class="name">
                  <span class="indent" style={{ width: `${Math.min(40, tree.depth[row] - 1) * 14}px` }} />
                  <span class="twist" aria-hidden="true">
                    {hasKids ? (open.has(row) ? "▾" : "▸") : ""}
                  </span>
                  {tree.depth[row] > 41 && <span class="muted">{tree.depth[row]}: </span>}
                  {frames.name[tree.frame[row]]}
                  <span class="muted note">{place(frames.file[tree.frame[row]], frames.line[tree.frame[row]])}</span>
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
