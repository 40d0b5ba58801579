//! Profiles for the web viewer that an app serves (lib/rperf/viewer.rb). On the thread that
//! calls, which lets the GVL go while it compresses.

use super::errors;
use super::object::ProfileObject;
use crate::interrupts::without_gvl_if_possible;
use crate::text;
use magnus::{Error, RHash, RString, Ruby};
use rperf_format::viewer::{self, Comparison, TitledProfile, View};
use rperf_format::{Format, FormatError, TextOptions, pprof};

/// `#for_viewer(title)`: all that a snapshot is kept as. `:data` is what the page shows, and
/// `:pprof` the same as a file, of which [`compare`] makes comparisons.
pub fn for_viewer(ruby: &Ruby, rb_self: &ProfileObject, title: String) -> Result<RHash, Error> {
    // It outlives this: the caller's frame holds the object, which never changes.
    let profile = &*rb_self.0;
    let (data, file) = without_gvl_if_possible(|| {
        let titled = TitledProfile {
            title: &title,
            profile,
        };
        let data = view_data(vec![titled], None)?;
        let mut file = Vec::new();
        rperf_format::write(profile, Format::Pprof, TextOptions::default(), &mut file)?;
        Ok::<_, FormatError>((data, file))
    })?
    .map_err(|error| errors::rperf(ruby, error.to_string()))?;
    let hash = ruby.hash_new();
    hash.aset(ruby.to_symbol("data"), ruby.str_from_slice(&data))?;
    hash.aset(ruby.to_symbol("pprof"), ruby.str_from_slice(&file))?;
    for (key, number) in [
        ("start_ns", profile.meta.start_time_ns),
        ("duration_ns", profile.meta.duration_ns),
    ] {
        hash.aset(ruby.to_symbol(key), number)?;
    }
    hash.aset(ruby.to_symbol("samples"), profile.sample_count())?;
    Ok(hash)
}

/// `NativeProfile.compare_for_viewer(base, base_title, target, target_title)`: the data that shows
/// the change from one snapshot to another, each given by its `:pprof`.
pub fn compare(
    ruby: &Ruby,
    base: RString,
    base_title: String,
    target: RString,
    target_title: String,
) -> Result<RString, Error> {
    let [base, target] = [base, target].map(text::bytes);
    let data = without_gvl_if_possible(|| {
        let read = |file: Vec<u8>| pprof::read(&mut file.as_slice());
        let base = read(base).map_err(|error| error.to_string())?;
        let target = read(target).map_err(|error| error.to_string())?;
        let comparison = Comparison::by_duration(&base, &target);
        let titled = [(&base_title, &base), (&target_title, &target)];
        let titled = titled.map(|(title, profile)| TitledProfile { title, profile });
        view_data(titled.to_vec(), Some(comparison)).map_err(|error| error.to_string())
    })?
    .map_err(|error| errors::rperf(ruby, error))?;
    Ok(ruby.str_from_slice(&data))
}

fn view_data(
    profiles: Vec<TitledProfile<'_>>,
    comparison: Option<Comparison>,
) -> Result<Vec<u8>, FormatError> {
    let view = View {
        profiles,
        comparison,
        ..View::default()
    };
    let mut data = Vec::new();
    viewer::write(&view, &mut data)?;
    Ok(data)
}
