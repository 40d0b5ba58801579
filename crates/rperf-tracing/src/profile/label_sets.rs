//! The label sets of a traced session, and how much room their sums take. Under the GVL; to a profile
//! outside of hooks.

use rperf_model::{LabelSetId, Profile};
use rperf_vm::{LabelTable, LabelTexts};

/// Bytes that the sums of label sets may take before further sets find no room.
const SUMS_CAP: usize = 64 << 20;

/// The label sets of a traced session.
#[derive(Debug)]
pub(crate) struct TracedLabels {
    pub(crate) table: LabelTable,
    /// Bytes of the sums that are put away.
    pub(crate) sums_bytes: usize,
    pub(crate) cap: usize,
    /// How often sums found no room.
    pub(crate) refused: u64,
}

/// The label sets up to a moment.
#[derive(Debug)]
pub(crate) struct LabelsSnapshot {
    /// From number 1.
    pub(crate) sets: Vec<LabelTexts>,
    /// How often a fiber ran whose labels found no room.
    pub(crate) refused: u64,
}

impl Default for TracedLabels {
    fn default() -> Self {
        Self {
            table: LabelTable::default(),
            sums_bytes: 0,
            cap: SUMS_CAP,
            refused: 0,
        }
    }
}

impl TracedLabels {
    /// The sets up to now.
    pub(crate) fn snapshot(&self) -> LabelsSnapshot {
        LabelsSnapshot {
            sets: self.table.sets().to_vec(),
            refused: self.refused + self.table.refused(),
        }
    }

    /// Bytes held, without the sums.
    pub(crate) fn memory(&self) -> usize {
        self.table.memory()
    }
}

/// The profile's number for each set; the first one is no set.
pub(crate) fn add_label_sets(profile: &mut Profile, sets: &[LabelTexts]) -> Vec<LabelSetId> {
    let mut ids = vec![LabelSetId::default()];
    for set in sets {
        let mut intern = |text: &str| profile.strings.intern(text);
        let pairs = set.iter();
        let pairs = pairs.map(|(key, value)| (intern(key), intern(value)));
        let pairs = pairs.collect();
        ids.push(profile.label_sets.intern(pairs));
    }
    ids
}
