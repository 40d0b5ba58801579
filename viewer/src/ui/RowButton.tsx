import type { ComponentChildren } from "preact";

/** A button in a table's row. `label` says to people who hear the page which row it is about. */
export function RowButton(props: { label: string; disabled?: boolean; onClick(): void; children: ComponentChildren }) {
  const { label, disabled, onClick, children } = props;
  return (
    <button type="button" class="small" aria-label={label} disabled={disabled} onClick={onClick}>
      {children}
    </button>
  );
}
