import type { Step } from "../../format/heap.ts";
import { stepText } from "../../model/heap.ts";
import { useHeap, useShowInMap } from "./context.ts";

/** A way from a holder down, one step below the other; `within`: the holder of which that is a part. */
export function Steps({ holder, steps, within = "" }: { holder: string; steps: Step[]; within?: string }) {
  const { tree } = useHeap();
  const show = useShowInMap();
  // A part of another holder has no row in the tree by its own name.
  const inTree = within || holder;
  const row = tree.holder(inTree, within === "" ? steps[0]?.className : undefined);
  return (
    <ol class="steps">
      <li>
        {within !== "" && `${holder || "(no name)"}, part of `}
        {row > 0 ? (
          <button type="button" class="link" title="In the map" onClick={() => show(row)}>
            {inTree}
          </button>
        ) : (
          inTree || "(no name)"
        )}
      </li>
      {steps.map((step, i) => (
        <li key={i}>{stepText(step)}</li>
      ))}
    </ol>
  );
}
