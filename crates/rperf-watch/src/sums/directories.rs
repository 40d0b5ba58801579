//! The directories of all programs, which say whose code a file is.

/// The directories that programs have told, each once.
#[derive(Debug, Clone, Default)]
pub struct Directories {
    /// Directories that the programs' own files belong to.
    pub roots: Vec<String>,
    /// Directories that have rperf's files.
    pub of_rperf: Vec<String>,
}

impl Directories {
    /// Notes the directories of a program.
    pub(super) fn add(&mut self, roots: &[String], of_rperf: &[String]) {
        note(&mut self.roots, roots);
        note(&mut self.of_rperf, of_rperf);
    }
}

fn note(known: &mut Vec<String>, new: &[String]) {
    for directory in new {
        if !known.contains(directory) {
            known.push(directory.clone());
        }
    }
}
