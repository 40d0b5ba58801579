// What the page tells of requests, in the form of `rperf why --json` and `rperf report --ops`.
import type { ProfileFile } from "../../src/format/decode.ts";
import type { Op } from "../../src/format/ops.ts";
import { CLASSES, type Requests, type RequestValues } from "../../src/format/requests.ts";
import { collectionsOf } from "../../src/model/collections.ts";
import { opMeans } from "../../src/model/ops.ts";
import type { Place } from "../../src/model/places.ts";
import {
  type EndpointTimes,
  excess,
  hasEnough,
  holderShare,
  labelOf,
  type Means,
  PARTS,
  type Part,
  unknownShare,
  why,
} from "../../src/model/requests.ts";
import { Views } from "../../src/model/view.ts";
import { query } from "./small.ts";

const KEYS: Record<Part, string> = {
  running: "running_ns",
  gvlWait: "gvl_wait_ns",
  blocked: "blocked_ns",
  gc: "gc_ns",
  suspended: "suspended_ns",
};
const byKey = <T>(of: (part: Part) => T) => Object.fromEntries(PARTS.map((part) => [KEYS[part], of(part)]));
const orNull = (isKnown: boolean, value: number) => (isKnown ? value : null);
/** Of a class without any request nothing is known. */
const means = ({ classes }: Requests, of: Means) => {
  const [typical, tail] = [classes.typical.count > 0, classes.tail.count > 0];
  return {
    typical: orNull(typical, of.typical),
    tail: orNull(tail, of.tail),
    difference: orNull(typical && tail, excess(of)),
  };
};

/** The times of an endpoint as `rperf why --json` has them. */
export function timesJson({ requests, parts, excess }: EndpointTimes) {
  const { key, name, count, p50, p95, p99, max } = requests;
  const { typical, tail } = requests.classes;
  return {
    key,
    name,
    requests: count,
    classes: Object.fromEntries(CLASSES.map((kind) => [kind, requests.classes[kind].count])),
    p50_ns: p50,
    p95_ns: p95,
    p99_ns: p99,
    max_ns: max,
    excess_ns: orNull(typical.count > 0 && tail.count > 0, excess),
    means: byKey((part) => means(requests, parts[part])),
  };
}

/** Its ops as `rperf why --json` has them. */
export function opsJson(requests: Requests) {
  return opMeans(requests).map(({ op, calls, wall }) => ({
    name: op.name,
    per_request_ns: means(requests, wall),
    repeated_percent: op.repeated > 0 ? (op.repeated * 100) / requests.count : null,
    calls: {
      typical: orNull(requests.classes.typical.count > 0, calls.typical),
      tail: orNull(requests.classes.tail.count > 0, calls.tail),
    },
    app: op.app && { name: op.app.name, path: op.app.file, line: op.app.line },
  }));
}

/** What all of them took as `rperf report --format json --ops` has it. */
export const sumsJson = (op: Op) => ({
  name: op.name,
  calls: op.calls,
  wall_ns: op.wall,
  ...byKey((part) => op[part]),
  blocked_p50_ns: op.p50,
  blocked_p99_ns: op.p99,
  blocked_max_ns: op.max,
  objects: op.objects,
  // Calls in requests are none of these.
  displaced_calls: 0,
});

export const rounded = (percent: number) => Math.round(percent * 1e6) / 1e6;

const roundedOrNull = (share: number | null) => (share === null ? null : rounded(100 * share));

/** The same of the answer for one. */
export function whyJson(file: ProfileFile, requests: Requests) {
  const view = new Views(file).view(query([], { type: file.defaultType }));
  const found = why(view, requests);
  const method = (frame: number) =>
    frame < 0 ? null : { name: file.frames.name[frame], path: file.frames.file[frame] };
  const place = (place: Place) => ({
    method: method(place.method),
    app: place.app < 0 ? null : { ...method(place.app), line: place.line },
  });
  const values = (it: RequestValues) => ({ wall_ns: it.wall, ...byKey((part) => it[part]), objects: it.objects });
  return {
    ...timesJson(found.times),
    enough: hasEnough(requests),
    objects: found.objects && means(requests, found.objects),
    sites: byKey((part) =>
      found.sites[part].map((it) => ({ ...place(it), per_request_ns: means(requests, it.means) })),
    ),
    holders:
      found.holders?.map((it) => {
        const own = it.means && means(requests, it.means);
        const share = rounded(100 * holderShare(found, it));
        return { name: it.name, share, blame_ns: it.blame, per_request_ns: own, ...place(it) };
      }) ?? null,
    collections: collectionsOf(view, requests).map((it) => ({
      cause: it.cause,
      share: rounded(100 * it.share),
      per_request_ns: means(requests, it.means),
    })),
    unknown_share: roundedOrNull(unknownShare(found)),
    blame_ns: found.blame,
    open_ns: found.open,
    ops: opsJson(requests),
    slowest: requests.slowest.map((it) => ({ request: labelOf(file, it), ended_at_ms: it.endedMs, ...values(it) })),
  };
}
