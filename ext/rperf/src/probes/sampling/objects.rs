//! New objects in a session that samples: each counts for the innermost frame of Ruby. The hook is
//! there while a section is open, if objects are counted.

use crate::ruby::frames::{RubyVm, innermost_ruby_frame};
use crate::ruby::object_hook::{NewObject, ObjectHook, OnNewObject};
use crate::running::roots;
use crate::running::sampling::{SamplingSession, catching, counting_session};
use rperf_model::LabelSetId;
use rperf_vm::{AllocationSite, Gvl};

/// The hook.
pub static HOOK: ObjectHook = ObjectHook::on_all::<Objects>();

/// What it tells.
pub struct Objects;

impl OnNewObject for Objects {
    fn made(gvl: &Gvl<'_>, object: NewObject) {
        let Some(session) = counting_session(gvl) else {
            return;
        };
        catching(session, || add(gvl, session, object));
    }
}

fn add(gvl: &Gvl<'_>, session: &SamplingSession, object: NewObject) {
    let Some(mut objects) = session.sums.objects.as_ref().and_then(|it| it.borrow(gvl)) else {
        return;
    };
    let (frame, line) = innermost_ruby_frame(RubyVm::new(gvl));
    let site = AllocationSite {
        thread: session.ticks.holder_seq(),
        place: frame,
        line: if session.sums.has_lines { line } else { 0 },
        class: object.class,
        labels: LabelSetId::default(),
    };
    objects.add(site, object.bytes);
    roots::keep_objects_alive(&mut objects);
}
