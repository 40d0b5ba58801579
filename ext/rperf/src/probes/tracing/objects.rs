//! New objects in a traced session: each counts for the frame that is innermost.

use crate::ruby::frames::RubyVm;
use crate::ruby::object_hook::{NewObject, ObjectHook, OnNewObject};
use crate::running::roots;
use crate::running::tracing::with_counting_tracer;
use rperf_vm::{Gvl, VmFrames};

pub static HOOK: ObjectHook = ObjectHook::on_all::<Objects>();

pub struct Objects;

impl OnNewObject for Objects {
    fn made(gvl: &Gvl<'_>, object: NewObject) {
        with_counting_tracer(gvl, |_, tracer| {
            tracer.allocated(object.class, object.bytes, || RubyVm::new(gvl).line());
            roots::keep_classes_alive(tracer);
        });
    }
}
