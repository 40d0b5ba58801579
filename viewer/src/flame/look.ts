import type { Page } from "../app/context.ts";
import type { Width } from "../app/state.ts";
import type { BoxTree } from "../model/box_tree.ts";
import { categoryColour, changeColour, cpuColour, css, tintOf } from "./colours.ts";

/** What the width of a box stands for. */
export function widthWeight(tree: BoxTree, width: Width): (box: number) => number {
  if (!tree.view.base || width === "after") {
    // A method that is gone has no width: "both" shows it.
    return (box) => tree.total[box];
  }
  if (width === "before") return (box) => tree.base[box];
  return (box) => tree.total[box] + tree.base[box];
}

/** Changes below this share of all are shown as none. */
const LEAST_CHANGE = 0.001;

/** How much of a box is new (1) or gone (-1); 0 where the change is too small to see. */
export function relativeChange(tree: BoxTree, box: number): number {
  const { target, base } = tree.view;
  const after = tree.total[box];
  const before = tree.base[box];
  const least = LEAST_CHANGE * Math.max(target.sum, base?.sum ?? 0);
  const larger = Math.max(Math.abs(after), Math.abs(before));
  return Math.abs(after - before) <= least || larger === 0 ? 0 : (after - before) / larger;
}

/** The share of CPU time in wall time of each box; null where it isn't measured. It is null for a box without time. */
export function cpuShares(page: Page, tree: BoxTree): ((box: number) => number | null) | null {
  const wall = page.session.beside(page.state, "wall");
  const cpu = page.session.beside(page.state, "cpu");
  if (!wall || !cpu || tree.up) return null;
  return (box) => {
    let [wallSum, cpuSum] = [0, 0];
    for (const node of tree.nodes(box)) {
      wallSum += wall[node];
      cpuSum += cpu[node];
    }
    return wallSum > 0 ? cpuSum / wallSum : null;
  };
}

/** The colour of each box, as the state says. Each is found once. */
export function fills(page: Page, tree: BoxTree): (box: number) => string {
  const fill = fillOf(page, tree);
  const known: string[] = [];
  return (box) => {
    known[box] ??= fill(box);
    return known[box];
  };
}

function fillOf(page: Page, tree: BoxTree): (box: number) => string {
  const { dark, state } = page;
  if (state.colouring === "change" && tree.view.base) {
    return (box) => css(changeColour(relativeChange(tree, box), dark));
  }
  const { frames } = tree.view.tree;
  const { categories, frames: own } = tree.view.file;
  const byCategory = (box: number) => {
    const frame = tree.frame[box];
    const category = frame >= own.name.length ? "label" : categories[frames.category[frame]];
    return css(categoryColour(category, tintOf(frames.name[frame]), dark));
  };
  const shares = state.colouring === "cpu" ? cpuShares(page, tree) : null;
  if (!shares) return byCategory;
  return (box) => {
    const share = shares(box);
    return share === null ? byCategory(box) : css(cpuColour(share, dark));
  };
}
