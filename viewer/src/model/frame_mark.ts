import type { FrameTable } from "../format/decode.ts";
import type { BoxTree } from "./box_tree.ts";

/** Says which frame it is by what it is called: its number is another one in the next file. */
function frameMark({ name, file, line }: FrameTable, frame: number): number {
  // FNV-1a.
  let mark = 0x811c9dc5;
  const text = `${name[frame]}\t${file[frame]}\t${line[frame]}`;
  for (let i = 0; i < text.length; i++) mark = Math.imul(mark ^ text.charCodeAt(i), 0x01000193);
  return mark >>> 0;
}

/** The marks of the frames from below the root to this box. */
export function marks(tree: BoxTree, box: number): number[] {
  return tree.path(box).map((at) => frameMark(tree.view.tree.frames, tree.frame[at]));
}

/** The box that these marks lead to, as far as they go. */
export function markedBox(tree: BoxTree, marks: number[]): number {
  let box = 0;
  for (const mark of marks) {
    const kid = tree.children(box).find((kid) => frameMark(tree.view.tree.frames, tree.frame[kid]) === mark);
    if (kid === undefined) break;
    box = kid;
  }
  return box;
}
