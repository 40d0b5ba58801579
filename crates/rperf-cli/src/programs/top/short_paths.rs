//! The paths that `rperf top` shows: those of all programs together, as no two files may look the same.

use rperf_model::PathView;
use rperf_report::CodePaths;
use rperf_watch::sums::Sums;

/// Gives the methods their short paths, if there are new ones.
pub fn shorten(sums: &mut Sums, view: &PathView) {
    if !sums.has_new_methods() {
        return;
    }
    let files = sums.methods.iter().map(|method| &*method.path);
    let paths = CodePaths::of_files(view.clone(), sums.directories.roots.clone(), files);
    sums.shorten(|path| paths.short(path).as_ref().into());
}
