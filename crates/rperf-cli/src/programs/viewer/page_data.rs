//! Profiles as the page has them.

use rperf_format::viewer::{Comparison, TitledProfile, View};
use rperf_model::Profile;

/// The page's data: these profiles with their titles, and the comparison, if there is one.
pub fn data(
    profiles: &[(&str, &Profile)],
    comparison: Option<Comparison>,
) -> Result<Vec<u8>, String> {
    let profiles = profiles.iter();
    let profiles = profiles.map(|&(title, profile)| TitledProfile { title, profile });
    let view = View {
        profiles: profiles.collect(),
        comparison,
        ..View::default()
    };
    let mut data = Vec::new();
    let written = rperf_format::viewer::write(&view, &mut data);
    written.map_err(|error| error.to_string()).map(|()| data)
}
