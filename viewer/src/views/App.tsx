import type { FunctionComponent } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type OpenMenu, type Page, PageContext, ShellContext, useStore } from "../app/context.ts";
import type { Session } from "../app/session.ts";
import { useKeys, useNewShell } from "../app/shell.ts";
import { VIEWS, type ViewName } from "../app/state.ts";
import type { Store } from "../app/store.ts";
import type { Server } from "../format/server.ts";
import { Menu } from "../ui/Menu.tsx";
import { Tabs, tabOfKey } from "../ui/Tabs.tsx";
import { BootView } from "./BootView.tsx";
import { CallersView } from "./CallersView.tsx";
import { ChangesView } from "./ChangesView.tsx";
import { Filters } from "./Filters.tsx";
import { FlameView } from "./FlameView.tsx";
import { GraphView } from "./GraphView.tsx";
import { Header } from "./Header.tsx";
import { Help, profileHelp } from "./Help.tsx";
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
  const [menu, setMenu] = useState<OpenMenu | null>(null);
  const [help, setHelp] = useState(false);

  const view = session.view(state);
  const result = session.found(state);
  const title = snapshot || view.target.rows.meta.title;
  const { shell, live } = useNewShell(title);

  const page: Page = useMemo(
    () => ({
      ...shell,
      store,
      session,
      server,
      state,
      view,
      found: result !== null && typeof result !== "string" ? result : null,
      openMenu: setMenu,
      open,
      renew,
    }),
    [shell, store, session, server, state, view, result, open, renew],
  );
  const tabs = VIEWS.filter((name) => {
    if (name === "changes") return session.file.profiles.length > 1;
    if (name === "requests") return view.target.rows.requests.length > 0;
    if (name === "tests") return view.target.rows.suite.isThere;
    if (name === "boot") return session.hasBoot(state);
    return name !== "snapshots" || server !== null || session.file.profiles.length > 1;
  });
  useKeys(shell, (key) => actionOf(page, tabs, () => setHelp(true), key));
  const current = tabs.includes(state.view) ? state.view : "flame";
  const Current = TABS[current][1];
  return (
    <ShellContext.Provider value={shell}>
      <PageContext.Provider value={page}>
        <Header result={result} snapshot={snapshot} note={note} onHelp={() => setHelp(true)} />
        <Summary />
        <Filters />
        <main>
          <Tabs
            tabs={tabs}
            current={current}
            title={(name) => TABS[name][0]}
            onPick={(name) => store.set({ view: name })}
          />
          <div id="panel" role="tabpanel" aria-labelledby={`tab-${current}`}>
            <Current />
          </div>
        </main>
        <div ref={live} class="hidden-text" role="status" aria-live="polite" />
        {menu && <Menu menu={menu} onClose={() => setMenu(null)} />}
        {help && <Help {...profileHelp(page)} onClose={() => setHelp(false)} />}
      </PageContext.Provider>
    </ShellContext.Provider>
  );
}

/** What the keys do that work everywhere. */
function actionOf({ store, state, session }: Page, tabs: ViewName[], openHelp: () => void, key: string) {
  const profiles = session.file.profiles.length;
  const tab = tabOfKey(tabs, key);
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
  return tab ? () => store.set({ view: tab }) : actions[key];
}
