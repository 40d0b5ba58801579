//! How many objects have been made, as the VM counts them. To ask makes no object, so hooks may; but a
//! VM with another collector may not know the question, and would raise: so it is asked once before.

use magnus::rb_sys::protect;
use rb_sys::VALUE;
use std::sync::OnceLock;

/// The question: a Symbol of an id, which is neither freed nor moved. `None`: the VM doesn't tell.
static QUESTION: OnceLock<Option<VALUE>> = OnceLock::new();

/// Makes the question. With the GVL, outside of hooks.
pub fn prepare() {
    QUESTION.get_or_init(|| {
        // SAFETY: the text ends with a 0; an id always has a Symbol. What is raised is caught.
        unsafe {
            let name = c"total_allocated_objects";
            let question = rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr()));
            let answer = protect(|| rb_sys::rb_gc_stat(question) as VALUE);
            answer.is_ok().then_some(question)
        }
    });
}

/// The objects that all Ractors have made so far; `None` if the VM doesn't tell. It may be some objects
/// behind. With the GVL, in hooks, too, once the question is made.
pub fn count() -> Option<u64> {
    let question = (*QUESTION.get()?)?;
    // SAFETY: with the GVL; the VM knows the question. For a Symbol it reads numbers only.
    Some(unsafe { rb_sys::rb_gc_stat(question) } as u64)
}
