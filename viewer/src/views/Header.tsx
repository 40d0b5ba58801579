import { usePage } from "../app/context.ts";
import type { Found } from "../model/search.ts";
import { formatShare, typeWords } from "../model/units.ts";
import { SearchBox } from "../ui/SearchBox.tsx";
import { ThemeButton } from "../ui/ThemeButton.tsx";
import { Live } from "./Live.tsx";

/** The title, what to look at, the search, and the page's own buttons. */
export function Header({
  result,
  snapshot,
  note,
  onHelp,
}: {
  result: Found | string | null;
  snapshot: string;
  note: string;
  onHelp(): void;
}) {
  const { store, session, server, view } = usePage();
  const { profiles, valueTypes } = session.file;
  const { meta } = view.target.rows;
  return (
    <header>
      <h1>
        <span class="brand">rperf</span> {snapshot || meta.title}
      </h1>
      {profiles.length > 1 && (
        <>
          <label>
            Profile{" "}
            <select
              value={view.query.target}
              onChange={(event) => store.set({ profile: Number(event.currentTarget.value), zoom: [] })}
            >
              {profiles.map(({ meta }, i) => (
                <option key={`${i} ${meta.title}`} value={i}>
                  {meta.title}
                </option>
              ))}
            </select>
          </label>
          <label>
            compared with{" "}
            <select
              value={view.query.base ?? -1}
              onChange={(event) => store.set({ base: Number(event.currentTarget.value) })}
            >
              <option value={-1}>nothing</option>
              {profiles.map(
                ({ meta }, i) =>
                  i !== view.query.target && (
                    <option key={`${i} ${meta.title}`} value={i}>
                      {meta.title}
                    </option>
                  ),
              )}
            </select>
          </label>
        </>
      )}
      {valueTypes.length > 1 && (
        <label>
          Measure{" "}
          <select
            value={view.query.type}
            onChange={(event) => store.set({ type: valueTypes[Number(event.currentTarget.value)].name })}
          >
            {valueTypes.map((type, i) => (
              <option key={`${i} ${type.name}`} value={i}>
                {typeWords(type)}
              </option>
            ))}
          </select>
        </label>
      )}
      {server?.isLive && <Live server={server} follows={snapshot === ""} note={note} />}
      <Search result={result} />
      <ThemeButton />
      <button type="button" title="Keys, and what the words mean (?)" onClick={onHelp}>
        Help
      </button>
    </header>
  );
}

function Search({ result }: { result: Found | string | null }) {
  const { state, store, view } = usePage();
  const words =
    result === null
      ? ""
      : typeof result === "string"
        ? result
        : result.count === 0
          ? "Nothing matches."
          : `${result.count.toLocaleString("en-US")} ${result.count === 1 ? "method" : "methods"}, ${formatShare(result.total, view.target.sum)}`;
  return (
    <SearchBox
      label="Search methods and files"
      value={state.search}
      onSearch={(search) => store.set({ search }, true)}
      words={words}
      isProblem={typeof result === "string"}
    >
      <label title="Take the text as a regular expression">
        <input
          type="checkbox"
          checked={state.regexp}
          onChange={(event) => store.set({ regexp: event.currentTarget.checked }, true)}
        />{" "}
        regexp
      </label>
    </SearchBox>
  );
}
