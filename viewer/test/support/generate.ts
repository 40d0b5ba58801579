import type { Draft } from "./encode.ts";

/** Random numbers that are the same in every run (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const STATES: Draft["states"] = [
  { name: "running" },
  { name: "blocked", tag: ["%GVL", "blocked"] },
  { name: "wait", tag: ["%GVL", "wait"] },
  { name: "gc_mark", tag: ["%GC", "mark"] },
  { name: "gc_sweep", tag: ["%GC", "sweep"] },
];
const LEAVES = ["", "[GVL blocked]", "[GVL wait]", "[GC marking]", "[GC sweeping]"];
export const CATEGORIES = ["other", "app", "gem", "stdlib", "c", "gvl", "gc", "rperf"];

/** The directory, category and library of a made-up function. */
function home(number: number) {
  const kind = number % 10;
  if (kind < 3) return { file: `app/models/model_${number % 97}.rb`, category: 1, library: "" };
  if (kind < 7) {
    const gem = `gem_${number % 40}-1.${number % 7}.0`;
    return { file: `gems/${gem}/lib/part_${number % 11}.rb`, category: 2, library: gem };
  }
  if (kind < 8) return { file: `lib/ruby/set_${number % 13}.rb`, category: 3, library: "stdlib" };
  return { file: "<C method>", category: 4, library: "" };
}

function functions(count: number): Draft["frames"] {
  return Array.from({ length: count }, (_, i) => ({
    name: `Module${i % 211}::Class${i % 1009}#method_${i}`,
    line: home(i).category === 4 ? 0 : (i % 500) + 1,
    ...home(i),
  }));
}

export interface Size {
  nodes: number;
  depth?: number;
  functions?: number;
  seed?: number;
}

/** A tree of so many nodes whose leaves have heavy-tailed weights. */
export function generateTree({
  nodes,
  depth = 80,
  functions: names = Math.max(10, nodes / 10),
  seed = 1,
}: Size): Draft {
  const next = random(seed);
  const draft = emptyDraft(functions(Math.floor(names)));
  const depths = [0];
  const recent: number[] = [0];
  for (let node = 1; node <= nodes; node++) {
    // Mostly deeper along the last path, sometimes back to an older one.
    let parent = recent[Math.floor(recent.length * (next() < 0.9 ? 1 - next() * next() * 0.2 : next()))] ?? 0;
    if (depths[parent] >= depth) parent = 0;
    depths.push(depths[parent] + 1);
    recent.length = Math.min(recent.length, depths[parent] + 1);
    recent.push(node);
    draft.nodes.push({ parent, frame: Math.floor(next() * names), line: 1 + Math.floor(next() * 400) });
  }
  const inner = new Set(draft.nodes.map((node) => node.parent));
  for (let node = 1; node <= nodes; node++) if (!inner.has(node) || next() < 0.1) addRow(draft, node, next);
  return draft;
}

/** How many methods a method calls, each from a line of its own. */
const CALLEES = 12;

/** So many different stacks of about the same depth, as a web server's. Some callees are more frequent than others. */
export function generateStacks({
  stacks,
  depth = 60,
  functions: names = 8000,
  seed = 1,
}: {
  stacks: number;
  depth?: number;
  functions?: number;
  seed?: number;
}): Draft {
  const next = random(seed);
  const draft = emptyDraft(functions(names));
  draft.threads = Array.from({ length: 24 }, (_, i) => ({ number: i + 1, name: i === 0 ? "main" : `worker-${i}` }));
  draft.labelSets = Array.from({ length: 60 }, (_, i) => [
    ["endpoint", `GET /api/${i % 12}`],
    ["%pid", `${4000 + (i % 5)}`],
  ]);
  let path: number[] = [];
  let frames: number[] = [];
  for (let stack = 0; stack < stacks; stack++) {
    const kept = Math.floor(path.length * next());
    path = path.slice(0, kept);
    frames = frames.slice(0, kept);
    const length = depth - Math.floor(12 * next());
    while (path.length < length) {
      const caller = frames[frames.length - 1] ?? 0;
      const callee = Math.floor(next() ** 2 * CALLEES);
      const frame = (caller * 31 + callee * 1009 + 17) % names;
      draft.nodes.push({ parent: path[path.length - 1] ?? 0, frame, line: draft.frames[frame].line! + 1 + callee });
      path.push(draft.nodes.length);
      frames.push(frame);
    }
    addRow(draft, path[path.length - 1], next, Math.floor(24 * next()), Math.floor(60 * next()));
  }
  return draft;
}

function emptyDraft(frames: Draft["frames"]): Draft {
  const leaves = LEAVES.slice(1).map((name, i) => ({ name, file: i < 2 ? "<GVL>" : "<GC>", category: i < 2 ? 5 : 6 }));
  return {
    valueTypes: [
      { name: "samples", unit: "count" },
      { name: "wall", unit: "nanoseconds" },
      { name: "cpu", unit: "nanoseconds" },
    ],
    defaultType: 1,
    states: STATES,
    categories: CATEGORIES,
    frames: [...frames, ...leaves],
    nodes: [],
    profiles: [{ meta: { title: "generated", program: "app.rb", duration_ns: 60e9, frequency: 1000 }, rows: [] }],
  };
}

function addRow(draft: Draft, node: number, next: () => number, thread = 0, labelSet = 0) {
  const samples = Math.ceil(1 / (next() + 0.001));
  const wall = Math.floor(samples * 1e6 * (0.5 + next()));
  const state = next() < 0.8 ? 0 : 1 + Math.floor(4 * next());
  let leaf = node;
  if (state > 0) {
    draft.nodes.push({ parent: node, frame: draft.frames.length - 5 + state });
    leaf = draft.nodes.length;
  }
  const values = [samples, wall, state === 0 ? Math.floor(wall * (0.6 + 0.4 * next())) : 0];
  draft.profiles[0].rows.push({ node: leaf, thread, labelSet, state, values });
}
