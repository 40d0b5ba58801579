import type { ProfileFile, ProfileRows } from "../format/decode.ts";

/** Waits for the GVL that no thread is to blame for count as no state of a thread, as in the command's tables. */
const UNHELD = ["GVL hand-over", "GVL holder unknown"];

/** The path of the frames that stand for such waits. */
const GVL = "<GVL>";

/** All that rows can count as by state: the states of the file, and after them waits that nobody is to blame for. */
export function rowStateNames({ states }: ProfileFile): string[] {
  return [...states.map(({ name }) => name), ...UNHELD];
}

/** What a row counts as: a place in `rowStateNames`. */
export function rowStates(file: ProfileFile, rows: ProfileRows): (row: number) => number {
  const { name, path } = file.frames;
  const unheld = new Map<number, number>();
  for (let frame = 0; frame < name.length; frame++) {
    const place = path[frame] === GVL ? UNHELD.findIndex((it) => name[frame] === `[${it}]`) : -1;
    if (place >= 0) unheld.set(frame, file.states.length + place);
  }
  return (row) => {
    const state = rows.state[row];
    if (unheld.size === 0 || file.states[state].name !== "running") return state;
    return unheld.get(file.nodes.frame[rows.node[row]]) ?? state;
  };
}
