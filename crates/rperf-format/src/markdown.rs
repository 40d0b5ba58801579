//! The report to paste into a pull request or to hand to an assistant: where the time goes, in
//! words first, then by state, method and path; where threads wait; what was lost. It is about the
//! profile's default column. Called by `format::write` and by `rperf report`; any thread.

mod boot;
mod collections;
mod ops;
mod part;
mod parts;
mod suite;
pub mod text;
mod why;

pub use parts::markdown_of;
pub use why::{markdown_of_endpoint, markdown_of_endpoints};

use crate::FormatError;
use crate::answers::FilteredProfile;
use rperf_model::{Category, CodePath, FrameKind, Order, Profile, State};
use rperf_report::numbers::{counted, grouped, percent, seconds};
use rperf_report::{
    By, CodePaths, Function, Path, Scale, Sort, StateRow, Step, Top, TopRow, Totals, Wait,
    WaitSite, losses, nanoseconds_per, without_idle,
};
use std::borrow::Cow;
use std::io::Write;
use text::{Table, code, left_out, location, name};

/// Methods in the table unless asked for otherwise.
pub const METHODS: usize = 15;
/// Paths that are shown.
const PATHS: usize = 5;
/// Steps of a path that are shown, those next to where it ends.
const STEPS: usize = 12;
/// Comments of the profile that are shown; ours have the versions.
const NOTES: usize = 10;
/// The least share of a kind of waiting, in percent, that the first sentences name.
const LEAST_PERCENT: f64 = 5.0;
/// Locations for each kind of waiting.
const SITES: usize = 5;

/// The report. `limit`: methods in the table; `None`: all.
pub fn markdown(filtered: FilteredProfile<'_>, limit: Option<usize>) -> String {
    let report = Report::new(filtered);
    let parts = [
        report.head(),
        report.states(),
        report.methods(limit),
        report.paths(),
        report.waits(),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// Writes the report on all of `profile`.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let (profile, idle) = without_idle(profile);
    let filtered = FilteredProfile::all_but_idle(&profile, idle);
    let text = markdown(filtered, Some(METHODS));
    output.write_all(text.as_bytes())?;
    Ok(())
}

/// A value with its unit, of which a profile of another tool may have any.
pub fn amount(scale: &Scale, value: i64) -> String {
    match scale.unit() {
        "" => scale.number(value),
        unit if unit.chars().all(char::is_alphanumeric) => scale.text(value),
        unit => format!("{} {}", scale.number(value), code(unit)),
    }
}

struct Report<'a> {
    profile: &'a Profile,
    whole: i64,
    idle: i64,
    scale: Scale,
    totals: Totals,
    top: Top,
}

impl<'a> Report<'a> {
    fn new(filtered: FilteredProfile<'a>) -> Self {
        let FilteredProfile {
            profile,
            whole,
            idle,
        } = filtered;
        let column = profile.schema.default_column();
        Self {
            profile,
            whole,
            idle: idle.left_out(),
            scale: Scale::new(profile.schema.default_type(), whole),
            totals: Totals::of(profile, column),
            top: Top::of(profile, column, &By::Function),
        }
    }

    fn amount(&self, value: i64) -> String {
        amount(&self.scale, value)
    }

    /// `12.3%`
    fn percent(&self, value: i64) -> String {
        format!("{:.1}%", percent(value, self.whole))
    }

    fn head(&self) -> String {
        let title = title(self.profile);
        format!("{title}\n{}\n\n{}", self.summary(), self.facts())
    }

    /// Where the time goes, in words.
    fn summary(&self) -> String {
        let left = self.totals.value;
        if self.top.rows.is_empty() {
            return "There is nothing in this profile.".to_string();
        }
        let value_type = self.profile.schema.default_type();
        let whole = format!("{} ({})", self.amount(self.whole), code(&value_type.name));
        let is_time = nanoseconds_per(&value_type.unit).is_some();
        let states = self.states_with_values();
        let shares = || {
            states
                .iter()
                .map(|&(state, value)| (self.percent(value), words(state)))
        };
        let divided = match states[..] {
            _ if left != self.whole => {
                let shares: Vec<_> = shares()
                    .map(|(share, state)| format!("{share} {state}"))
                    .collect();
                let (left, share) = (self.amount(left), self.percent(left));
                format!(
                    "Filters have left {left} ({share}) of {whole}: {}.",
                    shares.join(", ")
                )
            }
            [(StateRow::Of(State::Running), _)] if is_time => {
                format!("All of {whole} went into running code.")
            }
            [(StateRow::Of(State::Running), _)] => format!("This is about {whole}."),
            _ => {
                let shares: Vec<_> = shares()
                    .map(|(share, state)| format!("{share} into {state}"))
                    .collect();
                format!("Of {whole} went {}.", shares.join(", "))
            }
        };
        let sentences = [Some(divided), self.hottest_method(), self.hottest_wait()];
        let sentences: Vec<_> = sentences.into_iter().flatten().collect();
        sentences.join(" ")
    }

    /// The states with a value, the largest first.
    fn states_with_values(&self) -> Vec<(StateRow, i64)> {
        let states = StateRow::ALL.map(|row| (row, self.totals.row(row)));
        let mut states: Vec<_> = states
            .into_iter()
            .filter(|(_, value)| *value != 0)
            .collect();
        states.order_by_key(|(_, value)| std::cmp::Reverse(value.unsigned_abs()));
        states
    }

    fn hottest_method(&self) -> Option<String> {
        let rows = self.top.sorted(Sort::SelfValue);
        let row = rows
            .into_iter()
            .find(|row| !is_state(row) && !self.is_rperfs(row))?;
        if row.self_value == 0 {
            return None;
        }
        let text = format!(
            "The method with the most of its own is {}: {} ({}).",
            name(&row.function),
            self.amount(row.self_value),
            self.percent(row.self_value)
        );
        Some(text)
    }

    fn is_rperfs(&self, row: &TopRow) -> bool {
        let Function { name, path, .. } = &row.function;
        self.profile.meta.origin(name, path).category == Category::Rperf
    }

    fn hottest_wait(&self) -> Option<String> {
        let waits = self.waiting();
        let wait = waits.iter().max_by_key(|wait| wait.value.unsigned_abs())?;
        if percent(wait.value, self.whole) < LEAST_PERCENT {
            return None;
        }
        let site = wait.sites.first()?;
        let text = format!(
            "The place with the most {} is {}: {} ({}).",
            words(StateRow::Of(wait.state)),
            self.site(site),
            self.amount(site.value),
            self.percent(site.value)
        );
        Some(text)
    }

    fn waiting(&self) -> Vec<Wait> {
        Wait::of(self.profile, self.profile.schema.default_column())
    }

    /// The type of the values, and the way they were measured.
    fn facts(&self) -> String {
        let meta = &self.profile.meta;
        let mut facts = Vec::new();
        let mut measured = format!("{} of ", self.amount(self.whole));
        measured += &code(&self.profile.schema.default_type().name);
        if let Some(samples) = self.profile.sample_count() {
            measured += &format!(", {}", counted(samples, "sample"));
        }
        facts.push(("Measured", measured));
        if self.idle > 0 {
            let idle = format!("{} hidden, --idle shows them", self.amount(self.idle));
            facts.push(("Idle threads", idle));
        }
        if meta.duration_ns > 0 {
            facts.push(("Duration", format!("{} s", seconds(meta.duration_ns))));
        }
        if meta.frequency > 0 {
            facts.push(("Frequency", format!("{} Hz", grouped(meta.frequency))));
        }
        let lost: Vec<_> = losses(&meta.counters)
            .into_iter()
            .map(|it| it.text)
            .collect();
        if !lost.is_empty() {
            facts.push(("Lost", lost.join(", ")));
        }
        let notes = meta.lines();
        let comments = notes.iter().filter(|it| !it.is_empty());
        let comments: Vec<_> = comments.take(NOTES).map(|it| code(it)).collect();
        if !comments.is_empty() {
            facts.push(("Notes", comments.join(", ")));
        }
        let facts = facts
            .iter()
            .map(|(what, text)| format!("- {what}: {text}\n"));
        facts.collect()
    }

    fn states(&self) -> String {
        let states = self.states_with_values();
        if states
            .iter()
            .all(|(state, _)| *state == StateRow::Of(State::Running))
        {
            return String::new();
        }
        let mut table = Table::new(&["value", "share", "state"], 2);
        for (state, value) in states {
            let state = words(state).to_owned();
            table.row([self.amount(value), self.percent(value), state]);
        }
        format!("### By state\n\n{}", table.text())
    }

    fn methods(&self, limit: Option<usize>) -> String {
        let mut rows: Vec<_> = self.top.sorted(Sort::SelfValue);
        // Methods that only call others come after methods with a value of their own.
        let callers = self.top.sorted(Sort::TotalValue).into_iter();
        rows.extend(callers.filter(|row| row.self_value == 0));
        let limit = limit.unwrap_or(rows.len());
        let more = rows.len().saturating_sub(limit);
        let mut table = Table::new(&["self", "self%", "total", "total%", "method", "file"], 4);
        for row in rows.into_iter().take(limit) {
            table.row([
                self.amount(row.self_value),
                self.percent(row.self_value),
                self.amount(row.total_value),
                self.percent(row.total_value),
                name(&row.function),
                location(&row.function.short_path, 0),
            ]);
        }
        let more = left_out(more);
        let legend = "*self*: of the method alone; *total*: with all that it calls.";
        match self.top.rows.is_empty() {
            true => String::new(),
            false => format!("### Hottest methods\n\n{legend}\n\n{}{more}", table.text()),
        }
    }

    fn paths(&self) -> String {
        let column = self.profile.schema.default_column();
        let paths = Path::hottest(self.profile, column, PATHS);
        let mut text = String::new();
        for (number, path) in (1..).zip(&paths) {
            let value = format!("{} ({})", self.amount(path.value), self.percent(path.value));
            text += &format!("{number}. {value}\n");
            let above = path.steps.len().saturating_sub(STEPS);
            if above > 0 {
                text += &format!("   - ({} callers above)\n", grouped(above as u64));
            }
            for step in &path.steps[above..] {
                text += &format!("   - {}\n", self::step(step));
            }
        }
        match text.is_empty() {
            true => text,
            false => format!("### Hottest paths\n\nEach from the outermost caller.\n\n{text}"),
        }
    }

    fn waits(&self) -> String {
        let waits = self.waiting();
        let mut table = Table::new(&["value", "share", "waiting or GC", "at"], 2);
        for (wait, site) in waits
            .iter()
            .flat_map(|wait| wait.sites.iter().take(SITES).map(move |site| (wait, site)))
        {
            table.row([
                self.amount(site.value),
                self.percent(site.value),
                words(StateRow::Of(wait.state)).to_owned(),
                self.site(site),
            ]);
        }
        match waits.is_empty() {
            true => String::new(),
            false => format!("### What it waits for\n\n{}", table.text()),
        }
    }

    fn site(&self, site: &WaitSite) -> String {
        let caller = site.caller.as_ref().map(|(function, line)| {
            let location = location(&function.short_path, *line);
            match site.function.as_ref() {
                Some(inner) if inner == function => location,
                _ => format!("{}, {location}", name(function)),
            }
        });
        match (&site.function, caller) {
            (None, _) => "no stack".to_string(),
            (Some(function), None) => name(function),
            (Some(function), Some(caller)) => format!("{} ({caller})", name(function)),
        }
    }
}

/// The title of a report.
fn title(profile: &Profile) -> String {
    match &*program(profile) {
        "" => "## Profile\n".to_string(),
        program => format!("## Profile of {}\n", code(program)),
    }
}

/// The program's name as people type it. Executables are found in directories that nobody asks for.
fn program(profile: &Profile) -> Cow<'_, str> {
    let program = &*profile.meta.program;
    if profile.path_view.is_full {
        return program.into();
    }
    let short = CodePaths::of(profile).short(program);
    // Programs give themselves names, too, which can be whole sentences.
    match program.rsplit_once('/') {
        Some((directory, file))
            if program.starts_with('/')
                && !program.contains(char::is_whitespace)
                && (short.starts_with('/') || is_tools(program, directory, profile)) =>
        {
            file.into()
        }
        _ => short,
    }
}

/// Whether an executable in `directory` is a gem's, or one that is run in another directory than its own: `rake` where
/// all that it runs is elsewhere.
fn is_tools(program: &str, directory: &str, profile: &Profile) -> bool {
    let is_for_commands =
        ["bin", "exe"].contains(&directory.rsplit('/').next().unwrap_or(directory));
    let is_below = |root: &String| std::path::Path::new(program).starts_with(root);
    let is_of_gem = matches!(CodePath::of(program), CodePath::Gem { .. });
    is_for_commands && (is_of_gem || !profile.meta.roots.iter().all(is_below))
}

fn step(step: &Step) -> String {
    let location = match step.function.path.as_str() {
        path if FrameKind::of(path).is_synthetic() => String::new(),
        _ => location(&step.function.short_path, step.line),
    };
    let recursive = if step.is_recursive {
        " (calls itself)"
    } else {
        ""
    };
    format!("{} {location}{recursive}", name(&step.function))
        .trim_end()
        .to_string()
}

/// Whether the row stands for a state, or for stacks that are not known.
fn is_state(row: &TopRow) -> bool {
    FrameKind::of(&row.function.path).is_synthetic()
}

fn words(row: StateRow) -> &'static str {
    match row {
        StateRow::Of(State::GvlBlocked) => "GVL blocked (I/O, sleep)",
        row => row.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support;

    #[test]
    fn titles_have_no_directories_of_executables() {
        let mut profile = test_support::with_requests(&[]);
        profile.meta.roots = vec!["/srv/shop".into()];
        for (program, shown) in [
            ("/usr/local/bundle/bin/rspec", "rspec"),
            ("/srv/shop/bin/rails", "bin/rails"),
            ("bin/app.rb", "bin/app.rb"),
            ("puma: worker 0: 7 [shop]", "puma: worker 0: 7 [shop]"),
            ("/usr/bin/job of a/b", "/usr/bin/job of a/b"),
        ] {
            profile.meta.program = program.into();
            assert_eq!(title(&profile), format!("## Profile of `{shown}`\n"));
        }
        // What has no Gemfile is below the directory of its executable, beside the one it was run in.
        profile.meta.roots = vec!["/opt/ruby".into(), "/tmp/x".into()];
        let gems = "/opt/ruby/lib/ruby/gems/3.4.0/gems";
        for (program, shown) in [
            ("/opt/ruby/bin/rake".to_string(), "rake"),
            (format!("{gems}/rspec-core-3.13.0/exe/rspec"), "rspec"),
            (format!("{gems}/a-1.0/lib/a.rb"), "a-1.0/lib/a.rb"),
            ("/opt/ruby/app.rb".to_string(), "app.rb"),
        ] {
            profile.meta.program = program;
            assert_eq!(title(&profile), format!("## Profile of `{shown}`\n"));
        }
        profile.path_view.is_full = true;
        profile.meta.program = "/usr/local/bundle/bin/rspec".into();
        assert!(title(&profile).contains("/bundle/bin/rspec"));
    }
}
