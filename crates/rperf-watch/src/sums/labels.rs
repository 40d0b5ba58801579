//! The label sets of all programs, each once.

use super::reading::CAP;
use rperf_model::{LabelSet, LabelSets, StringId};
use std::ops::Deref;
use std::sync::Arc;

/// The label of time that found no room of its own.
pub const MORE: &str = "(more)";

/// A label: its key and value.
pub type Label = (Arc<str>, Arc<str>);

/// All label sets by their numbers: as they are read, their texts are fit for a terminal. The first
/// one is empty.
#[derive(Debug, Clone)]
pub struct Labels {
    /// The sets as programs send them, under the same numbers.
    pub(super) sets: LabelSets,
    shown: Vec<Vec<Label>>,
}

impl Default for Labels {
    fn default() -> Self {
        Labels {
            sets: LabelSets::default(),
            shown: vec![Vec::new()],
        }
    }
}

impl Deref for Labels {
    type Target = [Vec<Label>];

    fn deref(&self) -> &Self::Target {
        &self.shown
    }
}

impl Labels {
    /// Whether each set has the label.
    pub(super) fn with(&self, filter: Option<&Label>) -> Vec<bool> {
        let sets = self.shown.iter();
        sets.map(|set| filter.is_none_or(|wanted| set.contains(wanted)))
            .collect()
    }

    /// The number of a set, whose texts are fit for a terminal by `shown`.
    pub(super) fn set(
        &mut self,
        set: LabelSet,
        mut shown: impl FnMut(StringId) -> Arc<str>,
    ) -> Option<u32> {
        if self.shown.len() >= CAP {
            return self.sets.find(&set).map(|it| it.0);
        }
        let id = self.sets.intern(set.clone()).0;
        if id as usize == self.shown.len() {
            let texts = set.iter().map(|&(key, value)| (shown(key), shown(value)));
            self.shown.push(texts.collect());
        }
        Some(id)
    }

    /// The number of the set of time without room, [`MORE`]. There is always room for it.
    pub(super) fn set_of_more(&mut self, key: StringId, value: StringId) -> u32 {
        let id = self.sets.intern(vec![(key, value)]).0;
        if id as usize == self.shown.len() {
            self.shown.push(vec![(MORE.into(), "".into())]);
        }
        id
    }
}
