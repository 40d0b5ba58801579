//! Answers for programs, as JSON. docs/guide/json.md has the schema: fields are added to it, but
//! never changed. Called by `format::write` and by `rperf report`; any thread.

use crate::answers::{self, Data, FilteredProfile, LEAST_PERCENT, ROWS, Rows};
use crate::{FormatError, Parts};
use rperf_model::Profile;
use rperf_report::{By, Direction, NamePattern, Sort};
use std::io::Write;

/// The parts of the object beside the totals.
#[derive(Debug, Clone)]
pub struct JsonOptions {
    /// Rows of `top`; `None`: all.
    pub limit: Option<usize>,
    /// The order of the rows.
    pub sort: Sort,
    /// The methods that `callers` is about; without any there is no such field.
    pub callers: Option<NamePattern>,
    /// The fields beside the stacks.
    pub parts: Parts,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self {
            limit: Some(ROWS),
            sort: Sort::default(),
            callers: None,
            parts: Parts::default(),
        }
    }
}

/// The object as text, with a newline at the end.
pub fn json(filtered: FilteredProfile<'_>, options: &JsonOptions) -> String {
    let top = answers::top(filtered, &By::Function, options.sort, options.limit);
    let tree = answers::tree(filtered, Direction::TopDown, LEAST_PERCENT);
    let methods = answers::methods(filtered, options.sort, options.limit);
    let methods = (methods != Data::Null).then_some(("methods", methods));
    let callers = options.callers.as_ref();
    let callers = callers.map(|pattern| ("callers", answers::callers(filtered, pattern)));
    let parts: [(bool, &str, Rows); 3] = [
        (options.parts.boot, "boot", answers::boot),
        (options.parts.tests, "tests", answers::tests),
        (options.parts.ops, "ops", answers::ops),
    ];
    let parts = parts.into_iter().filter(|it| it.0);
    let parts = parts.map(|(_, name, of)| (name, of(filtered, options.sort, options.limit)));
    let gc = options.parts.gc;
    let gc = gc.then(|| ("gc", answers::collections(filtered)));
    let fields = [("version", 1_u64.into())]
        .into_iter()
        .chain(answers::totals(filtered))
        .chain([("top", top), ("tree", tree)])
        .chain(methods)
        .chain(callers)
        .chain(parts)
        .chain(gc);
    format!("{}\n", Data::fields(fields))
}

/// Writes the object for all of `profile`.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let text = json(FilteredProfile::all(profile), &JsonOptions::default());
    output.write_all(text.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::IdleTime;
    use rperf_model::State;
    use rperf_model::test_profile::TestProfile;

    #[test]
    fn all_answers_are_there() {
        let mut test = TestProfile::cpu()
            .with(&["main", "work"], 1, State::Running, 30)
            .with(&["main"], 1, State::GcMarking, 10);
        test.profile.meta.counters.dropped_samples = 2;
        let filtered = FilteredProfile {
            profile: &test.profile,
            whole: 50,
            idle: IdleTime::Kept(5),
        };
        let options = JsonOptions {
            limit: Some(1),
            callers: Some(NamePattern::Exact("work".into())),
            ..JsonOptions::default()
        };
        let expected = concat!(
            r#"{"version":1,"type":{"name":"cpu","unit":"nanoseconds"},"#,
            r#""types":[{"name":"samples","unit":"count"},{"name":"cpu","unit":"nanoseconds"}],"#,
            r#""total":50,"left":40,"idle":5,"samples":2,"duration_ns":0,"frequency":1000,"roots":[],"#,
            r#""states":{"running":30,"GVL blocked":0,"GVL wait":0,"GC marking":10,"#,
            r#""GC sweeping":0},"losses":{"dropped_samples":2,"dropped_ns":0,"#,
            r#""truncated_samples":0,"folded_samples":0,"folded_ns":0,"#,
            r#""unlabelled_samples":0},"#,
            r#""top":[{"name":"work","path":"a.rb","short_path":"a.rb","category":"app","self":30,"total":30,"#,
            r#""self_samples":1,"total_samples":1}],"#,
            r#""tree":[{"name":"main","path":"a.rb","short_path":"a.rb","depth":0,"self":0,"total":40,"left_out":0},"#,
            r#"{"name":"work","path":"a.rb","short_path":"a.rb","depth":1,"self":30,"total":30,"left_out":0},"#,
            r#"{"name":"[GC marking]","path":"\u003cGC>","short_path":"\u003cGC>","depth":1,"self":10,"total":10,"#,
            r#""left_out":0}],"#,
            r#""callers":[{"name":"work","path":"a.rb","short_path":"a.rb","self":30,"total":30,"#,
            r#""callers":[{"name":"main","path":"a.rb","short_path":"a.rb","value":30,"#,
            r#""lines":[{"line":2,"value":30}]}],"callees":[]}]}"#,
            "\n"
        );
        assert_eq!(json(filtered, &options), expected);
    }
}
