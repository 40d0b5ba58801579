//! What a sampling session sums beside its samples: objects, tests, requests and ops. Hooks and methods add
//! to it with the GVL; the collector is told here of what it keeps alive.

use super::weak_maps::WeakMaps;
use crate::profile::description;
use crate::ruby::weak_map::WeakMap;
use rperf_accounts::{JudgedRequests, SessionOps, SuiteAccounts};
use rperf_sampling::objects::ObjectSampler;
use rperf_session::settings::Settings;
use rperf_vm::{Allocations, FrameWord, GvlCell, RequestNumber};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The sums of a session, each if it is measured.
pub struct SessionSums {
    /// Objects, if they are counted, by frames with lines or without.
    pub objects: Option<GvlCell<Allocations>>,
    pub has_lines: bool,
    /// Objects, if they are sampled.
    pub sampled_objects: Option<GvlCell<ObjectSampler>>,
    /// The sampled objects that are followed for as long as they live, by number.
    pub objects_in_use: Option<GvlCell<WeakMaps>>,
    /// The tests and factories that have ended.
    pub suite: GvlCell<SuiteAccounts>,
    /// Requests and jobs, if they are judged.
    pub requests: Option<SessionRequests>,
    /// Ops, if they are measured.
    pub ops: Option<GvlCell<SessionOps>>,
}

/// The requests and jobs of a session.
pub struct SessionRequests {
    /// Which have ended, and how they are judged.
    pub judged: GvlCell<JudgedRequests>,
    /// The number of the one that has begun last.
    last: AtomicU32,
}

impl SessionRequests {
    fn new() -> Self {
        Self {
            judged: GvlCell::new(JudgedRequests::default()),
            last: AtomicU32::new(0),
        }
    }

    /// The number of a new one.
    pub fn next_number(&self) -> RequestNumber {
        let number = self.last.fetch_add(1, Relaxed).wrapping_add(1);
        if number == RequestNumber::NONE.0 {
            return self.next_number();
        }
        RequestNumber(number)
    }
}

/// No ops yet, of this program.
fn no_ops() -> GvlCell<SessionOps> {
    let roots = description::roots(&description::program());
    GvlCell::new(SessionOps::of_program_in(roots))
}

impl SessionSums {
    /// Nothing yet.
    pub fn new(
        settings: &Settings,
        sampled_objects: Option<ObjectSampler>,
        objects_in_use: Option<WeakMap>,
    ) -> Self {
        let counts = settings.measures_objects();
        Self {
            objects: counts.then(|| GvlCell::new(Allocations::new(true))),
            has_lines: settings.lines() != Some(false),
            sampled_objects: sampled_objects.map(GvlCell::new),
            objects_in_use: objects_in_use.map(|map| GvlCell::new(WeakMaps::new(map))),
            suite: GvlCell::new(SuiteAccounts::default()),
            requests: settings.measures_requests().then(SessionRequests::new),
            ops: settings.measures_ops().then(no_ops),
        }
    }

    /// All frames, classes and maps: the garbage collector's roots.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub unsafe fn words(&self) -> impl Iterator<Item = FrameWord> + '_ {
        // SAFETY: by this function's contract, for as long as the words are asked for.
        unsafe {
            let counted = self.objects.iter().flat_map(|it| it.peek().words());
            let sampled = self.sampled_objects.iter();
            let sampled = sampled.flat_map(|it| it.peek().words());
            let maps = self.objects_in_use.iter();
            let maps = maps.flat_map(|it| it.peek().objects());
            let maps = maps.map(|map| map as FrameWord);
            counted.copied().chain(sampled).chain(maps)
        }
    }

    /// New objects that are held for a moment: roots, too, that come and go without barriers.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub unsafe fn held(&self) -> impl Iterator<Item = FrameWord> + '_ {
        let sampled = self.sampled_objects.iter();
        // SAFETY: by this function's contract, for as long as the words are asked for.
        sampled.flat_map(|it| unsafe { it.peek() }.held())
    }

    /// Bytes held.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub unsafe fn memory(&self) -> usize {
        let objects = self.objects.as_ref();
        let sampled = self.sampled_objects.as_ref();
        // SAFETY: by this function's contract.
        unsafe {
            objects.map_or(0, |it| it.peek().memory()) + sampled.map_or(0, |it| it.peek().memory())
        }
    }
}
