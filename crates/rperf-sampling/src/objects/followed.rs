//! The samples that are followed, for who looks at the objects themselves: which they are, and where they were
//! made. On the thread that asks, with the GVL only for what is taken from the session.

use super::site::Site;
use rperf_model::{LabelSetId, NodeId, label_keys};
use rperf_vm::{CapturedNode, FrameWord, LabelTexts};
use rustc_hash::FxHashMap;

/// The label that a request has.
const ENDPOINT: &str = "endpoint";

/// Among so many innermost frames the application's is looked for.
const DEEPEST: u32 = 64;

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedSample {
    /// What stands for the object.
    pub number: u64,
    /// The row of its site; `None` if there was no room for it.
    pub site: Option<u32>,
    /// The bytes of its slot.
    pub bytes: u64,
    /// The mean gap between samples, in bytes.
    pub mean: u64,
    /// How long it has been there, in ns.
    pub age_ns: u64,
    /// How many collections have begun since one could take it.
    pub collections: u64,
}

/// All samples that are followed, still with the words of the VM.
#[derive(Debug, Clone, Default)]
pub struct FollowedSamples {
    /// The samples, in the order of their numbers.
    pub samples: Vec<FollowedSample>,
    /// Bytes that a sample stands for at most, in the mean.
    pub bytes_per_sample: u64,
    /// Bytes of objects that aren't followed.
    pub lost_bytes: u64,
    /// Since when there are samples, in ns.
    pub since_ns: u64,
    pub(super) sites: Vec<FollowedSite>,
    nodes: Vec<FollowedNode>,
    words: Vec<FrameWord>,
    endpoints: Vec<Box<str>>,
}

/// Where samples were made. Rows count from 1 on; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FollowedSite {
    node: u32,
    endpoint: u32,
}

/// A frame, which is there once for all sites below it. Rows count from 1 on; 0 for none.
#[derive(Debug, Clone, Copy, Default)]
struct FollowedNode {
    word: u32,
    line: u32,
    caller: u32,
    /// So many frames are there from this one on, if the stack has as many.
    reach: u32,
}

/// What a session has of its samples' sites.
pub(super) struct Sites<'a> {
    pub(super) nodes: &'a [CapturedNode],
    pub(super) frames: &'a [FrameWord],
    pub(super) label_sets: &'a [LabelTexts],
}

impl FollowedSamples {
    /// Samples, each with its site: one for each node and endpoint. Each node, frame and set of labels is looked
    /// at once, because the session waits meanwhile.
    pub(super) fn of(
        samples: impl Iterator<Item = (FollowedSample, Option<Site>)>,
        of: &Sites<'_>,
    ) -> Self {
        let mut copy = Copy {
            of,
            made: Self::default(),
            nodes: vec![0; of.nodes.len()],
            words: vec![0; of.frames.len()],
            labels: vec![None; of.label_sets.len()],
            endpoints: FxHashMap::default(),
        };
        let mut sites: FxHashMap<(NodeId, u32), u32> = FxHashMap::default();
        for (sample, site) in samples {
            let row = site.map(|site| {
                let endpoint = copy.endpoint(site.labels);
                *sites.entry((site.node, endpoint)).or_insert_with(|| {
                    let node = copy.node(site.node);
                    copy.made.sites.push(FollowedSite { node, endpoint });
                    copy.made.sites.len() as u32 - 1
                })
            });
            copy.made.samples.push(FollowedSample {
                site: row,
                ..sample
            });
        }
        copy.made
    }

    /// The frames that are to get names.
    pub fn words(&self) -> &[FrameWord] {
        &self.words
    }

    /// The rows of the words of a site's frames, and lines, the innermost first; those without a frame are left
    /// out.
    pub(super) fn frames(&self, site: FollowedSite) -> impl Iterator<Item = (u32, u32)> + '_ {
        let node = |row: u32| self.nodes.get((row as usize).checked_sub(1)?);
        let nodes = std::iter::successors(node(site.node), move |it| node(it.caller));
        let nodes = nodes.take(DEEPEST as usize);
        nodes.filter_map(|it| Some((it.word.checked_sub(1)?, it.line)))
    }

    /// The endpoint or job of a site.
    pub(super) fn endpoint(&self, site: FollowedSite) -> Option<&str> {
        let row = (site.endpoint as usize).checked_sub(1)?;
        self.endpoints.get(row).map(|it| &**it)
    }
}

/// The copy of what samples refer to. The rows of what is copied count from 1 on.
struct Copy<'a> {
    of: &'a Sites<'a>,
    made: FollowedSamples,
    /// The rows of the session's nodes, and of its frames; 0 for those that aren't copied.
    nodes: Vec<u32>,
    words: Vec<u32>,
    /// The endpoints of the session's sets of labels, as far as they have been looked at.
    labels: Vec<Option<u32>>,
    endpoints: FxHashMap<&'a str, u32>,
}

impl<'a> Copy<'a> {
    /// The row of a node, with its callers. Those that are there already aren't visited again.
    fn node(&mut self, innermost: NodeId) -> u32 {
        let (mut first, mut below) = (0, None::<usize>);
        let mut id = innermost;
        for reach in (1..=DEEPEST).rev() {
            let Some(place) = (id.0 as usize).checked_sub(1) else {
                break;
            };
            let Some(node) = self.of.nodes.get(place) else {
                break;
            };
            if self.nodes[place] == 0 {
                let word = self.word(node.frame);
                self.made.nodes.push(FollowedNode {
                    word,
                    line: node.line,
                    ..FollowedNode::default()
                });
                self.nodes[place] = self.made.nodes.len() as u32;
            }
            let row = self.nodes[place];
            match below {
                None => first = row,
                Some(below) => self.made.nodes[below].caller = row,
            }
            let copied = &mut self.made.nodes[row as usize - 1];
            if copied.reach >= reach {
                break;
            }
            copied.reach = reach;
            below = Some(row as usize - 1);
            id = node.parent;
        }
        first
    }

    fn word(&mut self, frame: u32) -> u32 {
        let Some(row) = self.words.get_mut(frame as usize) else {
            return 0;
        };
        if *row == 0 {
            self.made.words.push(self.of.frames[frame as usize]);
            *row = self.made.words.len() as u32;
        }
        *row
    }

    fn endpoint(&mut self, labels: LabelSetId) -> u32 {
        let of = self.of;
        let place = (labels.0 as usize).checked_sub(1);
        let Some((place, set)) = place.and_then(|it| Some((it, of.label_sets.get(it)?))) else {
            return 0;
        };
        if let Some(known) = self.labels[place] {
            return known;
        }
        let row = endpoint(set).map_or(0, |text| {
            let endpoints = &mut self.made.endpoints;
            *self.endpoints.entry(text).or_insert_with(|| {
                endpoints.push(text.into());
                endpoints.len() as u32
            })
        });
        self.labels[place] = Some(row);
        row
    }
}

/// A request has more than one label: only this one is told.
fn endpoint(labels: &LabelTexts) -> Option<&str> {
    let of_key = |key: &str| labels.iter().find(|it| *it.0 == *key).map(|it| &*it.1);
    of_key(ENDPOINT).or_else(|| of_key(label_keys::JOB))
}
