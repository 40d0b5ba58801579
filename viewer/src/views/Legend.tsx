import { usePage } from "../app/context.ts";
import { categoryColour, changeColour, cpuColour, css } from "../flame/colours.ts";
import { categoryWords } from "../model/groups.ts";

/** What the colours of the flame graph mean. */
export function Legend() {
  const { state, view, dark, session } = usePage();
  const scale = (name: string, from: string, to: string, colour: (at: number) => string) => (
    <span class="legend">
      {from}
      {[0, 0.25, 0.5, 0.75, 1].map((at) => (
        <span key={`${name}${at}`} class="swatch" style={{ background: colour(at) }} />
      ))}
      {to}
    </span>
  );
  if (state.colouring === "change" && view.base) {
    return scale("change", "less than the base", "more", (at) => css(changeColour(2 * at - 1, dark)));
  }
  if (state.colouring === "cpu" && session.beside(state, "cpu") && session.beside(state, "wall")) {
    return scale("cpu", "waits", "computes", (at) => css(cpuColour(at, dark)));
  }
  const used = new Set(view.file.frames.category);
  return (
    <span class="legend">
      {view.file.categories.map(
        (name, category) =>
          used.has(category) && (
            <span key={name} class="legend-item">
              <span class="swatch" style={{ background: css(categoryColour(name, 2, dark)) }} />
              {categoryWords(name)}
            </span>
          ),
      )}
    </span>
  );
}
