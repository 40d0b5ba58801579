// Why the collections ran that slow requests had to wait for, by samples: as crates/rperf-report/src/requests/why/collections.rs.
import type { Requests } from "../format/requests.ts";
import { endpointTimes, excess, kindsOf, type Means, meansOf, PART_OF_STATE, SITES } from "./requests.ts";
import type { View } from "./view.ts";

/** The label that samples of collections have. */
const GC_CAUSE = "%gc";

/** A reason why collections ran. */
export interface Collections {
  cause: string;
  /** Their time in a request. */
  means: Means;
  /** Their part of what the tail collects longer. */
  share: number;
}

/** The causes of collections whose time grew most, in the samples that pass the filters. */
export function collectionsOf(view: View, requests: Requests): Collections[] {
  const { file, target } = view;
  const { rows, kept } = target;
  const wall = file.valueTypes.findIndex((it) => it.name === "wall" && it.unit === "nanoseconds");
  const values = rows.values[wall];
  const kinds = kindsOf(view, requests);
  const causes = file.labelSets.map((set) => set.find(([key]) => key === GC_CAUSE)?.[1]);
  const isGc = file.states.map(({ name }) => PART_OF_STATE[name] === "gc");
  const sums = new Map<string, [number, number]>();
  for (let row = 0; values && row < values.length; row++) {
    const kind = kept[row] && isGc[rows.state[row]] ? kinds[rows.labelSet[row]] : -1;
    const cause = causes[rows.labelSet[row]];
    if ((kind !== 0 && kind !== 1) || cause === undefined) continue;
    const sum = sums.get(cause) ?? [0, 0];
    sum[kind] += values[row];
    sums.set(cause, sum);
  }
  const all = excess(endpointTimes(requests).parts.gc);
  const found = [...sums].map(([cause, of]): Collections => {
    const means = meansOf(requests, of);
    return { cause, means, share: all > 0 ? Math.min(1, excess(means) / all) : 0 };
  });
  const grown = found.filter(({ means }) => excess(means) > 0);
  grown.sort((a, b) => excess(b.means) - excess(a.means) || (a.cause < b.cause ? -1 : 1));
  return grown.slice(0, SITES);
}
