// Why the collections ran that slow requests had to wait for, by samples: as crates/rperf-report/src/requests/why/collections.rs.
import type { Requests } from "../format/requests.ts";
import { excess, kindsOf, type Means, meansOf, PART_OF_STATE, SITES } from "./requests.ts";
import type { View } from "./view.ts";

/** The label that samples of collections have. */
const GC_CAUSE = "%gc";

/** A reason why collections ran. */
export interface Collections {
  cause: string;
  /** Their time in a request. */
  means: Means;
  /** Their part of what the tail collects longer: of all causes whose time grew, as others may have become less. */
  share: number;
}

/** The causes of collections whose time grew most, in the samples that pass the filters. */
export function collectionsOf(view: View, requests: Requests): Collections[] {
  const { file, target } = view;
  const { rows, kept } = target;
  const wall = file.valueTypes.findIndex((it) => it.name === "wall" && it.unit === "nanoseconds");
  const values = rows.values[wall];
  const kinds = kindsOf(view, requests);
  const causeOf = file.labelSets.map((set) => set.find(([key]) => key === GC_CAUSE)?.[1]);
  const isGc = file.states.map(({ name }) => PART_OF_STATE[name] === "gc");
  const sums = new Map<string | undefined, [number, number]>();
  for (let row = 0; values && row < values.length; row++) {
    const kind = kept[row] && isGc[rows.state[row]] ? kinds[rows.labelSet[row]] : -1;
    const cause = causeOf[rows.labelSet[row]];
    if (kind !== 0 && kind !== 1) continue;
    const sum = sums.get(cause) ?? [0, 0];
    sum[kind] += values[row];
    sums.set(cause, sum);
  }
  const means = [...sums].map(([cause, of]) => ({ cause, means: meansOf(requests, of) }));
  const grown = means.filter(({ means }) => excess(means) > 0);
  const all = grown.reduce((sum, { means }) => sum + excess(means), 0);
  const causes = grown.flatMap(({ cause, means }): Collections[] =>
    cause === undefined ? [] : [{ cause, means, share: excess(means) / all }],
  );
  causes.sort((a, b) => excess(b.means) - excess(a.means) || (a.cause < b.cause ? -1 : 1));
  return causes.slice(0, SITES);
}
