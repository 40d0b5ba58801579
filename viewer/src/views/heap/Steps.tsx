import type { Step } from "../../format/heap.ts";
import { stepText } from "../../model/heap.ts";
import { useHeap, useShowInMap } from "./context.ts";

/** A way from a holder down, one step below the other. */
export function Steps({ holder, steps }: { holder: string; steps: Step[] }) {
  const { tree } = useHeap();
  const show = useShowInMap();
  const row = tree.holder(holder, steps[0]?.className);
  return (
    <ol class="steps">
      <li>
        {row > 0 ? (
          <button type="button" class="link" title="In the map" onClick={() => show(row)}>
            {holder}
          </button>
        ) : (
          holder || "(no name)"
        )}
      </li>
      {steps.map((step, i) => (
        <li key={i}>{stepText(step)}</li>
      ))}
    </ol>
  );
}
