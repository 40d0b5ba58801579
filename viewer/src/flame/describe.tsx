import type { Page } from "../app/context.ts";
import type { BoxTree } from "../model/box_tree.ts";
import { place } from "../model/groups.ts";
import { formatCount, formatDelta, formatRelative, formatShare, formatValue } from "../model/units.ts";
import { Tip } from "../ui/Tip.tsx";
import { cpuShares } from "./look.ts";

/** A box in one line, for people who hear the page. */
export function describe(page: Page, tree: BoxTree, box: number): string {
  const { frames } = tree.view.tree;
  const type = tree.view.file.valueTypes[tree.view.query.type];
  const siblings = tree.children(tree.parent[box]);
  const parts = [
    frames.name[tree.frame[box]],
    formatValue(tree.total[box], type),
    formatShare(tree.total[box], tree.view.target.sum),
    `itself ${formatValue(tree.self[box], type)}`,
    `depth ${tree.depth[box]}`,
    `${siblings.indexOf(box) + 1} of ${siblings.length}`,
  ];
  if (tree.view.base) parts.push(`before ${formatValue(tree.base[box], type)}`);
  if (page.found?.frames[tree.frame[box]]) parts.push("found");
  return parts.join(", ");
}

interface TooltipProps {
  page: Page;
  tree: BoxTree;
  box: number;
  zoom: number;
  x: number;
  y: number;
}

/** What is known about a box, beside the pointer. */
export function Tooltip({ page, tree, box, zoom, x, y }: TooltipProps) {
  const { frames } = tree.view.tree;
  const { target, base, file } = tree.view;
  const type = file.valueTypes[tree.view.query.type];
  const frame = tree.frame[box];
  const total = tree.total[box];
  const parent = tree.parent[box];
  const lines = tree.lines(box).slice(0, 3);
  const share = cpuShares(page, tree)?.(box) ?? null;
  const samples = samplesOf(page, tree, box);
  return (
    <Tip x={x} y={y}>
      <strong>{frames.name[frame]}</strong>
      <div class="muted">{place(frames.file[frame], frames.line[frame])}</div>
      <div>
        {formatValue(total, type)} with what it calls, {formatValue(tree.self[box], type)} itself
      </div>
      <div>
        {formatShare(total, target.sum)} of all
        {zoom !== 0 && zoom !== box && `, ${formatShare(total, tree.total[zoom])} of the view`}
        {parent !== 0 && `, ${formatShare(total, tree.total[parent])} of ${tree.up ? "its callee" : "its caller"}`}
        {samples !== null && `, ${formatCount(samples)} ${samples === 1 ? "sample" : "samples"}`}
      </div>
      {share !== null && <div>{formatShare(share, 1)} of its wall time on the CPU</div>}
      {base && (
        <div>
          before: {formatValue(tree.base[box], type)}, change {formatDelta(total - tree.base[box], type)} (
          {formatRelative(tree.base[box], total)})
        </div>
      )}
      {lines.length > 0 && (
        <div class="muted">
          lines: {lines.map(({ line, total: part }) => `${line} (${formatShare(part, total)})`).join(", ")}
        </div>
      )}
    </Tip>
  );
}

function samplesOf(page: Page, tree: BoxTree, box: number): number | null {
  const totals = page.session.beside(page.state, "samples");
  if (!totals || tree.up) return null;
  let sum = 0;
  for (const node of tree.nodes(box)) sum += totals[node];
  return sum;
}
