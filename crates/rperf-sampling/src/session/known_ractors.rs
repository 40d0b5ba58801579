//! The Ractors beside the main one that a session has samples of, and their labels. With the GVL.

use crate::ractors::OtherRactors;
use rperf_vm::LabelSet;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Ractors that have a label of their own in a session. Further ones share one.
const LABELLED: usize = 1000;

/// What these have in place of a number, and those whose number isn't known.
const FURTHER: &str = "other";

/// Other Ractors, as the session knows them. At most [`LABELLED`] have labels of their own.
#[derive(Debug)]
pub(super) struct KnownRactors {
    /// Their threads.
    pub(super) threads: Arc<OtherRactors>,
    /// What their samples are labelled with, by their numbers; at 0 what further ones share.
    labels: FxHashMap<u32, LabelSet>,
}

impl KnownRactors {
    /// None has a label yet.
    pub(super) fn new(threads: Arc<OtherRactors>) -> Self {
        Self {
            threads,
            labels: FxHashMap::default(),
        }
    }

    /// What samples of the Ractor with this number are labelled with.
    pub(super) fn label_of(&mut self, ractor: u32) -> &LabelSet {
        let known = &mut self.labels;
        let row = if known.len() < LABELLED || known.contains_key(&ractor) {
            ractor
        } else {
            0
        };
        known.entry(row).or_insert_with(|| label_of(row))
    }
}

fn label_of(ractor: u32) -> LabelSet {
    match ractor {
        0 => LabelSet::of_ractor(FURTHER),
        number => LabelSet::of_ractor(&number.to_string()),
    }
}
