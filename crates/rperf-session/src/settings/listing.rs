//! The settings as text for the help: variables, and keywords of `Rperf.start`. Used by the
//! command; any thread.

use super::form::Source;
use super::table::{ALL, Defaults, ENABLED_VARIABLE, SESSION_VARIABLE, Setting};

/// Variables that aren't settings: name, values and meaning.
const CONTROLS: [(&str, &str, &str); 2] = [
    (ENABLED_VARIABLE, "1", "profile this program as a whole"),
    (
        SESSION_VARIABLE,
        "path",
        "set by rperf for the children of what it profiles",
    ),
];

/// The RPERF_* variables, a line for each: name, values, meaning, and default in brackets.
pub fn variables_text() -> String {
    let settings = ALL.iter().filter(|setting| setting.variable);
    let rows = settings.map(|setting| {
        let meaning = match default_text(&setting.default, setting.unset) {
            Some(default) => format!("{} [{default}]", setting.meaning),
            None => setting.meaning.to_string(),
        };
        (
            setting.variable_name(),
            values(setting, Source::Variable),
            meaning,
        )
    });
    let [enabled, session] = CONTROLS
        .map(|(name, values, meaning)| (name.to_string(), values.to_string(), meaning.to_string()));
    let rows = [enabled].into_iter().chain(rows).chain([session]);
    let line = |(name, values, meaning)| format!("  {name:<18} {values:<24} {meaning}\n");
    rows.map(line).collect()
}

fn default_text(default: &Defaults, unset: Option<&'static str>) -> Option<String> {
    let usual = default.record.or(unset)?;
    let page = default.page.or(unset)?;
    Some(match usual == page {
        true => usual.to_string(),
        false => format!("{usual}; {page} with RPERF_STAT=1"),
    })
}

/// The keywords of `Rperf.start`, a line for each: name, default, meaning and values.
pub fn keywords_text() -> String {
    let settings = ALL.iter().filter(|setting| setting.keyword);
    let line = |setting: &&Setting| {
        let keyword = setting.label(Source::Keyword);
        let default = keyword_default(setting);
        let values = values(setting, Source::Keyword);
        let nil = match setting.unset {
            Some(unset) => format!("; nil: {unset}"),
            None => String::new(),
        };
        format!(
            "  {:<24} {}\n  {:<24} {values}{nil}\n",
            format!("{keyword} {default}"),
            setting.meaning,
            ""
        )
    };
    settings.map(line).collect()
}

/// A keyword's default, in Ruby's notation.
pub fn keyword_default(setting: &Setting) -> String {
    let Some(default) = setting.default.keyword else {
        return "nil".into();
    };
    let forms = setting.forms.iter();
    let mut same = forms.filter(|form| form.listed(Source::Variable) == default);
    same.next()
        .map_or_else(|| default.into(), |form| form.listed(Source::Keyword))
}

/// The values that a setting may have, in a list.
pub fn values(setting: &Setting, source: Source) -> String {
    let forms: Vec<_> = setting
        .forms
        .iter()
        .map(|form| form.listed(source))
        .collect();
    forms.join(", ")
}
