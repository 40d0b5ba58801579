import { usePage } from "../app/context.ts";
import { groupView } from "../model/groups.ts";
import { formatShare } from "../model/units.ts";

const SHOWN = 15;

/** The heaviest methods to choose from, where a view is about one method. */
export function MethodPicker({ question, filter = () => true }: { question: string; filter?(frame: number): boolean }) {
  const { session, view, store, state, found } = usePage();
  const groups = session.kept("groups method", () => groupView(view, "method"));
  const rows = [...groups.name.keys()]
    .filter((row) => groups.total[row] > 0 && filter(groups.frame[row]) && (!found || found.frames[groups.frame[row]]))
    .sort((a, b) => groups.self[b] - groups.self[a])
    .slice(0, SHOWN);
  return (
    <div class="view picker">
      <h2>{question}</h2>
      <p class="muted">
        {found
          ? "These are the heaviest ones that the search finds."
          : "These take most themselves; search for others."}
      </p>
      <ul>
        {rows.map((row) => (
          <li key={row}>
            <span class="share">{formatShare(groups.self[row], view.target.sum)}</span>
            <button
              type="button"
              class="link"
              onClick={() => store.set({ method: session.methodName(state, groups.frame[row]) })}
            >
              {groups.name[row]}
            </button>
            <span class="muted note">{groups.place[row]}</span>
          </li>
        ))}
      </ul>
      {rows.length === 0 && <p class="empty">There is nothing to show.</p>}
    </div>
  );
}
