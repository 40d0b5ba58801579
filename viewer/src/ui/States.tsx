import { formatShare } from "../model/units.ts";

/** A state's part of something. */
export interface StatePart {
  title: string;
  help: string;
  /** The state whose colour it has. */
  state: string;
  value: number;
}

/** How a sum is made up of states: a bar, and words. */
export function States({ parts, total, words }: { parts: StatePart[]; total: number; words(value: number): string }) {
  return (
    <>
      <div class="states" aria-hidden="true">
        {parts.map(({ title, state, value }) => (
          <span
            key={title}
            class={`state state-${state}`}
            style={{ width: `${total > 0 ? (100 * Math.max(0, value)) / total : 0}%` }}
          />
        ))}
      </div>
      <ul class="state-legend">
        {parts.map(({ title, help, state, value }) => (
          <li key={title} title={help}>
            <span class={`swatch state-${state}`} aria-hidden="true" /> {title} {formatShare(value, total)}{" "}
            <span class="muted">{words(value)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
