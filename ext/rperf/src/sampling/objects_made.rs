//! Where the objects were made that a session follows: with names, and which objects they are. For who looks
//! at the objects themselves. On a thread of the main Ractor, with the GVL.

use super::taken_profile::name_some;
use crate::interrupts::let_others_run;
use crate::probes::sampling::{objects_in_use, sampled_objects};
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
    let looked = sampled_objects::before_look();
    objects_in_use::put_away(gvl, true);
    let followed = sampling(gvl).and_then(|session| {
        let sampler = session.sampled_objects.as_ref()?.borrow(gvl)?;
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

    /// The samples whose objects live, with these. They are valid until another thread runs, or an object is
    /// made.
    pub fn located(&self, gvl: &mut Gvl<'_>) -> Vec<(VALUE, FollowedSample)> {
        let mut located = Vec::with_capacity(self.samples().samples.len());
        // Another session has other numbers.
        if sampling(gvl).is_none_or(|it| it.id != self.session) {
            return located;
        }
        objects_in_use::each_listed(gvl, &self.maps, |number, object| {
            let samples = &self.samples().samples;
            if let Ok(row) = samples.binary_search_by_key(&number, |it| it.number) {
                located.push((object, samples[row]));
            }
        });
        located
    }
}
