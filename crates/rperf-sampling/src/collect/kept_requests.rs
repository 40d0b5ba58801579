//! The sums of requests that are told apart from all others, because they are among the slowest of their
//! endpoints: one that makes room for a slower one is as all others again. On the worker's thread, and
//! where a profile is made.

use crate::Values;
use crate::accounting::UNATTRIBUTED;
use crate::collect::sample_key::SampleKey;
use rperf_vm::RequestNumber;
use rustc_hash::{FxHashMap, FxHashSet};

/// The sums of one request.
pub type RequestRows = FxHashMap<SampleKey, Values>;

/// Their sums, by request.
#[derive(Debug, Clone, Default)]
pub struct KeptRequests {
    requests: FxHashMap<RequestNumber, RequestRows>,
    rows: usize,
}

impl KeptRequests {
    /// Adds `values` to a row of `request`.
    pub fn add(&mut self, request: RequestNumber, key: SampleKey, values: Values) {
        let rows = self.requests.entry(request).or_default();
        let before = rows.len();
        rows.entry(key).or_default().add(values);
        self.rows += rows.len() - before;
    }

    /// Takes `request` out, with its rows.
    pub fn take(&mut self, request: RequestNumber) -> RequestRows {
        let rows = self.requests.remove(&request).unwrap_or_default();
        self.rows -= rows.len();
        rows
    }

    /// Gives each row another key. Some may become one.
    pub fn rekey(&mut self, mut change: impl FnMut(SampleKey) -> SampleKey) {
        let before = std::mem::take(self);
        for (request, rows) in before.requests {
            for (key, values) in rows {
                self.add(request, change(key), values);
            }
        }
    }

    /// Rows of these threads, which have ended, become those of none.
    pub fn forget_threads(&mut self, ended: &[u32]) {
        let ended: FxHashSet<u32> = ended.iter().copied().collect();
        if self.iter().any(|(_, key, _)| ended.contains(&key.thread)) {
            self.rekey(|key| match ended.contains(&key.thread) {
                true => SampleKey {
                    thread: UNATTRIBUTED,
                    ..key
                },
                false => key,
            });
        }
    }

    /// Rows of `request`.
    pub fn rows_of(&self, request: RequestNumber) -> usize {
        self.requests.get(&request).map_or(0, FxHashMap::len)
    }

    /// All rows, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (RequestNumber, SampleKey, Values)> + '_ {
        self.requests.iter().flat_map(|(request, rows)| {
            let rows = rows.iter();
            rows.map(|(key, values)| (*request, *key, *values))
        })
    }

    /// How many rows they have.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Bytes held; tables have room for at most twice as much.
    pub fn memory(&self) -> usize {
        self.rows * (size_of::<(SampleKey, Values)>() + 1)
            + self.requests.len() * (size_of::<(RequestNumber, RequestRows)>() + 1)
    }
}
