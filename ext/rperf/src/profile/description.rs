//! What is said of a run beside its numbers: the version, the Ruby, the program, and the labels
//! that all samples have. With the GVL, outside of hooks.

use crate::text;
use magnus::rb_sys::FromRawValue;
use magnus::{Ruby, Value, prelude::*};
use rperf_model::Profile;
use rperf_session::settings::{self as table, Settings};

/// The first lines of a profile's comments; `mode` is one of them.
pub fn lines(ruby: &Ruby, mode: String) -> Vec<String> {
    let description: Option<String> = ruby
        .class_object()
        .const_get::<_, Value>("RUBY_DESCRIPTION")
        .ok()
        .and_then(text::of_string);
    vec![
        format!("rperf {}", env!("CARGO_PKG_VERSION")),
        mode,
        description.unwrap_or_default(),
    ]
}

/// The name of the program. An interrupt that came meanwhile isn't met here, where it would be
/// lost.
pub fn program() -> String {
    // SAFETY: only looks a variable up.
    let program = unsafe { Value::from_raw(rb_sys::rb_gv_get(c"$0".as_ptr())) };
    text::of_string(program).unwrap_or_default()
}

/// The profile with the labels that the settings give to all samples.
pub fn labelled(settings: &Settings, mut profile: Profile) -> Profile {
    if let Some(table::Value::Labels(labels)) = settings.get(&table::LABELS) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(key, value)| (&**key, &**value))
            .collect();
        profile.label_rest(&labels);
    }
    profile
}
