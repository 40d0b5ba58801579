import type { FrameTable } from "../format/decode.ts";
import { CallTree, type Shape } from "./call_tree.ts";

/** A list of 32-bit numbers that grows. */
class Numbers {
  private data: Uint32Array;

  constructor(
    start: Uint32Array,
    public length = start.length,
  ) {
    this.data = new Uint32Array(Math.max(16, 2 * length));
    this.data.set(start);
  }

  push(number: number) {
    if (this.length === this.data.length) {
      const larger = new Uint32Array(2 * this.length);
      larger.set(this.data);
      this.data = larger;
    }
    this.data[this.length++] = number;
  }

  done(): Uint32Array {
    return this.data.slice(0, this.length);
  }
}

/** The texts that a row's label frames show, from the outermost inward; null where the row lacks the label. */
export type LabelTexts = (side: number, row: number) => (string | null)[];

interface Growing {
  parent: Numbers;
  frame: Numbers;
  line: Numbers;
}

/**
 * The stacks with frames for labels (pprof's tagroot and tagleaf): `roots` above each stack, `leaves` below it.
 * A row that lacks a label has a frame that says so.
 */
export function withLabelFrames(
  shape: Shape,
  roots: { keys: string[]; texts: LabelTexts } | null,
  leaves: { keys: string[]; texts: LabelTexts } | null,
): Shape {
  const table = new LabelFrames(shape.tree.frames);
  let current = shape;
  if (roots) current = addRoots(current, table, roots.keys, roots.texts);
  if (leaves) current = addLeaves(current, table, leaves.keys, leaves.texts);
  const { tree, rowNodes } = current;
  return { tree: new CallTree(table.done(), tree.parent, tree.frame, tree.line), rowNodes };
}

/** Frames that stand for labels, behind those of the profile. */
class LabelFrames {
  private readonly ids = new Map<string, number>();
  private readonly names: string[] = [];
  private readonly files: string[] = [];

  constructor(private readonly frames: FrameTable) {}

  id(key: string, value: string): number {
    const both = `${key}\n${value}`;
    const known = this.ids.get(both);
    if (known !== undefined) return known;
    const id = this.frames.name.length + this.names.length;
    this.ids.set(both, id);
    this.names.push(value);
    this.files.push(`<${key}>`);
    return id;
  }

  done(): FrameTable {
    const { frames, names, files } = this;
    const longer = (numbers: Uint32Array) => {
      const copy = new Uint32Array(numbers.length + names.length);
      copy.set(numbers);
      return copy;
    };
    return {
      name: frames.name.concat(names),
      file: frames.file.concat(files),
      line: longer(frames.line),
      category: longer(frames.category),
      library: frames.library.concat(names.map(() => "")),
      path: frames.path.concat(files),
    };
  }
}

/** The child of `parent` that stands for a label. */
class LabelNodes {
  private readonly known = new Map<string, number>();

  constructor(
    private readonly nodes: Growing,
    private readonly frames: LabelFrames,
  ) {}

  child(parent: number, key: string, value: string): number {
    const frame = this.frames.id(key, value);
    const both = `${parent} ${frame}`;
    const known = this.known.get(both);
    if (known !== undefined) return known;
    const node = addNode(this.nodes, parent, frame, 0);
    this.known.set(both, node);
    return node;
  }

  path(start: number, keys: string[], values: (string | null)[]): number {
    let node = start;
    keys.forEach((key, i) => {
      node = this.child(node, key, values[i] ?? `(no ${key})`);
    });
    return node;
  }
}

function addNode(nodes: Growing, parent: number, frame: number, line: number): number {
  nodes.parent.push(parent);
  nodes.frame.push(frame);
  nodes.line.push(line);
  return nodes.parent.length - 1;
}

/** Each group of rows with the same labels gets a copy of its stacks, below the frames of its labels. */
function addRoots({ tree, rowNodes }: Shape, frames: LabelFrames, keys: string[], texts: LabelTexts): Shape {
  const empty = new Uint32Array(1);
  const nodes: Growing = { parent: new Numbers(empty), frame: new Numbers(empty), line: new Numbers(empty) };
  const labels = new LabelNodes(nodes, frames);
  const groups = new Map<number, { side: number; row: number }[]>();
  rowNodes.forEach((rows, side) => {
    for (let row = 0; row < rows.length; row++) {
      const top = labels.path(0, keys, texts(side, row));
      const group = groups.get(top);
      if (group) group.push({ side, row });
      else groups.set(top, [{ side, row }]);
    }
  });
  const moved = rowNodes.map((rows) => new Uint32Array(rows.length));
  const copyOf = new Uint32Array(tree.size);
  const copiedFor = new Int32Array(tree.size).fill(-1);
  const path: number[] = [];
  for (const [top, rows] of groups) {
    copyOf[0] = top;
    copiedFor[0] = top;
    for (const { side, row } of rows) {
      let node = rowNodes[side][row];
      while (copiedFor[node] !== top) {
        path.push(node);
        node = tree.parent[node];
      }
      for (let original = path.pop(); original !== undefined; original = path.pop()) {
        copyOf[original] = addNode(nodes, copyOf[tree.parent[original]], tree.frame[original], tree.line[original]);
        copiedFor[original] = top;
      }
      moved[side][row] = copyOf[rowNodes[side][row]];
    }
  }
  return {
    tree: new CallTree(tree.frames, nodes.parent.done(), nodes.frame.done(), nodes.line.done()),
    rowNodes: moved,
  };
}

function addLeaves({ tree, rowNodes }: Shape, frames: LabelFrames, keys: string[], texts: LabelTexts): Shape {
  const nodes: Growing = {
    parent: new Numbers(tree.parent),
    frame: new Numbers(tree.frame),
    line: new Numbers(tree.line),
  };
  const labels = new LabelNodes(nodes, frames);
  const moved = rowNodes.map((rows, side) => rows.map((node, row) => labels.path(node, keys, texts(side, row))));
  return {
    tree: new CallTree(tree.frames, nodes.parent.done(), nodes.frame.done(), nodes.line.done()),
    rowNodes: moved,
  };
}
