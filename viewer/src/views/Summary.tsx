import { usePage } from "../app/context.ts";
import { type StateShare, stateShares, summary } from "../model/summary.ts";
import { formatShare, formatValue } from "../model/units.ts";

/** The first answer: where the time goes, in words and as one bar of states. */
export function Summary() {
  const { session, view, store, state } = usePage();
  const sentences = session.kept("summary", () => summary(view));
  const states = session.kept("states", () => stateShares(view));
  const { losses } = view.target.rows.meta;
  return (
    <section class="summary" aria-label="Where it goes">
      {losses.map(({ counter, text }) => (
        <p key={counter} class="loss">
          <span aria-hidden="true">⚠ </span>
          {text}
        </p>
      ))}
      {view.target.idle > 0 && <IdleSwitch />}
      <p class="words">
        {sentences.map((sentence, i) => (
          <span key={i}>
            {sentence.map((piece) =>
              typeof piece === "string" ? (
                piece
              ) : (
                <button
                  key={piece.method}
                  type="button"
                  class="link"
                  onClick={() => store.set({ view: "callers", method: session.methodName(state, piece.method) })}
                >
                  {piece.name.length > 120 ? `${piece.name.slice(0, 120)}…` : piece.name}
                </button>
              ),
            )}{" "}
          </span>
        ))}
      </p>
      {states.length > 0 && <StateBar states={states} />}
    </section>
  );
}

/** Threads that wait for work would be most of the profile of a server. */
function IdleSwitch() {
  const { view, store, state } = usePage();
  const time = formatValue(view.target.idle, view.file.valueTypes[view.query.type]);
  return (
    <p class="idle">
      <label title="They wait for work, outside of any request, job or code of the program">
        <input
          type="checkbox"
          checked={state.idle}
          onChange={(event) => store.set({ idle: event.currentTarget.checked, zoom: [] })}
        />{" "}
        Idle threads: {time}
        {state.idle ? "" : " hidden"}
      </label>
    </p>
  );
}

function StateBar({ states }: { states: StateShare[] }) {
  const { view, store, state } = usePage();
  const type = view.file.valueTypes[view.query.type];
  const sum = states.reduce((sum, { value }) => sum + Math.max(0, value), 0);
  return (
    <>
      <div class="states" aria-hidden="true">
        {states.map(({ name, value }) => (
          <span key={name} class={`state state-${name}`} style={{ width: `${(100 * Math.max(0, value)) / sum}%` }} />
        ))}
      </div>
      <ul class="state-legend">
        {states.map(({ name, words, value, filter }) => (
          <li key={name}>
            <button
              type="button"
              class="link"
              disabled={!filter || value === 0}
              title={`${words.long}: a click shows only this`}
              onClick={() => filter && store.set({ filters: [...state.filters, filter], zoom: [] })}
            >
              <span class={`swatch state-${name}`} aria-hidden="true" /> {words.short}
            </button>{" "}
            {formatShare(value, sum)} <span class="muted">{formatValue(value, type)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
