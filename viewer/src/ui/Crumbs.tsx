import { formatShare } from "../model/units.ts";

/** Rows of a path that are shown; the last ones. */
const CRUMBS = 6;

interface Props {
  /** The rows from the outermost one to the one that is zoomed into, without row 0, which is all. */
  path: number[];
  onZoom(row: number): void;
  name(row: number): string;
  weight(row: number): number;
  /** What all have together. */
  all: number;
  words(weight: number): string;
}

/** Where a graph is zoomed to, with ways back. */
export function Crumbs({ path, onZoom, name, weight, all, words }: Props) {
  const left = Math.max(0, path.length - CRUMBS);
  const zoom = path.at(-1) ?? 0;
  return (
    <nav class="crumbs" aria-label="Zoom">
      <button type="button" class="link" disabled={zoom === 0} onClick={() => onZoom(0)}>
        All: {words(weight(0))}
      </button>
      {left > 0 && <span class="muted"> › {left} more</span>}
      {path.slice(left).map((row) => (
        <span key={row}>
          <span class="muted"> › </span>
          <button type="button" class="link" disabled={row === zoom} onClick={() => onZoom(row)}>
            {name(row).slice(0, 80)}
          </button>
        </span>
      ))}
      {zoom !== 0 && (
        <span class="muted">
          {" "}
          {words(weight(zoom))}, {formatShare(weight(zoom), all)} of all
        </span>
      )}
    </nav>
  );
}
