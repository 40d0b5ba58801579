//! What a sampling session sums beside its samples, such as objects, and its way to the profile. Hooks and
//! methods add to the sums, and the stop or a snapshot takes them, all with the GVL; the collector is told
//! here of what they keep alive. What was taken belongs to who has taken it.

mod taken_objects;

use super::weak_maps::WeakMaps;
use crate::profile::description;
use crate::ruby::process;
use crate::ruby::weak_map::WeakMap;
use rperf_accounts::{JudgedRequests, SessionOps, SuiteAccounts};
use rperf_model::{Collections, Note, Ops, Profile, Requests, Suite};
use rperf_sampling::objects::{Moment, ObjectSampler};
use rperf_sampling::{RunningSession, other_ractors};
use rperf_session::settings::Settings;
use rperf_vm::{
    Allocations, FrameWord, Gvl, GvlCell, RequestNumber, ResolvedFrame, SessionId, clock,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use taken_objects::TakenObjects;

/// Objects that other Ractors have made since the sampling of objects began, or was cleared: no session is
/// looked for there.
static MADE_ELSEWHERE: AtomicU64 = AtomicU64::new(0);

/// Another Ractor has made an object. On its threads.
pub fn note_made_elsewhere() {
    MADE_ELSEWHERE.fetch_add(1, Relaxed);
}

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

/// No sampled objects yet.
fn no_sampled_objects(settings: &Settings) -> GvlCell<ObjectSampler> {
    MADE_ELSEWHERE.store(0, Relaxed);
    let now_ns = clock::monotonic_ns();
    let mut sampler = ObjectSampler::new(now_ns, settings.max_overhead(), now_ns);
    if settings.follows_objects() {
        sampler = sampler.with_objects_in_use(!now_ns);
    }
    if settings.shares_gc() {
        sampler = sampler.with_gc_costs();
    }
    GvlCell::new(sampler)
}

impl SessionSums {
    /// Nothing yet. Objects are followed in a map.
    pub fn new(settings: &Settings, followed_in: Option<WeakMap>) -> Self {
        let counts = settings.measures_objects();
        let samples = settings.samples_objects();
        Self {
            objects: counts.then(|| GvlCell::new(Allocations::new(true))),
            has_lines: settings.lines() != Some(false),
            sampled_objects: samples.then(|| no_sampled_objects(settings)),
            objects_in_use: followed_in.map(|map| GvlCell::new(WeakMaps::new(map))),
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

    /// The sums so far, and the collections of this `session`, which are let go of if `clear`, but for what
    /// belongs to requests that go on. Which objects are in use was `looked` at after that moment.
    pub fn take(
        &self,
        gvl: &Gvl<'_>,
        session: &RunningSession,
        looked: Moment,
        clear: bool,
    ) -> TakenSums {
        let suite = self.suite.borrow(gvl);
        let requests = self.requests.as_ref();
        let requests = requests.and_then(|it| it.judged.borrow(gvl));
        let ops = self.ops.as_ref().and_then(|it| it.borrow(gvl));
        let ops = ops.map(|mut it| (it.told(clear), it.names()));
        let (ops, op_names) = ops.unwrap_or_default();
        TakenSums {
            objects: self.take_objects(gvl, session.id, looked, clear),
            suite: suite.map_or_else(Suite::default, |mut it| match clear {
                true => it.take(),
                false => it.suite().clone(),
            }),
            requests: requests.map_or_else(Vec::new, |mut it| it.told(clear)),
            ops,
            op_names,
            collections: session.gc.by_cause.told(clear),
        }
    }

    fn take_objects(
        &self,
        gvl: &Gvl<'_>,
        session: SessionId,
        looked: Moment,
        clear: bool,
    ) -> Option<TakenObjects> {
        if let Some(sampler) = &self.sampled_objects {
            let mut sampler = sampler.borrow(gvl)?;
            let session = format!("{}-{}", process::token(), session.0);
            let sums = sampler.sums(looked, &session);
            if !clear {
                let elsewhere = MADE_ELSEWHERE.load(Relaxed);
                return Some(TakenObjects::Sampled(sums, elsewhere));
            }
            sampler.clear();
            return Some(TakenObjects::Sampled(sums, MADE_ELSEWHERE.swap(0, Relaxed)));
        }
        let mut objects = self.objects.as_ref()?.borrow(gvl)?;
        let sums = objects.sums();
        if clear {
            objects.clear();
        }
        Some(TakenObjects::Counted(sums))
    }
}

/// Sums that were taken from a session.
#[derive(Default)]
pub struct TakenSums {
    /// Objects, if there are some.
    objects: Option<TakenObjects>,
    suite: Suite,
    requests: Vec<Requests>,
    ops: Ops,
    /// The names of ops, from number 1: samples have these numbers.
    pub op_names: Vec<Arc<str>>,
    collections: Collections,
}

impl TakenSums {
    /// All frames and classes: they have to be kept alive until they have names.
    pub fn words(&self) -> &[FrameWord] {
        self.objects.as_ref().map_or(&[], TakenObjects::words)
    }

    /// Whether objects were measured.
    pub fn has_objects(&self) -> bool {
        self.objects.is_some()
    }

    /// A line on what other Ractors have done, if there are some.
    pub fn note_on_others(&self) -> Option<Note> {
        let objects = self.objects.as_ref().filter(|_| other_ractors());
        objects.map(TakenObjects::note_on_others)
    }

    /// Adds all to the `profile` of the samples. `names` are those of the words, in their order.
    pub fn add_to(self, profile: &mut Profile, names: &[Arc<ResolvedFrame>]) {
        profile.suite = self.suite;
        profile.ops = self.ops;
        profile.collections = self.collections;
        profile.requests = self.requests;
        profile.label_slowest_alone();
        if let Some(objects) = self.objects {
            objects.add_to(profile, names);
        }
    }
}
