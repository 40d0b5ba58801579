import { usePage } from "../app/context.ts";
import {
  type Boot,
  type Initializer,
  type LoadBranches,
  type LoadedFile,
  type LoadedGem,
  placeName,
} from "../model/boot.ts";
import { ALL_LOADING } from "../model/filters.ts";
import { rowStateNames } from "../model/states.ts";
import { STATE_WORDS } from "../model/summary.ts";
import { counted, formatCount, formatShare, formatValue } from "../model/units.ts";
import { States } from "../ui/States.tsx";
import { Bar, type Column, number, Table } from "../ui/Table.tsx";
import { TreeGrid } from "../ui/TreeGrid.tsx";

/** What the program's start took: its files, gems and initializers, and which file loads which. */
export function BootView() {
  const { session, state } = usePage();
  const boot = session.boot(state);
  const tables = session.kept("tables of the boot", () => ({
    files: boot.files(),
    gems: boot.gems(),
    initializers: boot.initializers(),
    branches: boot.branches(),
  }));
  return (
    <div class="view scroll pinned requests boot" tabIndex={0} role="group" aria-label="Boot">
      <Total boot={boot} files={tables.files.filter(({ place }) => place.kind === "file").length} />
      <Files all={boot.total} files={tables.files} />
      <Gems all={boot.total} gems={tables.gems} />
      {tables.initializers.length > 0 && <Initializers all={boot.total} initializers={tables.initializers} />}
      <Branches all={boot.total} branches={tables.branches} />
    </div>
  );
}

/** How values of the chosen type are written. */
function useWords() {
  const { view } = usePage();
  const type = view.file.valueTypes[view.query.type];
  return (value: number) => formatValue(value, type);
}

/** What opens the flame graph of a part of the boot, in place of another part. */
function useOpen() {
  const { state, store } = usePage();
  return ({ filter }: { filter: string }) =>
    store.set({
      view: "flame",
      zoom: [],
      inverted: false,
      sandwich: false,
      filters: [...state.filters.filter(({ kind }) => kind !== "boot"), { kind: "boot", text: filter }],
    });
}

/** All together: its states, and the objects that it makes. */
function Total({ boot, files }: { boot: Boot; files: number }) {
  const { session, state, view } = usePage();
  const words = useWords();
  const open = useOpen();
  const { target, file, query } = view;
  const { states } = boot.sums(target.rows.values[query.type]);
  const objects = session.measured(state, "alloc_objects");
  const parts = rowStateNames(file).map((name) => {
    const { short, long } = STATE_WORDS[name] ?? { short: name, long: name };
    return { title: short, help: long, state: name, value: states.get(name) ?? 0 };
  });
  const shown = parts.filter(({ value }) => value > 0);
  const all = target.keptForBoot.reduce(
    (sum, isKept, row) => sum + (isKept ? (target.rows.values[query.type]?.[row] ?? 0) : 0),
    0,
  );
  return (
    <>
      <p>
        Loading {counted(files, "file")}: <strong>{words(boot.total)}</strong> ({formatShare(boot.total, all)} of all)
        {boot.program !== 0 && `, of which ${words(boot.program)} are the program's own first file`}
        {objects >= 0 && objects !== query.type && `; ${counted(boot.sums(target.rows.values[objects]).all, "object")}`}
      </p>
      {shown.length > 1 && <States parts={shown} total={boot.total} words={words} />}
      <p class="muted">
        own: the code of a file itself, with the methods that it calls. load: looking for, reading and compiling it. A
        line stands for the files that it loads where more isn't known. A row opens the flame graph of its total.
      </p>
      <div class="tools">
        <button type="button" disabled={boot.total === 0} onClick={() => open({ filter: ALL_LOADING })}>
          Flame graph of all loading
        </button>
      </div>
    </>
  );
}

/** A column of values with their shares of all loading. */
function bar<T>(key: string, help: string, value: (row: T) => number, all: number, words: (value: number) => string) {
  const cell = (row: T) => <Bar share={value(row) / all}>{words(value(row))}</Bar>;
  return { key, title: key, help, numeric: true, value, cell } satisfies Column<T>;
}

const SELF = "own time and load of its files";
const TOTAL = "with all that it loads";

function Files({ all, files }: { all: number; files: LoadedFile[] }) {
  const { state, store } = usePage();
  const words = useWords();
  return (
    <section aria-label="Files">
      <h2 class="subject">Files</h2>
      <Table<LoadedFile>
        caption="Files"
        columns={[
          bar<LoadedFile>("self", "own and load", ({ self }) => self, all, words),
          number<LoadedFile>("own", "its own code, with the methods that this calls", ({ own }) => own, words),
          number<LoadedFile>("load", "looking for, reading and compiling it", ({ load }) => load, words),
          number<LoadedFile>("total", TOTAL, ({ total }) => total, words),
        ]}
        rows={files}
        sort={state.bootFileSort}
        onSort={(bootFileSort) => store.set({ bootFileSort }, true)}
        name={({ name }) => name}
        nameTitle="file"
        note={({ from }) => (from ? `from ${placeName(from)}` : "")}
        onOpen={useOpen()}
        empty="No files were loaded."
      />
    </section>
  );
}

function Gems({ all, gems }: { all: number; gems: LoadedGem[] }) {
  const { state, store } = usePage();
  const words = useWords();
  return (
    <section aria-label="Gems">
      <h2 class="subject">Gems</h2>
      <Table<LoadedGem>
        caption="Gems"
        columns={[
          bar<LoadedGem>("self", SELF, ({ self }) => self, all, words),
          number<LoadedGem>("total", TOTAL, ({ total }) => total, words),
          number<LoadedGem>("files", "how many of its files took time", ({ files }) => files, formatCount),
        ]}
        rows={gems}
        sort={state.bootGemSort}
        onSort={(bootGemSort) => store.set({ bootGemSort }, true)}
        name={({ name }) => name}
        nameTitle="gem"
        onOpen={useOpen()}
        empty="No files were loaded."
      />
    </section>
  );
}

function Initializers({ all, initializers }: { all: number; initializers: Initializer[] }) {
  const { state, store } = usePage();
  const words = useWords();
  return (
    <section aria-label="Initializers of Rails">
      <h2 class="subject">Initializers of Rails</h2>
      <Table<Initializer>
        caption="Initializers of Rails"
        columns={[bar<Initializer>("total", "all that the block calls", ({ total }) => total, all, words)]}
        rows={initializers}
        sort={state.initializerSort}
        onSort={(initializerSort) => store.set({ initializerSort }, true)}
        name={({ name }) => name}
        nameTitle="initializer"
        note={({ place }) => placeName(place)}
        onOpen={useOpen()}
        empty="No initializers ran."
      />
    </section>
  );
}

/** Rows of newer data that have the same names above them. */
function sameBranch(from: LoadBranches, to: LoadBranches) {
  const same = (row: number): number => {
    if (row <= 0) return row;
    const above = same(from.parent[row]);
    return above < 0 ? -1 : (to.children(above).find((kid) => to.filter[kid] === from.filter[row]) ?? -1);
  };
  return same;
}

function Branches({ all, branches }: { all: number; branches: LoadBranches }) {
  const { session } = usePage();
  const words = useWords();
  const open = useOpen();
  const openRow = (row: number) => open({ filter: branches.filter[row] });
  return (
    <section aria-label="Which file loads which">
      <h2 class="subject">Which file loads which</h2>
      <p class="muted">
        Arrow keys open and close rows; * opens the path where most of it goes; Enter opens the flame graph.
      </p>
      <TreeGrid
        label="Which file loads which"
        tree={branches}
        data={session}
        same={sameBranch}
        columns={[
          { title: "total", cell: (row) => <Bar share={branches.total[row] / all}>{words(branches.total[row])}</Bar> },
          { title: "%", cell: (row) => formatShare(branches.total[row], all) },
          { title: "self", cell: (row) => (branches.self[row] === 0 ? "" : words(branches.self[row])) },
        ]}
        nameTitle="file"
        name={(row) => (
          <button
            type="button"
            class="link"
            tabIndex={-1}
            onClick={(event) => {
              event.stopPropagation();
              openRow(row);
            }}
          >
            {branches.name[row]}
          </button>
        )}
        onOpen={openRow}
      />
    </section>
  );
}
