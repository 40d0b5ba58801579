import { usePage } from "../app/context.ts";
import { exactly, type Filter, type FilterKind } from "../model/filters.ts";
import { type Grouping, groupView, labelNames } from "../model/groups.ts";
import { STATE_WORDS, stateShares } from "../model/summary.ts";
import { formatDelta, formatShare, formatValue } from "../model/units.ts";

const SHOWN = 100;

interface Part {
  title: string;
  help: string;
  grouping: Grouping;
  /** The label's key, for grouping by it. */
  key: string | null;
  words?(name: string): string;
  filters(name: string): Filter[];
}

/** What each label, thread, process and state took, with the filters for them. */
export function LabelsView() {
  const { view } = usePage();
  const states = stateShares(view);
  const label = (key: string): Part => ({
    title: key === "%pid" ? "Processes" : key === "%process" ? "Names of processes" : `Label ${key}`,
    help:
      key === "%pid"
        ? "by process number"
        : key === "%process"
          ? "by the name that each had at its end"
          : "the values that the program gave it",
    grouping: `label:${key}`,
    key,
    filters: (value) => (key === "%pid" ? [{ kind: "pid", text: value }] : both(`${key}=${exactly(value)}`)),
  });
  const parts: Part[] = [
    ...labelNames(view).map(label),
    {
      title: "Threads",
      help: "the number in order of first sight, and the name",
      grouping: "thread",
      key: view.file.threads.some(({ name }) => name !== "") ? "thread" : "thread_seq",
      filters: (name) => [{ kind: "thread", text: name.split(" ")[0] }],
    },
  ];
  if (states.length > 0) {
    parts.push({
      title: "States",
      help: "what the threads were doing",
      grouping: "state",
      key: null,
      words: (name) => STATE_WORDS[name]?.long ?? name,
      filters: (name) => {
        const filter = states.find((state) => state.name === name)?.filter;
        return filter ? [filter] : [];
      },
    });
  }
  return (
    <div class="view scroll" tabIndex={0} role="group" aria-label="Labels, threads, processes and states">
      {labelNames(view).length === 0 && (
        <p class="muted">
          This profile has no labels. In a program, <code>Rperf.label(endpoint: "users#show") {"{ ... }"}</code> gives
          them, and the middlewares do it for every request and job.
        </p>
      )}
      <div class="cards">
        {parts.map((part) => (
          <PartTable key={part.grouping} part={part} />
        ))}
      </div>
    </div>
  );
}

const both = (text: string): Filter[] => [
  { kind: "tagfocus", text },
  { kind: "tagignore", text },
];

const BUTTON_WORDS: Partial<Record<FilterKind, string>> = { tagignore: "without" };

function PartTable({ part }: { part: Part }) {
  const { view, session, store, state } = usePage();
  const type = view.file.valueTypes[view.query.type];
  const groups = session.kept(`groups ${part.grouping}`, () => groupView(view, part.grouping));
  const rows = [...groups.name.keys()].filter((row) => groups.total[row] !== 0 || groups.baseTotal[row] !== 0);
  rows.sort((a, b) => groups.total[b] - groups.total[a]);
  const filtersOf = (row: number) => (row === groups.unlabelled ? [] : part.filters(groups.name[row]));
  const add = (filter: Filter) => store.set({ filters: [...state.filters, filter], zoom: [] });
  return (
    <section class="card">
      <h2>{part.title}</h2>
      <p class="muted">{part.help}</p>
      {part.key !== null && (
        <p>
          <button
            type="button"
            onClick={() => add({ kind: "tagroot", text: part.key ?? "" })}
            title="tagroot: its values become the first frames of the stacks"
          >
            Group the stacks by it
          </button>{" "}
          <button
            type="button"
            onClick={() => add({ kind: "tagleaf", text: part.key ?? "" })}
            title="tagleaf: its values become the last frames of the stacks"
          >
            Split the stacks by it
          </button>
        </p>
      )}
      <table>
        <caption class="hidden-text">{part.title}</caption>
        <thead>
          <tr>
            <th scope="col" class="number">
              total
            </th>
            <th scope="col" class="number">
              %
            </th>
            {view.base && (
              <th scope="col" class="number">
                change
              </th>
            )}
            <th scope="col">value</th>
            <th scope="col">show</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, SHOWN).map((row) => (
            <tr key={row}>
              <td class="number">{formatValue(groups.total[row], type)}</td>
              <td class="number">{formatShare(groups.total[row], view.target.sum)}</td>
              {view.base && <td class="number">{formatDelta(groups.total[row] - groups.baseTotal[row], type)}</td>}
              <th scope="row" class="name">
                {part.words?.(groups.name[row]) ?? groups.name[row]}
              </th>
              <td>
                {filtersOf(row).map((filter) => (
                  <button
                    key={filter.kind}
                    type="button"
                    class="small"
                    title={`--${filter.kind}=${filter.text}`}
                    aria-label={`${BUTTON_WORDS[filter.kind] ?? "only"} ${groups.name[row]}`}
                    onClick={() => add(filter)}
                  >
                    {BUTTON_WORDS[filter.kind] ?? "only"}
                  </button>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > SHOWN && (
        <p>
          <button type="button" class="link" onClick={() => store.set({ view: "top", group: part.grouping, sort: "" })}>
            All {rows.length.toLocaleString("en-US")} values
          </button>
        </p>
      )}
    </section>
  );
}
