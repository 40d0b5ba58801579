import { type Grouping, nodeGroups } from "./groups.ts";
import type { View } from "./view.ts";

/** A method, or another group, of a call graph. */
export interface GraphNode {
  name: string;
  /** Where it is: file and line, or nothing. */
  place: string;
  /** A frame of it. */
  frame: number;
  self: number;
  total: number;
}

/** Who calls whom: numbers of nodes. */
export interface GraphEdge {
  caller: number;
  callee: number;
  /** Of the stacks with the call anywhere, each once. */
  value: number;
  /** Whether all of them lead there by way of nodes that were cut. */
  residual: boolean;
}

export interface CallGraph {
  /** The largest total first. */
  nodes: GraphNode[];
  /** The largest value first. */
  edges: GraphEdge[];
  /** How many nodes are too small, how many are beyond the number wanted, and how many edges are too small. */
  cut: { small: number; further: number; edges: number };
}

/** As `rperf report --dot` has them, and pprof. */
const NODE_SHARE = 0.005;
const EDGE_SHARE = 0.001;

/** The call graph of a view, with `most` nodes at most: rperf-report has the same rules. */
export function callGraph(view: View, grouping: Grouping, most: number): CallGraph {
  const { tree, target } = view;
  const { group, name, place, frame, outermost } = nodeGroups(view, grouping);
  const all = name.map((name, i): GraphNode => ({ name, place: place[i], frame: frame[i], self: 0, total: 0 }));
  for (let node = 1; node < tree.size; node++) {
    all[group[node]].self += target.self[node];
    if (outermost[node]) all[group[node]].total += target.total[node];
  }
  const some = all.map((_, i) => i).filter((i) => all[i].self !== 0 || all[i].total !== 0);
  const least = NODE_SHARE * Math.abs(target.all);
  let left = some.filter((i) => Math.abs(all[i].total) >= least);
  const cut = { small: some.length - left.length, further: Math.max(0, left.length - most), edges: 0 };
  if (cut.further > 0) {
    const scores = entropies(all, edgesOf(view, group, all.length, null));
    left = left.sort((a, b) => scores[b] - scores[a] || order(all[a], all[b])).slice(0, most);
  }
  left.sort((a, b) => order(all[a], all[b]));
  const kept = new Int32Array(all.length).fill(-1);
  left.forEach((i, at) => {
    kept[i] = at;
  });
  const edges = edgesOf(view, group, all.length, kept).sort(
    (a, b) => Math.abs(b.value) - Math.abs(a.value) || a.caller - b.caller || a.callee - b.callee,
  );
  // The largest edge to each node stays, so that it doesn't hang in the air.
  const called = new Set<number>();
  const large = edges.filter(({ caller, callee, value }) => {
    const first = caller !== callee && !called.has(callee);
    if (first) called.add(callee);
    return first || Math.abs(value) >= EDGE_SHARE * Math.abs(target.all);
  });
  cut.edges = edges.length - large.length;
  return { nodes: left.map((i) => all[i]), edges: withoutDetours(large, left.length), cut };
}

function order(a: GraphNode, b: GraphNode): number {
  const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return Math.abs(b.total) - Math.abs(a.total) || byText(a.name, b.name) || byText(a.place, b.place);
}

/** The edges between nodes that are kept: `kept` has their new numbers, -1 for the others. */
function edgesOf({ tree, target }: View, group: Uint32Array, groups: number, kept: Int32Array | null): GraphEdge[] {
  const number = (node: number) => (kept ? kept[group[node]] : group[node]);
  // The nearest caller that is kept, of each node; 0 for none.
  const nearest = new Uint32Array(tree.size);
  const edge = new Uint32Array(tree.size);
  const ids = new Map<number, number>();
  const edges: GraphEdge[] = [];
  for (let node = 1; node < tree.size; node++) {
    const parent = tree.parent[node];
    const caller = parent !== 0 && number(parent) >= 0 ? parent : nearest[parent];
    nearest[node] = caller;
    if (caller === 0 || number(node) < 0 || target.total[node] === 0) continue;
    const key = number(caller) * groups + number(node);
    let id = ids.get(key);
    if (id === undefined) {
      id = edges.push({ caller: number(caller), callee: number(node), value: 0, residual: true });
      ids.set(key, id);
    }
    edge[node] = id;
    if (caller === parent) edges[id - 1].residual = false;
  }
  // Nodes without an edge are a group of their own.
  const outermost = tree.outermost(edge, edges.length + 1);
  for (let node = 1; node < tree.size; node++)
    if (edge[node] !== 0 && outermost[node]) edges[edge[node] - 1].value += target.total[node];
  return edges.filter(({ value }) => value !== 0);
}

/** How much each node says: its total times the entropy of its callers and callees, and its self. */
function entropies(nodes: GraphNode[], edges: GraphEdge[]): number[] {
  const callers: number[][] = nodes.map(() => []);
  const callees: number[][] = nodes.map(() => []);
  for (const { caller, callee, value } of edges) {
    if (caller === callee) continue;
    callers[callee].push(Math.abs(value));
    callees[caller].push(Math.abs(value));
  }
  const entropy = (edges: number[], self: number) => {
    if (edges.length === 0) return 1;
    const parts = [...edges, self].filter((part) => part > 0).sort((a, b) => a - b);
    const sum = parts.reduce((sum, part) => sum + part, 0);
    return -parts.reduce((bits, part) => bits + (part / sum) * Math.log2(part / sum), 0);
  };
  return nodes.map(({ self, total }, i) => {
    const own = Math.abs(self);
    return Math.abs(total) * (entropy(callers[i], 0) + entropy(callees[i], own)) + own;
  });
}

/** Without the residual edges, the smallest first, that lead where other edges lead too. */
function withoutDetours(edges: GraphEdge[], nodes: number): GraphEdge[] {
  const callees: Set<GraphEdge>[] = Array.from({ length: nodes }, () => new Set());
  for (const edge of edges) callees[edge.caller].add(edge);
  for (const edge of edges.filter(({ residual }) => residual).reverse()) {
    callees[edge.caller].delete(edge);
    const reached = new Set([edge.caller]);
    for (const node of reached) for (const { callee } of callees[node]) reached.add(callee);
    if (!reached.has(edge.callee)) callees[edge.caller].add(edge);
  }
  return edges.filter((edge) => callees[edge.caller].has(edge));
}
