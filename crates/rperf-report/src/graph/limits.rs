//! How much of a call graph is wanted, and how much has been cut. Used by all of `graph`; any thread.

/// How much of a graph is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphLimits {
    /// How many nodes there may be.
    pub nodes: usize,
    /// The least total of a node, whatever its sign.
    pub least_node: u64,
    /// The least value of an edge. The largest one that leads to a node is left always.
    pub least_edge: u64,
}

impl GraphLimits {
    /// The whole graph.
    pub const NONE: Self = Self {
        nodes: usize::MAX,
        least_node: 0,
        least_edge: 0,
    };

    /// The limits for values that add up to `whole`: so many nodes, and the least shares of
    /// nodes and edges.
    pub fn of_shares(whole: i64, nodes: usize, node_fraction: f64, edge_fraction: f64) -> Self {
        let least = |fraction: f64| (whole.unsigned_abs() as f64 * fraction) as u64;
        Self {
            nodes,
            least_node: least(node_fraction),
            least_edge: least(edge_fraction),
        }
    }
}

/// How much of a graph has been cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cut {
    /// Nodes that are too small.
    pub small_nodes: usize,
    /// Nodes beyond the number that there may be.
    pub further_nodes: usize,
    /// Edges between nodes of the graph that are too small.
    pub edges: usize,
}

/// What decides between nodes of equal values.
pub(super) type RankText<'a> = (&'a str, &'a str, &'a str);
