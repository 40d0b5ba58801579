import type { Op } from "../format/ops.ts";
import type { Requests } from "../format/requests.ts";
import { type Means, mean } from "./requests.ts";

/** What a request has of an op, in the mean. */
export interface OpMeans {
  op: Op;
  /** Calls, to a thousandth. */
  calls: Means;
  wall: Means;
}

/** The ops of an endpoint in typical requests and in those of the tail, those first that take longest in one. */
export function opMeans({ ops, classes }: Requests): OpMeans[] {
  const { typical, tail } = classes;
  const means = (of: [typical: number, tail: number]) => ({
    typical: mean(of[0], typical.count),
    tail: mean(of[1], tail.count),
  });
  const all = ops.map((op): OpMeans => {
    const calls = means([1_000 * op.typical.calls, 1_000 * op.tail.calls]);
    return {
      op,
      calls: { typical: calls.typical / 1_000, tail: calls.tail / 1_000 },
      wall: means([op.typical.wall, op.tail.wall]),
    };
  });
  const longest = ({ wall }: OpMeans) => Math.max(wall.typical, wall.tail);
  return all.sort((a, b) => longest(b) - longest(a));
}

/** The time of an op without the ops inside of it. */
export const ownTime = ({ running, gvlWait, blocked, gc, suspended }: Op): number =>
  running + gvlWait + blocked + gc + suspended;

/** The ops of an endpoint, those first that take most in all. */
export const opsByTime = (ops: Op[]): Op[] => [...ops].sort((a, b) => ownTime(b) - ownTime(a));

/** The path of frames that stand for ops. */
export const OP_PATH = "<op>";
