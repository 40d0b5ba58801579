//! Where the objects were made that a session follows: with names, and which objects they are. For who looks
//! at the objects themselves. On a thread of the main Ractor, with the GVL.

use super::taken_profile::name_some;
use crate::interrupts::let_others_run;
use crate::probes::sampling::objects_in_use;
use crate::profile::own_files;
use crate::ruby::weak_map::WeakMap;
use crate::running::roots;
use crate::running::sampling::sampling;
use magnus::Error;
use rb_sys::VALUE;
use rperf_sampling::objects::{FollowedSample, FollowedSamples, PlacedSamples};
use rperf_vm::{Gvl, ResolvedFrame, SessionId, clock};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For how long sites are placed until others run.
const PIECE: Duration = Duration::from_millis(2);

/// The samples of a session, and the names of their frames.
pub struct ObjectsMade {
    session: SessionId,
    placed: PlacedSamples<Arc<ResolvedFrame>>,
    maps: Vec<(WeakMap, Vec<u64>)>,
}

/// Takes them, if the running session follows objects. Other threads run meanwhile: names are given
/// and sites placed for 2 ms at a time.
pub fn take(gvl: &mut Gvl<'_>) -> Result<Option<ObjectsMade>, Error> {
    let looked = objects_in_use::look_now(gvl).at;
    let followed = sampling(gvl).and_then(|session| {
        let sampler = session.sums.sampled_objects.as_ref()?.borrow(gvl)?;
        Some((session.id, sampler.followed(looked)?))
    });
    let Some((session, samples)) = followed else {
        return Ok(None);
    };
    let Some(job) = roots::keep_words_until_named(gvl, samples.words()) else {
        return Ok(None);
    };
    while name_some(gvl, job) {
        if let Err(error) = let_others_run(gvl) {
            roots::take_named(gvl, job);
            return Err(error);
        }
    }
    let names = roots::take_named(gvl, job).into_names();
    let mut placed = PlacedSamples::new(samples, names);
    let mut begin = Instant::now();
    while placed.place_some(own_files::start(), || begin.elapsed() >= PIECE) {
        let_others_run(gvl)?;
        begin = Instant::now();
    }
    Ok(Some(ObjectsMade {
        session,
        placed,
        maps: objects_in_use::listed(gvl),
    }))
}

/// In a copy of the program: no object is followed there.
pub fn end_in_copy() {
    objects_in_use::end_in_copy();
}

impl ObjectsMade {
    /// For how long the session has run, in ns.
    pub fn elapsed_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.samples().since_ns)
    }

    /// What is known of all samples.
    pub fn samples(&self) -> &FollowedSamples {
        self.placed.samples()
    }

    /// All of them, with their sites.
    pub fn placed(&self) -> &PlacedSamples<Arc<ResolvedFrame>> {
        &self.placed
    }

    /// The samples whose objects live, with these; `None` if the session has ended. They are valid until another
    /// thread runs, or an object is made.
    pub fn located(&self, gvl: &mut Gvl<'_>) -> Option<Vec<(VALUE, FollowedSample)>> {
        // Another session has other numbers.
        if sampling(gvl)?.id != self.session {
            return None;
        }
        let samples = &self.samples().samples;
        let row = |number| samples.binary_search_by_key(&number, |it| it.number).ok();
        let mut objects = vec![None; samples.len()];
        let wanted = |number| row(number).is_some();
        objects_in_use::each_listed(gvl, &self.maps, wanted, |number, object| {
            if let Some(row) = row(number) {
                objects[row] = Some(object);
            }
        });
        let located = objects.into_iter().zip(samples);
        let located = located.filter_map(|(object, sample)| Some((object?, *sample)));
        Some(located.collect())
    }
}
