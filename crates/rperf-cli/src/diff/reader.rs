//! Reads the profiles that `rperf diff` compares, with the filters applied. Used by `diff` and
//! `calls`, on the main thread.

use super::call_limit::CallLimit;
use super::options::{Options, View};
use crate::Refusal;
use crate::report::load;
use rperf_format::viewer as viewer_data;
use rperf_model::{Profile, Schema, ValueType};
use rperf_report::{Filter, Filtered, NoTests, Run, align};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The runs of one side, one by one, and for the viewer merged.
#[derive(Default)]
pub struct Side {
    /// 0 for the base, 1 for the target.
    number: usize,
    /// The runs, one by one.
    pub runs: Vec<Run>,
    /// The runs for each value type of the first profile; `None` if a file lacks the type.
    pub runs_by_type: Vec<Option<Vec<Run>>>,
    /// The runs for each value that has a limit.
    pub runs_of_limits: Vec<Vec<Run>>,
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
    /// A reader that has read nothing yet.
    pub fn new(options: &'a Options) -> Self {
        Self {
            options,
            types: Vec::new(),
            unmatched: None,
        }
    }

    /// The runs in these files, of the side with this number: the base is 0.
    pub fn side(&mut self, number: usize, files: &[PathBuf]) -> Result<Side, Refusal> {
        let mut side = Side {
            number,
            ..Side::default()
        };
        warn_of_twice(files);
        for file in files {
            let profile = self.read(file)?;
            self.add(&mut side, file, profile)?;
        }
        Ok(side)
    }

    /// The run in this file, which has been read, as one side.
    pub fn side_of(
        &mut self,
        number: usize,
        file: &Path,
        profile: Profile,
    ) -> Result<Side, Refusal> {
        let mut side = Side {
            number,
            ..Side::default()
        };
        self.add(&mut side, file, profile)?;
        Ok(side)
    }

    fn add(&mut self, side: &mut Side, file: &Path, read: Profile) -> Result<(), Refusal> {
        if let Some(value) = self.options.tests {
            let run = Run::of_tests(&read, value);
            side.runs.push(run.map_err(|why| no_tests(file, why))?);
            return Ok(());
        }
        let is_page = matches!(self.options.view, View::Web { .. } | View::Html(_));
        let read = match &self.options.of_sides[side.number] {
            filter if filter.is_empty() => read,
            filter => self.filtered_by(filter, read).profile,
        };
        let complete = is_page.then(|| read.clone());
        let mut filtered = self.filtered(read);
        side.runs.push(self.run(&filtered));
        self.add_of_limits(side, file, &mut filtered)?;
        let Some(complete) = complete else {
            return Ok(());
        };
        self.add_by_type(side, &mut filtered);
        // The page can hide the time of idle threads itself.
        let mut profile = self.with_idle(complete);
        match &mut side.together {
            None => side.together = Some(profile),
            Some(together) => {
                align(&mut profile, together);
                together
                    .merge(&profile)
                    .map_err(|error| Refusal::usage(format!("{}: {error}", file.display())))?;
            }
        }
        Ok(())
    }

    /// What the filters leave of a file.
    pub fn profile(&mut self, file: &Path) -> Result<Profile, Refusal> {
        let profile = self.read(file)?;
        Ok(self.filtered(profile).profile)
    }

    /// What the filters leave of a profile, with the time of idle threads.
    pub fn with_idle(&mut self, profile: Profile) -> Profile {
        let filter = Filter {
            hides_idle: false,
            ..self.options.filter.clone()
        };
        self.filtered_by(&filter, profile).profile
    }

    /// A file, with the values that are compared.
    pub fn read(&self, file: &Path) -> Result<Profile, Refusal> {
        let mut profile = load::profile(file)?;
        if self.options.tests.is_none() {
            load::choose_column(&mut profile, self.options.value.as_deref())?;
        }
        profile.path_view = self.options.path_view.clone();
        Ok(profile)
    }

    fn filtered(&mut self, profile: Profile) -> Filtered {
        self.filtered_by(&self.options.filter, profile)
    }

    fn filtered_by(&mut self, filter: &Filter, profile: Profile) -> Filtered {
        let mut filtered = filter.apply(profile);
        // What matches in one of the profiles has done its work.
        let others = self.unmatched.take();
        self.unmatched = Some(match others {
            Some(others) => others
                .into_iter()
                .filter(|option| filtered.unmatched.contains(option))
                .collect(),
            None => std::mem::take(&mut filtered.unmatched),
        });
        filtered
    }

    /// Names the filters that have matched nothing. Returns whether there are some.
    pub fn say_unmatched(&mut self) -> bool {
        let unmatched = self.unmatched.take().unwrap_or_default();
        for option in &unmatched {
            crate::say(&format!("{option} matches nothing in the profiles"));
        }
        !unmatched.is_empty()
    }

    fn run(&self, filtered: &Filtered) -> Run {
        let mut run = Run::of(&filtered.profile, self.options.label.as_deref());
        run.idle = filtered.idle;
        run
    }

    /// Adds the values that have limits.
    fn add_of_limits(
        &self,
        side: &mut Side,
        file: &Path,
        filtered: &mut Filtered,
    ) -> Result<(), Refusal> {
        let values: Vec<_> = self
            .options
            .fail_on
            .iter()
            .filter_map(CallLimit::value)
            .collect();
        side.runs_of_limits.resize_with(values.len(), Vec::new);
        let chosen = filtered.profile.schema.clone();
        for (value, runs) in values.into_iter().zip(&mut side.runs_of_limits) {
            let found = load::choose_column(&mut filtered.profile, Some(value));
            found.map_err(|refusal| {
                Refusal::usage(format!(
                    "--fail-on: {}: {}",
                    file.display(),
                    refusal.message
                ))
            })?;
            runs.push(self.run(filtered));
        }
        filtered.profile.schema = chosen;
        Ok(())
    }

    fn add_by_type(&mut self, side: &mut Side, filtered: &mut Filtered) {
        if self.types.is_empty() {
            self.types = filtered.profile.schema.types().to_vec();
        }
        side.runs_by_type
            .resize_with(self.types.len(), || Some(Vec::new()));
        let chosen = filtered.profile.schema.clone();
        let columns = viewer_data::columns_for(&self.types, &chosen);
        for (column, runs) in columns.into_iter().zip(&mut side.runs_by_type) {
            let schema = column.and_then(|column| Schema::new(chosen.types().to_vec(), column));
            match (schema, &mut *runs) {
                (Some(schema), Some(runs)) => {
                    filtered.profile.schema = schema;
                    runs.push(self.run(filtered));
                }
                _ => *runs = None,
            }
        }
        filtered.profile.schema = chosen;
    }
}

/// Why the tests of a file can't be compared, and what to do.
fn no_tests(file: &Path, why: NoTests) -> Refusal {
    let file = file.display();
    Refusal::usage(match why {
        NoTests::Objects => format!(
            "{file}: {why}, because other Ractors were there: --value wall compares their times"
        ),
        _ => format!(
            "{file}: {why}: 'rperf record' takes them where the program requires rperf/rspec or \
             rperf/minitest (rperf help tests)"
        ),
    })
}

/// Says that a file is given twice: it counts as two runs, which differ by nothing.
fn warn_of_twice(files: &[PathBuf]) {
    let mut seen = BTreeSet::new();
    for file in files {
        let same = file.canonicalize().unwrap_or_else(|_| file.clone());
        if !seen.insert(same) {
            crate::say(&format!(
                "{} is given twice for one side: the noise between runs looks smaller than it is",
                file.display()
            ));
        }
    }
}
