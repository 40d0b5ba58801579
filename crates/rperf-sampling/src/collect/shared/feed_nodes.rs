//! From the nodes of an epoch to those of shared sums. On the worker's thread.

use crate::collect::profile_builder::NamedNode;
use rperf_model::fold::Place;
use rperf_model::shared_sums::{Moved, SharedSums};
use rperf_model::{FrameId, Node, NodeId};

/// Where the table has the nodes of an epoch, by their numbers; the root's comes first.
#[derive(Debug)]
pub(super) struct FeedNodes(Vec<Spot>);

/// Where a node is.
#[derive(Debug, Clone, Copy)]
enum Spot {
    /// Here.
    At(NodeId),
    /// The node found no room, or was folded: once it has samples, it is a leaf under `[folded]`
    /// below `home`.
    Below {
        home: NodeId,
        frame: FrameId,
        line: u32,
    },
}

/// The frame of a node that is to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FeedFrame {
    /// A frame of the table's.
    Frame(FrameId),
    /// `[folded]`.
    Folded,
    /// `[truncated]`.
    Truncated,
}

impl FeedFrame {
    /// The frame in `table`.
    pub(super) fn named(frame: NamedNode<'_>, table: &mut SharedSums) -> Self {
        match frame {
            NamedNode::Frame(name, path, line) => Self::Frame(table.frame(name, path, line)),
            NamedNode::Folded => Self::Folded,
            NamedNode::Truncated => Self::Truncated,
        }
    }
}

impl Default for FeedNodes {
    fn default() -> Self {
        Self(vec![Spot::At(NodeId::ROOT)])
    }
}

impl FeedNodes {
    /// How many there are, with the root.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the next node, which has this parent, frame and line.
    pub(super) fn add(
        &mut self,
        parent: NodeId,
        frame: FeedFrame,
        line: u32,
        table: &mut SharedSums,
    ) {
        let parent = self.0.get(parent.0 as usize).copied();
        let parent = parent.unwrap_or(Spot::At(NodeId::ROOT));
        let (home, is_there) = match parent {
            Spot::At(node) => {
                let home = table.home(node);
                (home, home == node)
            }
            Spot::Below { home, .. } => (home, false),
        };
        self.0.push(match frame {
            FeedFrame::Truncated => Spot::At(table.truncate()),
            // It has no samples: its children are leaves below the same home.
            FeedFrame::Folded => {
                let frame = table.folded_frame();
                Spot::Below {
                    home,
                    frame,
                    line: 0,
                }
            }
            FeedFrame::Frame(frame) => {
                let node = Node {
                    parent: home,
                    frame,
                    line,
                };
                let node = if is_there { table.node(node) } else { None };
                node.map_or(Spot::Below { home, frame, line }, Spot::At)
            }
        });
    }

    /// Adds a node that has samples, and is where one of `others` is. Returns its number.
    pub(super) fn add_from(&mut self, others: &Self, number: NodeId) -> Option<NodeId> {
        let spot = *others.0.get(number.0 as usize)?;
        self.0.push(spot);
        Some(NodeId(self.0.len() as u32 - 1))
    }

    /// The table's number of a node that has samples; `None` if the node isn't known yet.
    pub(super) fn sampled(&mut self, number: NodeId, table: &mut SharedSums) -> Option<NodeId> {
        let spot = self.0.get_mut(number.0 as usize)?;
        let node = match *spot {
            Spot::At(node) => node,
            Spot::Below { home, frame, line } => table.folded_leaf(home, frame, line),
        };
        *spot = Spot::At(node);
        Some(node)
    }

    /// The table has folded stacks.
    pub(super) fn follow(&mut self, moved: &Moved, table: &SharedSums) {
        for spot in &mut self.0 {
            *spot = match *spot {
                Spot::At(node) => match (moved.place(node), moved.before(node)) {
                    (Place::Below(home), Some(&Node { frame, line, .. })) => {
                        Spot::Below { home, frame, line }
                    }
                    (Place::At(node) | Place::Below(node), _) => Spot::At(node),
                },
                Spot::Below { home, frame, line } => {
                    let (Place::At(home) | Place::Below(home)) = moved.place(home);
                    Spot::Below {
                        home: table.home(home),
                        frame,
                        line,
                    }
                }
            };
        }
    }
}
