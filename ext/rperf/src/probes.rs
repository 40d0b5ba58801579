//! What the VM calls: the hooks that sessions have, each in a row of [`PROBES`], and the sampling callback.
//! They turn the VM's events into calls of the engine and keep policy out.
//!
//! Which thread may touch what:
//! - What asks for a [`Gvl`](rperf_vm::Gvl): only a thread that holds the main Ractor's GVL.
//!   A token is made at the head of each callback and method. Code that can run Ruby code takes
//!   it as `&mut`, so that nothing of the session is kept meanwhile.
//! - Hooks of other Ractors' threads have those Ractors' GVLs
//!   ([`OtherGvl`](crate::ruby::other_gvl::OtherGvl)): they touch their thread's recorder, no more.
//! - READY and EXITED run without the GVL and touch atomics only.
//! - Hooks make no Ruby object, raise nothing, and take no lock that can wait.

pub mod sampling;
pub mod tracing;

use crate::ruby::{safepoint, thread_hook};
use crate::running::{Kind, Running, running};
use rperf_vm::Gvl;
use sampling::{
    ended_ractors, fiber, gc, objects, objects_in_use, sampled_objects, sampling_job, thread,
    time_slice,
};
use tracing::{calls, gc as traced_gc, objects as traced_objects, thread as traced_thread};

/// A hook of the VM's. All is done with the GVL, outside of hooks.
struct Probe {
    /// For how long a session has it, if it does.
    lasts: fn(&Running) -> Option<Lasts>,
    /// Registers it for a session.
    add: fn(&Gvl<'_>, &Running),
    /// Removes it, if it is there and can be removed.
    remove: fn(),
}

/// For how long a session has a probe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// While time counts.
    Section,
    /// To the session's end.
    Session,
}

/// All probes, in the order in which they are added. The first is the one on threads, which has to be
/// away while the process forks.
static PROBES: [Probe; 10] = [
    Probe {
        lasts: |it| samples(it).or(traces(it)),
        add: |_, it| match &it.kind {
            Kind::Sampling(session) => thread::add(session.mode),
            _ => traced_thread::add(),
        },
        remove: thread_hook::remove,
    },
    Probe {
        lasts: samples,
        add: |_, _| gc::HOOK.add(),
        remove: || gc::HOOK.remove(),
    },
    Probe {
        lasts: samples,
        add: |_, _| time_slice::HOOK.add(),
        remove: || time_slice::HOOK.remove(),
    },
    Probe {
        lasts: |it| samples(it).filter(|_| it.uses_labels()),
        add: |_, _| fiber::add(),
        remove: fiber::remove,
    },
    Probe {
        lasts: |it| samples(it).filter(|_| it.settings.measures_objects()),
        add: |_, _| objects::HOOK.add(),
        remove: || objects::HOOK.remove(),
    },
    Probe {
        lasts: |it| samples(it).filter(|_| it.settings.samples_objects()),
        add: |gvl, it| {
            if let Kind::Sampling(session) = &it.kind {
                sampled_objects::add(gvl, session);
            }
        },
        remove: sampled_objects::remove,
    },
    Probe {
        lasts: traces,
        add: |_, _| traced_gc::HOOK.add(),
        remove: || traced_gc::HOOK.remove(),
    },
    Probe {
        lasts: traces,
        add: |_, it| {
            if let Kind::Tracing(session) | Kind::Calibration(session) = &it.kind {
                calls::add(session.setup.level);
            }
        },
        remove: calls::remove,
    },
    Probe {
        lasts: |it| match &it.kind {
            Kind::Tracing(session) if session.setup.counts_objects => Some(Lasts::Session),
            _ => None,
        },
        add: |_, _| traced_objects::HOOK.add(),
        remove: || traced_objects::HOOK.remove(),
    },
    Probe {
        lasts: |it| it.chosen.as_ref().map(|_| Lasts::Session),
        add: |_, _| calls::SWITCHES_ALONE.add(),
        remove: || calls::SWITCHES_ALONE.remove(),
    },
];

fn samples(running: &Running) -> Option<Lasts> {
    matches!(running.kind, Kind::Sampling(_)).then_some(Lasts::Section)
}

fn traces(running: &Running) -> Option<Lasts> {
    matches!(running.kind, Kind::Tracing(_) | Kind::Calibration(_)).then_some(Lasts::Session)
}

/// Makes what is made once per process. On the main thread.
pub fn init() {
    safepoint::register(sampling_job::on_safepoint);
    ended_ractors::init();
    objects_in_use::init();
}

/// Adds the probes that the running session has for so long.
pub fn add(gvl: &Gvl<'_>, lasting: Lasts) {
    if let Some(running) = running(gvl) {
        let probes = PROBES.iter();
        let probes = probes.filter(|probe| (probe.lasts)(running) == Some(lasting));
        probes.for_each(|probe| (probe.add)(gvl, running));
    }
}

/// Removes those that the running session has while time counts.
pub fn end_section(gvl: &Gvl<'_>) {
    if let Some(running) = running(gvl) {
        let probes = PROBES.iter().rev();
        let probes = probes.filter(|probe| (probe.lasts)(running) == Some(Lasts::Section));
        probes.for_each(|probe| (probe.remove)());
    }
}

/// Removes all probes: afterwards none of them is called, but for those that can't be removed.
pub fn remove_all() {
    PROBES.iter().rev().for_each(|probe| (probe.remove)());
}

/// Removes all but the hook on threads.
pub fn remove_inherited() {
    PROBES[1..].iter().rev().for_each(|probe| (probe.remove)());
}

/// Adds the hook on threads alone, which was removed for a fork.
pub fn add_on_threads(gvl: &Gvl<'_>) {
    if let Some(running) = running(gvl) {
        (PROBES[0].add)(gvl, running);
    }
}
