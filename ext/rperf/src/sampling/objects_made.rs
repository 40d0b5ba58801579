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
use rperf_sampling::objects::{FollowedSample, FollowedSamples, NamedSite};
use rperf_vm::{Gvl, ResolvedFrame, SessionId, clock};
use std::sync::Arc;

/// The samples of a session, and the names of their frames.
pub struct ObjectsMade {
    session: SessionId,
    samples: FollowedSamples,
    names: Vec<Arc<ResolvedFrame>>,
    maps: Vec<(WeakMap, Vec<u64>)>,
}

/// Takes them, if the running session follows objects. Other threads run meanwhile: names are given for 2 ms at
/// a time.
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
    Ok(Some(ObjectsMade {
        session,
        samples,
        names,
        maps: objects_in_use::listed(gvl),
    }))
}

impl ObjectsMade {
    /// For how long the session has run, in ns.
    pub fn elapsed_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.samples.since_ns)
    }

    /// What is known of all samples.
    pub fn samples(&self) -> &FollowedSamples {
        &self.samples
    }

    /// Their sites.
    pub fn sites(&self) -> Vec<NamedSite<'_>> {
        let sites = self.samples.sites(&self.names, own_files::start());
        sites.collect()
    }

    /// The samples whose objects live, with these. They are valid until another thread runs, or an object is
    /// made.
    pub fn located(&self, gvl: &mut Gvl<'_>) -> Vec<(VALUE, FollowedSample)> {
        let mut located = Vec::with_capacity(self.samples.samples.len());
        // Another session has other numbers.
        if sampling(gvl).is_none_or(|it| it.id != self.session) {
            return located;
        }
        objects_in_use::each_listed(gvl, &self.maps, |number, object| {
            let samples = &self.samples.samples;
            if let Ok(row) = samples.binary_search_by_key(&number, |it| it.number) {
                located.push((object, samples[row]));
            }
        });
        located
    }
}
