//! The limits of `rperf diff --fail-on`: by how much there may be more calls, of any method, of those
//! that are named, or of all together; or more of a value. On the main thread.

use super::percent::percent_text;
use crate::Refusal;
use rperf_model::frame_kind::method_of;
use rperf_model::{OwnColumn, Profile};
use rperf_report::one_line::{function_name, one_line};
use rperf_report::{CallChange, CallDiff, Change, Diff, NamePattern};

/// The word for all calls together.
const TOTAL: &str = "total";

/// A limit as it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct CallLimit {
    /// The limit as the user wrote it.
    text: String,
    /// What it is for; `None`: each method and block.
    subject: Option<String>,
    percent: f64,
}

impl CallLimit {
    /// Reads `5%`, `Order#total>5%` or `total>5%`.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        // The names of methods can have the sign, too.
        let (subject, percent) = match text.rsplit_once('>') {
            Some((subject, percent)) => (Some(subject.trim()), percent),
            None => (None, text),
        };
        let number = percent.trim().trim_end_matches('%').parse::<f64>();
        match number {
            Ok(percent) if percent.is_finite() && percent >= 0.0 && subject != Some("") => {
                Ok(Self {
                    text: text.into(),
                    subject: subject.map(String::from),
                    percent,
                })
            }
            _ => Err(Refusal::usage(format!(
                "--fail-on must be a percentage, as 5%, one of a method, as 'Order#total>5%', or one of a value, as \
                 'inuse_space>5%', not '{text}'"
            ))),
        }
    }

    /// The value whose total it is for, if it isn't for calls: calls are those of methods.
    pub fn value(&self) -> Option<&'static str> {
        let column = OwnColumn::named(self.subject.as_deref()?)?;
        Self::of_value(column).then(|| column.name())
    }

    /// The names of values, in words, if the limit's name can be a mistyped one: those of methods have signs.
    pub fn hint(&self) -> Option<String> {
        let subject = self.subject.as_deref().filter(|it| *it != TOTAL)?;
        let is_method = ["#", ".", "::"].iter().any(|it| subject.contains(it));
        if is_method || self.value().is_some() {
            return None;
        }
        let named = |column: OwnColumn| Self::of_value(column).then(|| column.name());
        let names: Vec<_> = OwnColumn::all().filter_map(named).collect();
        let subject = one_line(subject);
        Some(format!(
            "'{subject}' is no value: these are {}",
            names.join(", ")
        ))
    }

    /// Whether a limit with the name of this one is for a value: calls are those of methods.
    fn of_value(column: OwnColumn) -> bool {
        !matches!(column, OwnColumn::Calls | OwnColumn::BlockCalls)
    }

    /// The change of a value's total in words, if there is more than the limit allows, beyond the noise.
    /// Fails if that can't be told.
    pub fn exceeded_by(&self, diff: &Diff) -> Result<Option<String>, Refusal> {
        let text = &self.text;
        let total = &diff.total;
        if total.base == 0 && total.target == 0 {
            let message = format!("--fail-on '{text}' can't tell: there is nothing to compare");
            return Err(Refusal::usage(message));
        }
        if total.change == Change::Unknown {
            let uncounted = match self.value() == Some(OwnColumn::GcCost.name()) {
                true => "collections",
                false => "samples",
            };
            return Err(Refusal::usage(format!(
                "--fail-on '{text}' can't tell: the profiles don't count their {uncounted}, so several runs of \
                 each side are needed"
            )));
        }
        let change = match total.percent() {
            Some(percent) => percent_text(percent),
            None => "new".into(),
        };
        let name = &diff.value_type.name;
        let is_above = diff.is_total_above(self.percent / 100.0);
        Ok(is_above.then(|| format!("{name} {change} (--fail-on '{text}')")))
    }

    /// What has more calls than the limit allows, in words. Fails if nothing in the profiles has
    /// the name: such a limit would never be exceeded.
    pub fn exceeded(
        &self,
        diff: &CallDiff,
        profiles: [&Profile; 2],
    ) -> Result<Vec<String>, Refusal> {
        let is_above = |row: &&CallChange| row.is_above(self.percent);
        let said = |row: &CallChange| format!("{} (--fail-on '{}')", in_words(row), self.text);
        let rows = diff.rows.iter();
        match self.subject.as_deref() {
            None => Ok(rows.filter(is_above).map(said).collect()),
            Some(TOTAL) => {
                let total = Some(&diff.total).filter(is_above);
                Ok(total.map(said).into_iter().collect())
            }
            Some(subject) => {
                let patterns = profiles.map(|profile| NamePattern::new(subject, profile));
                let [base, target] = patterns;
                let refuse = |error| Refusal::usage(format!("--fail-on: {error}"));
                let patterns = [base.map_err(refuse)?, target.map_err(refuse)?];
                // A method that only one of them has is named exactly there.
                let exact = patterns
                    .iter()
                    .find(|it| matches!(it, NamePattern::Exact(_)));
                let pattern = exact.unwrap_or(&patterns[0]);
                // A method is meant with its blocks.
                let matches =
                    |name: &str| pattern.matches(name) || pattern.matches(method_of(name));
                let found: Vec<_> = rows.filter(|row| matches(&row.function.name)).collect();
                if found.is_empty() {
                    let not_counted = diff.not_counted.iter().any(|it| matches(&it.name));
                    let why = match not_counted {
                        true => "the calls of it were not counted",
                        false => "no method in the profiles matches it",
                    };
                    let hint = self.hint().map(|it| format!("; {it}")).unwrap_or_default();
                    let text = &self.text;
                    return Err(Refusal::usage(format!("--fail-on '{text}': {why}{hint}")));
                }
                Ok(found.into_iter().filter(is_above).map(said).collect())
            }
        }
    }
}

/// A row in a sentence.
fn in_words(row: &CallChange) -> String {
    let name = shown_name(row);
    match row.percent() {
        Some(percent) => format!("{name} {}", percent_text(percent)),
        None => format!("{name} new"),
    }
}

/// The name of a row.
pub fn shown_name(row: &CallChange) -> String {
    let function = &row.function;
    if function.name.is_empty() && function.path.is_empty() {
        return "all calls".into();
    }
    function_name(&function.name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_of_a_value_if_it_has_the_name_of_one() {
        let value = |text: &str| CallLimit::parse(text).expect("a limit").value();
        assert_eq!(value("inuse_space>5%"), Some("inuse_space"));
        assert_eq!(value("alloc_objects > 1"), Some("alloc_objects"));
        for of_calls in ["5%", "total>5%", "calls>5%", "Shop#inuse_space>5%"] {
            assert_eq!(value(of_calls), None, "{of_calls}");
        }
    }

    #[test]
    fn a_name_that_is_no_method_gets_those_of_values() {
        let hint = |text: &str| CallLimit::parse(text).expect("a limit").hint();
        let said = hint("alloc_spac>20%").expect("a hint");
        assert!(said.starts_with("'alloc_spac' is no value: "), "{said}");
        assert!(said.contains("alloc_space") && said.contains("inuse_objects"));
        assert!(!said.contains("calls"), "{said}");
        for known in [
            "5%",
            "total>5%",
            "alloc_space>5%",
            "Order#total>1",
            "A.b>1",
            "A::B>1",
        ] {
            assert_eq!(hint(known), None, "{known}");
        }
    }

    #[test]
    fn limits_have_a_percentage_and_may_have_a_name() {
        for (text, subject, percent) in [
            ("5%", None, 5.0),
            ("0", None, 0.0),
            ("Order#total>5%", Some("Order#total"), 5.0),
            ("total > 2.5", Some("total"), 2.5),
            ("Integer#<=>>10%", Some("Integer#<=>"), 10.0),
            ("Order#>>1", Some("Order#>"), 1.0),
        ] {
            let limit = CallLimit::parse(text).expect("a limit");
            assert_eq!(
                (limit.subject.as_deref(), limit.percent),
                (subject, percent)
            );
        }
        for text in [
            "",
            "x",
            "-1",
            ">5%",
            "Order#total",
            "Order#total>",
            "a>-1%",
            "inf",
            "nan%",
        ] {
            let refusal = CallLimit::parse(text).expect_err("no limit");
            assert!(refusal.message.contains(&format!("not '{text}'")), "{text}");
        }
    }
}
