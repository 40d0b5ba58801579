//! Callgrind's format, for KCachegrind, QCachegrind and `callgrind_annotate`: what functions cost
//! by line, and who called whom how often. The profile's default values come first. Called by
//! `format::write`; any thread.
//!
//! The format has a count at each call, and readers take a count of 0 for no call: its cost
//! would be the caller's own. So a call whose count isn't known has the count 1, and its callee
//! a name that says so.

use crate::FormatError;
use rperf_model::{Column, Profile};
use rperf_report::one_line::{function_name, one_line, without_end};
use rperf_report::{CallCosts, FunctionCosts, FunctionKind, losses_line};
use std::collections::HashMap;
use std::io::{self, Write};

/// The name of a file that isn't known, as callgrind writes it.
const UNKNOWN_FILE: &str = "???";

/// Writes the costs in `profile`. Equal profiles make equal files.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let costs = CallCosts::of(profile);
    let mut file = File {
        columns: columns(profile),
        costs: &costs,
        output,
        file_ids: HashMap::new(),
        is_named: vec![false; costs.functions.len()],
    };
    file.head(profile)?;
    for place in 0..costs.functions.len() {
        file.function(place)?;
    }
    Ok(())
}

/// The columns in the order in which they are written: readers show the first one.
fn columns(profile: &Profile) -> Vec<Column> {
    let default = profile.schema.default_column();
    let others = profile.schema.columns().filter(|it| *it != default);
    std::iter::once(default).chain(others).collect()
}

struct File<'a> {
    columns: Vec<Column>,
    costs: &'a CallCosts,
    output: &'a mut dyn Write,
    /// Numbers of paths that have been written.
    file_ids: HashMap<&'a str, usize>,
    /// By function, whether its name has been written; its number is its place.
    is_named: Vec<bool>,
}

impl<'a> File<'a> {
    fn head(&mut self, profile: &Profile) -> io::Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let output = &mut *self.output;
        write!(
            output,
            "# callgrind format\nversion: 1\ncreator: rperf {version}\n"
        )?;
        writeln!(output, "cmd: {}", one_line(&profile.meta.program))?;
        let calls = match (self.costs.counts_calls, profile.schema.samples()) {
            (true, _) => "counted; 1 stands for calls of states, and of what is not counted",
            (false, Some(_)) => "not counted: their numbers are samples, and 1 where there is none",
            (false, None) => "not counted: 1 stands for any number",
        };
        writeln!(output, "desc: Calls: {calls}")?;
        for traced in profile.meta.tracing() {
            writeln!(output, "desc: Traced: {}", one_line(&traced.to_string()))?;
        }
        if let Some(losses) = losses_line(&profile.meta.counters) {
            writeln!(output, "desc: {losses}")?;
        }
        if self.costs.negative_values > 0 {
            let values = self.costs.negative_values;
            writeln!(
                output,
                "desc: Left out: {values} values below 0, which the format can't have"
            )?;
        }
        let types = profile.schema.types();
        let types: Vec<_> = self.columns.iter().map(|column| &types[column.0]).collect();
        let names = event_names(types.iter().map(|it| it.name.as_str()));
        for (name, value_type) in names.iter().zip(types) {
            let (long, unit) = (one_line(&value_type.name), one_line(&value_type.unit));
            writeln!(output, "event: {name} : {long} ({unit})")?;
        }
        writeln!(output, "positions: line\nevents: {}", names.join(" "))?;
        let totals = self.values(&self.costs.totals);
        writeln!(self.output, "summary:{totals}")
    }

    fn function(&mut self, place: usize) -> io::Result<()> {
        let function = &self.costs.functions[place];
        let (file, name) = (self.file(function), self.name(place));
        writeln!(self.output, "\nfl={file}\nfn={name}")?;
        for (line, costs) in &function.lines {
            let values = self.values(costs);
            writeln!(self.output, "{line}{values}")?;
        }
        for call in &function.calls {
            let callee = &self.costs.functions[call.callee];
            if callee.function.path != function.function.path {
                let file = self.file(callee);
                writeln!(self.output, "cfl={file}")?;
            }
            let name = self.name(call.callee);
            let (count, begin) = (call.count.max(1), callee.first_line);
            let values = self.values(&call.costs);
            writeln!(
                self.output,
                "cfn={name}\ncalls={count} {begin}\n{}{values}",
                call.line
            )?;
        }
        Ok(())
    }

    /// The values in the order of the file, each with a blank in front.
    fn values(&self, values: &[i64]) -> String {
        let of = |column: &Column| format!(" {}", values[column.0]);
        self.columns.iter().map(of).collect()
    }

    /// The number of a function's file; the first time with its path.
    fn file(&mut self, function: &'a FunctionCosts) -> String {
        let path = function.function.path.as_str();
        let next = self.file_ids.len() + 1;
        match *self.file_ids.entry(path).or_insert(next) {
            id if id == next => {
                let path = without_end(path);
                let path = one_line(&path);
                match path.trim() {
                    "" => format!("({id}) {UNKNOWN_FILE}"),
                    path => format!("({id}) {path}"),
                }
            }
            id => format!("({id})"),
        }
    }

    /// The number of a function; the first time with its name. Functions of one name in several
    /// files have a number each.
    fn name(&mut self, place: usize) -> String {
        let id = place + 1;
        match std::mem::replace(&mut self.is_named[place], true) {
            true => format!("({id})"),
            false => format!("({id}) {}", shown_name(&self.costs.functions[place])),
        }
    }
}

fn shown_name(function: &FunctionCosts) -> String {
    let name = without_end(&function.function.name);
    let name = match function_name(&name) {
        name if name.trim().is_empty() => function_name("").into_owned(),
        name => name.trim().to_owned(),
    };
    match function.kind {
        FunctionKind::NotCounted => format!("{name} [calls not known]"),
        _ => name,
    }
}

/// Names that the format can have, of letters, digits and underscores, each once.
fn event_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let numbered = |name| {
        let base = event_name(name);
        let number = numbers.entry(base.clone()).or_default();
        *number += 1;
        match *number {
            1 => base,
            number => format!("{base}__{number}"),
        }
    };
    names.map(numbered).collect()
}

fn event_name(name: &str) -> String {
    let allowed = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter,
        false => '_',
    };
    let event: String = name.chars().map(allowed).take(100).collect();
    match event.starts_with(|first: char| first.is_ascii_alphabetic()) {
        true => event,
        false => format!("value_{event}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_names_that_the_format_allows_each_once() {
        let names = ["wall", "alloc-space", "", "1st", "wall", "größe"];
        assert_eq!(
            event_names(names.into_iter()),
            [
                "wall",
                "alloc_space",
                "value_",
                "value_1st",
                "wall__2",
                "gr__e"
            ]
        );
    }
}
