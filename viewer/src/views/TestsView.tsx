import { usePage } from "../app/context.ts";
import type { Suite, SuiteFactory, SuiteFile, SuiteSums, SuiteTest } from "../format/suite.ts";
import { EXAMPLE, GROUP, labelValues, statesOf, testNote, testTitle, withAllTests, withTest } from "../model/suite.ts";
import { counted, formatCount, formatTime } from "../model/units.ts";
import { States } from "../ui/States.tsx";
import { Bar, type Column, number, Table } from "../ui/Table.tsx";

/** What the tests of a suite took: the slowest ones, their files, and factories. */
export function TestsView() {
  const { view, session } = usePage();
  const suite = view.target.rows.suite.suite();
  if (!suite) return null;
  const has = session.kept("labels of tests", () => ({
    example: labelValues(view.file, EXAMPLE),
    group: labelValues(view.file, GROUP),
  }));
  return (
    <div class="view scroll pinned requests tests" tabIndex={0} role="group" aria-label="Tests">
      <Total suite={suite} hasSamples={has.example.size > 0} />
      <Tests suite={suite} has={has.example} />
      <Files suite={suite} has={has.group} />
      {suite.factories.length > 0 && <Factories suite={suite} />}
    </div>
  );
}

/** All together: its states, and how much of it is garbage collection. */
function Total({ suite: { total }, hasSamples }: { suite: Suite; hasSamples: boolean }) {
  const { state, store } = usePage();
  const states = statesOf(total);
  const open = () =>
    store.set({ view: "top", group: "library", sort: "", filters: withAllTests(state.filters), zoom: [] });
  return (
    <>
      <p class="tests-total">
        {counted(total.count, "test")} in {counted(total.files, "file")}: <strong>{formatTime(total.wall)}</strong>
        {total.objects !== null && `; ${counted(total.objects, "object")}`}
      </p>
      <States
        parts={states.map((part) => ({ ...part, value: total[part.key] }))}
        total={total.wall}
        words={formatTime}
      />
      <p class="muted">
        Times and objects are exact: those of the threads that run tests, in all processes together. Filters don't
        change them. A test or file that has samples opens the flame graph of these alone.
      </p>
      {total.withoutRow > 0 && (
        <p class="muted">
          {counted(total.withoutRow, "test")} ran beyond those that have rows of their own; they are told by file.
        </p>
      )}
      <div class="tools">
        <button type="button" disabled={!hasSamples} onClick={open}>
          Samples of all tests, by gem
        </button>
      </div>
    </>
  );
}

/** Columns of what an entry took: in all, and in each state. */
function sumColumns<T extends SuiteSums>(suite: Suite): Column<T>[] {
  const { total } = suite;
  return [
    {
      key: "wall",
      title: "total",
      numeric: true,
      value: ({ wall }) => wall,
      cell: ({ wall }) => <Bar share={wall / total.wall}>{formatTime(wall)}</Bar>,
    },
    ...statesOf(total).map(
      ({ key, title, help }): Column<T> => ({
        key,
        title,
        help,
        numeric: true,
        value: (row) => row[key],
        cell: (row) => formatTime(row[key]),
      }),
    ),
    {
      key: "objects",
      title: "objects",
      help: "objects that were made",
      numeric: true,
      value: ({ objects }) => objects ?? -1,
      cell: ({ objects }) => (objects === null ? "–" : formatCount(objects)),
    },
  ];
}

/** How many rows only the profile has. */
function Left({ all, rows }: { all: number; rows: unknown[] }) {
  return all > rows.length ? (
    <p class="muted">
      {formatCount(all - rows.length)} more are not in this page; <code>rperf report --tests -n 0</code> tells all.
    </p>
  ) : null;
}

/** What opens the flame graph of a test or a file. */
function useOpen(key: string) {
  const { state, store } = usePage();
  return (value: string) =>
    store.set({
      view: "flame",
      zoom: [],
      inverted: false,
      sandwich: false,
      filters: withTest(state.filters, key, value),
    });
}

function Tests({ suite, has }: { suite: Suite; has: Set<string> }) {
  const { state, store } = usePage();
  const open = useOpen(EXAMPLE);
  const runsAgain = suite.tests.some(({ name, count }) => name !== "" && count > 1);
  const [total, ...more] = sumColumns<SuiteTest>(suite);
  return (
    <section aria-label="Slowest tests">
      <h2 class="subject">Slowest tests</h2>
      <Table
        caption="Slowest tests"
        columns={[
          total,
          ...(runsAgain ? [number<SuiteTest>("runs", "how often it ran", ({ count }) => count)] : []),
          ...more,
        ]}
        rows={suite.tests}
        sort={state.testSort}
        onSort={(testSort) => store.set({ testSort }, true)}
        name={testTitle}
        nameTitle="test"
        note={testNote}
        onOpen={({ name }) => open(name)}
        canOpen={({ name }) => name !== "" && has.has(name)}
        empty="There are no tests."
      />
      <Left all={suite.total.tests} rows={suite.tests} />
    </section>
  );
}

function Files({ suite, has }: { suite: Suite; has: Set<string> }) {
  const { state, store } = usePage();
  const open = useOpen(GROUP);
  const [total, ...more] = sumColumns<SuiteFile>(suite);
  return (
    <section aria-label="Files">
      <h2 class="subject">Files</h2>
      <Table
        caption="Files"
        columns={[
          total,
          number<SuiteFile>("tests", "how often its tests ran", ({ count }) => count),
          number<SuiteFile>("hooks", "what runs beside tests, such as before(:all)", ({ hooks }) => hooks, formatTime),
          ...more,
        ]}
        rows={suite.files}
        sort={state.testFileSort}
        onSort={(testFileSort) => store.set({ testFileSort }, true)}
        name={({ name }) => name || "(further files)"}
        nameTitle="file"
        onOpen={({ name }) => open(name)}
        canOpen={({ name }) => name !== "" && has.has(name)}
        empty="There are no files."
      />
      <Left all={suite.total.files} rows={suite.files} />
    </section>
  );
}

function Factories({ suite }: { suite: Suite }) {
  const { state, store } = usePage();
  const columns: Column<SuiteFactory>[] = [
    number("own", "without the factories that it calls", ({ own }) => own, formatTime),
    number("total", "with the factories that it calls", ({ wall }) => wall, formatTime),
    number("runs", "how often it ran", ({ count }) => count),
    number("top-level", "how often no other factory called it", ({ topLevel }) => topLevel),
    sumColumns<SuiteFactory>(suite).slice(-1)[0],
  ];
  return (
    <section aria-label="Factories">
      <h2 class="subject">Factories</h2>
      <Table
        caption="Factories"
        columns={columns}
        rows={suite.factories}
        sort={state.factorySort}
        onSort={(factorySort) => store.set({ factorySort }, true)}
        name={({ name }) => name || "(further factories)"}
        nameTitle="factory"
        empty="There are no factories."
      />
      <Left all={suite.total.factories} rows={suite.factories} />
    </section>
  );
}
