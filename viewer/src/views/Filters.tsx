import { useState } from "preact/hooks";
import { usePage } from "../app/context.ts";
import { asFlags, FILTER_HELP, FILTER_KINDS, type FilterKind, filterProblem } from "../model/filters.ts";

/** The filters that are on, and a way to add one. They mean what the command's options mean. */
export function Filters() {
  const { state, store, say } = usePage();
  const { filters } = state;
  const line = asFlags(filters);
  const [kind, setKind] = useState<FilterKind>("focus");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState("");
  const [flags, setFlags] = useState("");
  const set = (next: typeof filters) => store.set({ filters: next, zoom: [] });
  const add = (event: Event) => {
    event.preventDefault();
    const wrong = filterProblem({ kind, text });
    setProblem(wrong === null ? "" : `The filter ${wrong}.`);
    if (wrong !== null) return;
    set([...filters, { kind, text }]);
    setText("");
  };
  const copy = () => {
    navigator.clipboard?.writeText(line).then(
      () => say("The options were copied."),
      () => setFlags(line),
    );
    if (!navigator.clipboard) setFlags(line);
  };
  return (
    <section class="filters" aria-label="Filters">
      {filters.map((filter, i) => (
        <span key={`${i} ${filter.kind} ${filter.text}`} class="chip" title={FILTER_HELP[filter.kind]}>
          <span class="chip-kind">{filter.kind}</span> {filter.text}
          <button
            type="button"
            aria-label={`remove the filter ${filter.kind} ${filter.text}`}
            onClick={() => set(filters.filter((_, other) => other !== i))}
          >
            ×
          </button>
        </span>
      ))}
      <form onSubmit={add}>
        <select
          aria-label="Kind of filter"
          value={kind}
          title={FILTER_HELP[kind]}
          onChange={(event) => setKind(event.currentTarget.value as FilterKind)}
        >
          {FILTER_KINDS.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <input
          aria-label="Filter"
          placeholder={FILTER_HELP[kind]}
          title={FILTER_HELP[kind]}
          value={text}
          maxLength={200}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit">Add filter</button>
      </form>
      {filters.length > 0 && (
        <>
          {line !== "" && (
            <button type="button" onClick={copy} title={line}>
              Copy as CLI flags
            </button>
          )}
          <button type="button" onClick={() => set([])}>
            Remove all
          </button>
        </>
      )}
      {flags !== "" && line !== "" && <code class="flags">{line}</code>}
      {problem !== "" && (
        <span class="problem" role="alert">
          {problem}
        </span>
      )}
    </section>
  );
}
