import type { FunctionComponent } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type OpenMenu, type Page, PageContext, useStore } from "../app/context.ts";
import type { Session } from "../app/session.ts";
import { applyTheme, loadSettings, type Settings, saveSettings } from "../app/settings.ts";
import { VIEWS, type ViewName } from "../app/state.ts";
import type { Store } from "../app/store.ts";
import type { Server } from "../format/server.ts";
import { Menu } from "../ui/Menu.tsx";
import { BootView } from "./BootView.tsx";
import { CallersView } from "./CallersView.tsx";
import { ChangesView } from "./ChangesView.tsx";
import { Filters } from "./Filters.tsx";
import { FlameView } from "./FlameView.tsx";
import { GraphView } from "./GraphView.tsx";
import { Header } from "./Header.tsx";
import { Help } from "./Help.tsx";
import { LabelsView } from "./LabelsView.tsx";
import { RequestsView } from "./RequestsView.tsx";
import { SnapshotsView } from "./SnapshotsView.tsx";
import { SourceView } from "./SourceView.tsx";
import { Summary } from "./Summary.tsx";
import { TestsView } from "./TestsView.tsx";
import { TopView } from "./TopView.tsx";
import { TreeView } from "./TreeView.tsx";

const TABS: Record<ViewName, [title: string, view: FunctionComponent]> = {
  flame: ["Flame graph", FlameView],
  top: ["Top", TopView],
  tree: ["Call tree", TreeView],
  callers: ["Callers and callees", CallersView],
  graph: ["Call graph", GraphView],
  source: ["Source", SourceView],
  labels: ["Labels, threads, states", LabelsView],
  requests: ["Requests", RequestsView],
  tests: ["Tests", TestsView],
  boot: ["Boot", BootView],
  changes: ["Changes", ChangesView],
  snapshots: ["Snapshots", SnapshotsView],
};

interface Props {
  store: Store;
  session: Session;
  server: Server | null;
  snapshot: string;
  /** Why a snapshot is shown in place of what is live. */
  note: string;
  open(session: Session, snapshot: string): void;
  renew(session: Session): void;
}

/** The whole page. */
export function App({ store, session, server, snapshot, note, open, renew }: Props) {
  const state = useStore(store);
  const [settings, setSettings] = useState<Settings>(loadSettings);
  const [systemDark, setSystemDark] = useState(0);
  const [menu, setMenu] = useState<OpenMenu | null>(null);
  const [help, setHelp] = useState(false);
  const live = useRef<HTMLDivElement>(null);
  const dark = applyTheme(settings);

  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setSystemDark(systemDark + 1);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [systemDark]);

  const view = session.view(state);
  const result = session.found(state);
  const title = snapshot || view.target.rows.meta.title;
  useLayoutEffect(() => {
    document.title = `${title} – rperf`;
  }, [title]);

  const page: Page = useMemo(
    () => ({
      store,
      session,
      server,
      state,
      view,
      found: result !== null && typeof result !== "string" ? result : null,
      settings,
      dark,
      setSettings: (next) => {
        setSettings(next);
        saveSettings(next);
      },
      say: (text) => {
        if (live.current) live.current.textContent = text;
      },
      openMenu: setMenu,
      open,
      renew,
    }),
    [store, session, server, state, view, result, settings, dark, open, renew],
  );
  const tabs = VIEWS.filter((name) => {
    if (name === "changes") return session.file.profiles.length > 1;
    if (name === "requests") return view.target.rows.requests.length > 0;
    if (name === "tests") return view.target.rows.suite.isThere;
    if (name === "boot") return session.hasBoot(state);
    return name !== "snapshots" || server !== null || session.file.profiles.length > 1;
  });
  useKeys(page, tabs, () => setHelp(true));
  const current = tabs.includes(state.view) ? state.view : "flame";
  const Current = TABS[current][1];
  return (
    <PageContext.Provider value={page}>
      <Header result={result} snapshot={snapshot} note={note} onHelp={() => setHelp(true)} />
      <Summary />
      <Filters />
      <main>
        <Tabs tabs={tabs} current={current} onPick={(name) => store.set({ view: name })} />
        <div id="panel" role="tabpanel" aria-labelledby={`tab-${current}`}>
          <Current />
        </div>
      </main>
      <div ref={live} class="hidden-text" role="status" aria-live="polite" />
      {menu && <Menu menu={menu} onClose={() => setMenu(null)} />}
      {help && <Help onClose={() => setHelp(false)} />}
    </PageContext.Provider>
  );
}

/** As many tabs have a digit; all are reached by arrows. */
const KEYS = 10;

function Tabs({ tabs, current, onPick }: { tabs: ViewName[]; current: ViewName; onPick(name: ViewName): void }) {
  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.indexOf(current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const name = tabs[to % tabs.length];
    onPick(name);
    document.getElementById(`tab-${name}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={onKeyDown}>
      {tabs.map((name, i) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-selected={name === current}
          aria-controls="panel"
          tabIndex={name === current ? 0 : -1}
          title={i < KEYS ? `Key ${(i + 1) % 10}` : undefined}
          onClick={() => onPick(name)}
        >
          {TABS[name][0]}
        </button>
      ))}
    </div>
  );
}

/** Keys that work wherever the focus is, but for fields that take text. */
function useKeys(page: Page, tabs: ViewName[], openHelp: () => void) {
  // At once: a key may come before the first frame.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || !page.settings.letterKeys) return;
      if (target.closest?.("input, select, textarea, dialog, [role=menu]")) return;
      const { store, state, session } = page;
      const profiles = session.file.profiles.length;
      // The tenth has the key 0.
      const tab = /^\d$/.test(event.key) ? tabs[(Number(event.key) + 9) % 10] : undefined;
      const flame = (change: Partial<typeof state>) => () => store.set({ view: "flame", ...change });
      const actions: Record<string, () => void> = {
        "/": () => document.getElementById("search")?.focus(),
        "?": openHelp,
        i: flame({ inverted: !state.inverted, sandwich: false, zoom: [] }),
        f: flame({ flipped: !state.flipped }),
        s: () => session.method(state) >= 0 && flame({ sandwich: !state.sandwich })(),
        "[": () => profiles > 1 && store.set({ profile: (state.profile + profiles - 1) % profiles, zoom: [] }),
        "]": () => profiles > 1 && store.set({ profile: (state.profile + 1) % profiles, zoom: [] }),
      };
      const action = tab ? () => store.set({ view: tab }) : actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [page, tabs, openHelp]);
}
