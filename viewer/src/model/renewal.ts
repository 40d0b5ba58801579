import type { BoxTree } from "./box_tree.ts";
import type { View } from "./view.ts";

type Frames = View["tree"]["frames"];

/** The frame of newer data that is the same as one of older data; -1 if it isn't there. */
function sameFrame(from: Frames, to: Frames): (frame: number) => number {
  const key = ({ name, file, line }: Frames, frame: number) => [name[frame], file[frame], line[frame]].join("\t");
  const places = new Map(to.name.map((_, frame) => [key(to, frame), frame]));
  return (frame) => places.get(key(from, frame)) ?? -1;
}

/** The same for boxes: those that have the same frames above them. */
export function sameBox(from: BoxTree, to: BoxTree): (box: number) => number {
  const same = sameFrame(from.view.tree.frames, to.view.tree.frames);
  return (box) => {
    if (box < 0) return -1;
    let at: number | undefined = 0;
    for (const step of from.path(box)) {
      at = to.child(at, same(from.frame[step]));
      if (at === undefined) return -1;
    }
    return at;
  };
}
