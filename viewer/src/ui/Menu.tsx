import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type OpenMenu, usePage } from "../app/context.ts";
import { escapePattern, exactly, type FilterKind } from "../model/filters.ts";
import { place } from "../model/groups.ts";

/** What can be done with a method. */
export function Menu({ menu, onClose }: { menu: OpenMenu; onClose(): void }) {
  const { store, session, state, view, say } = usePage();
  const element = useRef<HTMLDivElement>(null);
  const { frames } = view.tree;
  const name = frames.name[menu.frame];
  const file = frames.file[menu.frame];
  const library = frames.library[menu.frame];
  const path = frames.path[menu.frame];

  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const { width, height } = box.getBoundingClientRect();
    box.style.left = `${Math.max(4, Math.min(menu.x, innerWidth - width - 8))}px`;
    box.style.top = `${Math.max(4, Math.min(menu.y, innerHeight - height - 8))}px`;
    const before = document.activeElement as HTMLElement | null;
    box.querySelector<HTMLElement>("button")?.focus();
    return () => before?.focus?.();
  }, [menu]);
  useEffect(() => {
    const close = (event: Event) => {
      if (!element.current?.contains(event.target as Node)) onClose();
    };
    addEventListener("pointerdown", close, true);
    return () => removeEventListener("pointerdown", close, true);
  }, [onClose]);

  const filter = (kind: FilterKind, text: string) => () =>
    store.set({ filters: [...state.filters, { kind, text }], zoom: [] });
  const method = session.methodName(state, menu.frame);
  const copy = (text: string) => () => {
    navigator.clipboard?.writeText(text).then(
      () => say("Copied."),
      () => say("The browser doesn't let this page copy."),
    );
  };
  const items: [string, (() => void) | undefined][] = [
    ["Zoom to here", menu.zoom],
    ["Show callers and callees", () => store.set({ view: "callers", method })],
    ["Show its stacks, callers above (sandwich)", () => store.set({ view: "flame", sandwich: true, method })],
    [
      "Show its source lines",
      file === "" || file.startsWith("<") ? undefined : () => store.set({ view: "source", method }),
    ],
    ["Focus: only stacks with this method", filter("focus", exactly(name))],
    ["Ignore: drop stacks with this method", filter("ignore", exactly(name))],
    ["Hide this method, keep its time", filter("hide", exactly(name))],
    [
      library ? `Hide all of ${library.slice(0, 40)}` : "Hide all of its file",
      file === "" ? undefined : filter("hide", library ? `/${escapePattern(library)}/` : exactly(path)),
    ],
    ["Copy the name", copy(name)],
    ["Copy file and line", file === "" ? undefined : copy(place(path, frames.line[menu.frame]))],
  ];
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...(element.current?.querySelectorAll<HTMLElement>("button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + buttons.length, Home: 0, End: buttons.length - 1 }[event.key];
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      onClose();
    } else if (to !== undefined) {
      event.preventDefault();
      buttons[to % buttons.length].focus();
    }
  };
  return (
    <div
      ref={element}
      class="menu"
      role="menu"
      tabIndex={-1}
      aria-label={`Actions for ${name.slice(0, 200)}`}
      onKeyDown={onKeyDown}
    >
      <div class="menu-title" role="presentation">
        {name}
      </div>
      {items.map(
        ([text, action]) =>
          action && (
            <button
              key={text}
              type="button"
              role="menuitem"
              tabIndex={-1}
              onClick={() => {
                onClose();
                action();
              }}
            >
              {text}
            </button>
          ),
      )}
    </div>
  );
}
