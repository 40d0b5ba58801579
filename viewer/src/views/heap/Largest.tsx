import { MOST_ROWS } from "../../model/heap.ts";
import { formatCount } from "../../model/units.ts";

/** Says of a table that it has the largest rows alone, if it has as many as a file may have. */
export function Largest({ count, words }: { count: number; words: string }) {
  if (count !== MOST_ROWS) return null;
  return (
    <p class="muted">
      This page has the {formatCount(count)} largest {words}.
    </p>
  );
}
