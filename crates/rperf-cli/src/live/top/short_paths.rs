//! The paths that `rperf top` shows: those of all programs together, as no two files may look the same.

use super::watched::Watched;
use crate::path_args::PathArgs;
use rperf_model::{FrameId, PathView};
use rperf_report::CodePaths;
use rperf_top::store::Store;

/// The short paths of these programs.
pub fn of_programs<'a>(
    args: &PathArgs,
    programs: impl Iterator<Item = &'a Watched> + Clone,
) -> CodePaths {
    let roots = programs
        .clone()
        .flat_map(|it| it.hello.roots.iter().cloned());
    let files = programs.flat_map(|program| {
        let mirror = &program.mirror;
        let frames = (0..mirror.frames()).filter_map(|it| mirror.frame(FrameId(it as u32)));
        frames.map(|(_, path)| path)
    });
    CodePaths::of_files(args.view(), roots.collect(), files)
}

/// Gives the methods in the store their short paths, if there are new ones.
pub fn shorten(store: &mut Store, view: &PathView) {
    if !store.has_new_methods() {
        return;
    }
    let files = store.methods.iter().map(|method| &*method.path);
    let paths = CodePaths::of_files(view.clone(), store.roots.clone(), files);
    store.shorten(|path| paths.short(path).as_ref().into());
}
