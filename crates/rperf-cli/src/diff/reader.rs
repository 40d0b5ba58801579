//! Reads the profiles that `rperf diff` compares, with the filters applied. Used by `diff` and
//! `calls`, on Ruby's main thread.

use super::options::{Options, View};
use crate::Refusal;
use crate::report::load;
use rperf_format::viewer as viewer_data;
use rperf_model::{Profile, Schema, ValueType};
use rperf_report::{Run, align};
use std::path::{Path, PathBuf};

/// The runs of one side, one by one, and for the viewer merged.
pub struct Side {
    /// One by one.
    pub runs: Vec<Run>,
    /// Of each value type of the first profile; `None` where a file has no such values.
    pub runs_by_type: Vec<Option<Vec<Run>>>,
    /// All of them with the paths of the first, if they are looked at in the viewer.
    pub together: Option<Profile>,
}

/// Reads profiles, and remembers what all of them have in common.
pub struct Reader<'a> {
    /// What the user asked for.
    pub options: &'a Options,
    /// The value types of the first profile.
    types: Vec<ValueType>,
    /// Filters that have matched nothing so far.
    unmatched: Option<Vec<&'static str>>,
}

impl<'a> Reader<'a> {
    /// One that has read nothing yet.
    pub fn new(options: &'a Options) -> Self {
        Self {
            options,
            types: Vec::new(),
            unmatched: None,
        }
    }

    /// The runs in these files.
    pub fn side(&mut self, files: &[PathBuf]) -> Result<Side, Refusal> {
        let is_page = matches!(self.options.view, View::Web { .. } | View::Html(_));
        let mut side = Side {
            runs: Vec::new(),
            runs_by_type: Vec::new(),
            together: None,
        };
        for file in files {
            let mut profile = self.profile(file)?;
            side.runs.push(self.run(&profile));
            if is_page {
                self.add_by_type(&mut side, &mut profile);
                match &mut side.together {
                    None => side.together = Some(profile),
                    Some(together) => {
                        align(&mut profile, together);
                        together.merge(&profile).map_err(|error| {
                            Refusal::usage(format!("{}: {error}", file.display()))
                        })?;
                    }
                }
            }
        }
        Ok(side)
    }

    /// What the filters leave of a file.
    pub fn profile(&mut self, file: &Path) -> Result<Profile, Refusal> {
        let mut profile = load::profile(file)?;
        load::choose_column(&mut profile, self.options.value.as_deref())?;
        profile.path_view = self.options.path_view.clone();
        let filtered = self.options.filter.apply(profile);
        // What matches in one of the profiles has done its work.
        let others = self.unmatched.take();
        self.unmatched = Some(match others {
            Some(others) => others
                .into_iter()
                .filter(|option| filtered.unmatched.contains(option))
                .collect(),
            None => filtered.unmatched,
        });
        Ok(filtered.profile)
    }

    /// Names the filters that have matched nothing.
    pub fn say_unmatched(&mut self) {
        for option in self.unmatched.take().unwrap_or_default() {
            crate::say(&format!("{option} matches nothing in the profiles"));
        }
    }

    fn run(&self, profile: &Profile) -> Run {
        Run::of(profile, self.options.label.as_deref())
    }

    fn add_by_type(&mut self, side: &mut Side, profile: &mut Profile) {
        if self.types.is_empty() {
            self.types = profile.schema.types().to_vec();
        }
        side.runs_by_type
            .resize_with(self.types.len(), || Some(Vec::new()));
        let chosen = profile.schema.clone();
        let columns = viewer_data::columns_for(&self.types, &chosen);
        for (column, runs) in columns.into_iter().zip(&mut side.runs_by_type) {
            let schema = column.and_then(|column| Schema::new(chosen.types().to_vec(), column));
            match (schema, &mut *runs) {
                (Some(schema), Some(runs)) => {
                    profile.schema = schema;
                    runs.push(self.run(profile));
                }
                _ => *runs = None,
            }
        }
        profile.schema = chosen;
    }
}
