//! The pages of `rperf report`: from the answers of rperf-report to text. They do no
//! I/O, but for the source files that `annotate` shows.

mod annotate;
mod boot;
mod gc;
mod methods;
mod ops;
mod prefixes;
mod suite;
mod tree;

pub use annotate::annotate;
pub use boot::boot;
pub use gc::gc;
pub use methods::methods;
pub use ops::ops;
pub use suite::suite;
pub use tree::{TreeOptions, tree};

use super::counts::Counts;
use super::screen::{Screen, Style};
use crate::left_out::{SHOWS_MORE, left_out};
use rperf_format::answers::{FilteredProfile, IdleTime};
use rperf_format::shorten;
use rperf_format::table::{Column, Row, Table};
use rperf_model::Order;
use rperf_model::Profile;
use rperf_model::frame_kind::method_of;
use rperf_report::numbers::{counted, grouped, percent, seconds};
use rperf_report::one_line::{function_name, one_line};
use rperf_report::{
    By, Calls, Function, Neighbour, Neighbours, Scale, Sort, Top, TopRow, calls_text,
    has_objects_without_callers, idle_line, losses_line, notes_on, shows_calls,
};
use std::cmp::Reverse;

/// What all pages are made with.
#[derive(Debug)]
pub struct Page<'a> {
    /// What is left of the profile after the filters.
    pub profile: &'a Profile,
    /// What the profile adds up to without the filters.
    pub before: i64,
    /// What all shares are of: the same, or what the filters have left.
    pub whole: i64,
    /// The time of idle threads.
    pub idle: IdleTime,
    /// Where the page goes.
    pub screen: Screen,
    /// How many rows are shown; `None`: all.
    pub limit: Option<usize>,
    /// The calls of a trace, for the table of a sampled profile.
    pub counts: Option<Counts>,
}

impl Page<'_> {
    /// What is asked, for other notations than pages.
    pub fn question(&self) -> FilteredProfile<'_> {
        FilteredProfile {
            profile: self.profile,
            whole: self.whole,
            idle: self.idle,
        }
    }

    /// The scale for the page's values.
    fn scale(&self) -> Scale {
        Scale::new(self.profile.schema.default_type(), self.whole)
    }

    fn share(&self, value: i64) -> f64 {
        percent(value, self.whole)
    }

    /// `12.3%`
    fn percent(&self, value: i64) -> String {
        format!("{:.1}%", self.share(value))
    }

    fn value_with_percent(&self, value: i64) -> String {
        format!("{} ({})", self.scale().text(value), self.percent(value))
    }

    /// Whether filters leave a part of the values only.
    pub fn is_filtered(&self) -> bool {
        self.profile.sum(self.profile.schema.default_column()) != self.before
    }

    /// What the profile is about, and what of it is looked at.
    fn head(&self) -> String {
        let meta = &self.profile.meta;
        let column = self.profile.schema.default_column();
        let value_type = self.profile.schema.default_type();
        let mut head = format!(
            "Type: {}, {}",
            one_line(&value_type.name),
            self.scale().text(self.before)
        );
        let left = self.profile.sum(column);
        if self.is_filtered() {
            let (left, share) = (self.scale().text(left), percent(left, self.before));
            head += &format!(", of which {left} ({share:.1}%) are left");
            if self.whole != self.before {
                head += "; shares are of these";
            }
        }
        // Objects have values without samples.
        if let Some(samples) = self.profile.sample_count()
            && (samples > 0 || left == 0)
        {
            head += &format!(", {}", counted(samples, "sample"));
        }
        // Where the values are the calls, they are said already.
        if self.profile.schema.is_traced()
            && !shows_calls(self.profile)
            && let Some(calls) = calls_text(self.profile, "")
        {
            head += &format!(", {calls}");
        }
        if meta.duration_ns > 0 {
            head += &format!(", duration {} s", seconds(meta.duration_ns));
        }
        head.push('\n');
        if let Some(idle) = idle_line(self.profile, self.idle.left_out()) {
            head += &idle;
            head.push('\n');
        }
        if let Some(losses) = losses_line(&meta.counters) {
            head += &losses;
            head.push('\n');
        }
        for note in notes_on(self.profile) {
            head += &format!("{}\n", one_line(&note.to_string()));
        }
        for traced in self.profile.meta.tracing() {
            head += &format!("Traced: {}\n", one_line(&traced.to_string()));
        }
        self.screen.wrapped(&head)
    }

    /// The first ones of the rows, as far as they are shown.
    fn shown<'b, T>(&self, rows: &'b [T]) -> impl Iterator<Item = &'b T> {
        rows.iter().take(self.limit.unwrap_or(usize::MAX))
    }

    /// How many of so many rows aren't shown.
    fn more(&self, all: usize) -> String {
        left_out(all, self.limit, SHOWS_MORE)
    }

    /// A table with the first ones of so many rows.
    fn rows(&self, table: &Table, all: usize) -> String {
        self.screen.table(table) + &self.more(all)
    }

    /// Likewise, under a title.
    fn section(&self, title: &str, table: &Table, all: usize) -> String {
        self.title(title) + &self.rows(table, all)
    }

    fn title(&self, title: &str) -> String {
        format!("\n{}\n", self.screen.styled(Some(Style::Bold), title))
    }

    /// The head of a page that is about callers, of which objects beside samples have none.
    fn head_about_callers(&self) -> String {
        let mut head = self.head();
        if has_objects_without_callers(self.profile) {
            head += &self.screen.wrapped(
                "Objects beside samples have no callers, so total is self: 'rperf trace --measure \
                 alloc' has them.\n",
            );
        }
        head
    }
}

/// The rows with the most.
pub fn top(page: &Page<'_>, by: &By, sort: Sort) -> String {
    let column = page.profile.schema.default_column();
    let top = Top::of(page.profile, column, by);
    let mut rows = top.sorted(sort);
    if sort == Sort::SelfValue {
        // As with pprof, what only calls others comes after what has time of its own.
        let callers = top.sorted(Sort::TotalValue).into_iter();
        rows.extend(callers.filter(|row| row.self_value == 0));
    }
    let all = rows.len();
    rows.truncate(page.limit.unwrap_or(all));
    let scale = page.scale();
    let shown = rows.iter().map(|row| row.self_value);
    let shown = shown.fold(0, i64::saturating_add);
    let mut text = page.head();
    if let Some(counts) = &page.counts {
        let head = counts.head(noun(by).as_str(), page.whole);
        text += &page.screen.wrapped(&head);
    }
    text += &page.screen.wrapped(&format!(
        "Showing {} of {} {}: {}\n\n",
        grouped(rows.len() as i64),
        grouped(all as i64),
        noun(by),
        page.value_with_percent(shown)
    ));
    let own_calls = Calls::of(page.profile, by);
    let calls = page.counts.as_ref().map(|counts| &counts.joined.calls);
    let calls = calls.or(own_calls.as_ref());
    let has_blocks = calls.is_some_and(|calls| {
        rows.iter()
            .map(|row| &row.function)
            .any(|it| calls.calls(it).is_none() && calls.calls_or_block_calls(it).is_some())
    });
    let mut table = Table::new(columns(sort, calls.is_some(), has_blocks));
    let mut sum: i64 = 0;
    for row in rows {
        sum = sum.saturating_add(row.self_value);
        let mut cells = vec![
            scale.text(row.self_value),
            page.percent(row.self_value),
            page.percent(sum),
            scale.text(row.total_value),
            page.percent(row.total_value),
        ];
        if let Some(calls) = calls {
            cells.splice(0..0, call_cells(page.profile, calls, row));
        }
        table.push(Row::of(&row.function, cells, page.share(row.value(sort))));
    }
    if sum == 0 && all == 0 {
        return text;
    }
    text + &page.screen.table(&table)
}

/// The columns of [`top`]. The one of the order is always shown. Blocks have no other count.
fn columns(sort: Sort, has_calls: bool, has_blocks: bool) -> Vec<Column> {
    let (own, total) = match sort {
        Sort::SelfValue => (Column::new("self"), Column::weighing("total", 8)),
        Sort::TotalValue => (Column::weighing("self", 8), Column::new("total")),
    };
    let times = [
        own,
        Column::weighing("self%", 6),
        Column::weighing("sum%", 1),
        total,
        Column::weighing("total%", 5),
    ];
    let calls = [
        Column::weighing("calls", 7),
        Column::weighing("blocks", if has_blocks { 7 } else { 2 }),
        Column::weighing("self/call", 4),
        Column::weighing("total/call", 3),
    ];
    let calls = calls.into_iter().filter(|_| has_calls);
    calls.chain(times).collect()
}

/// How often a row was called, and what a call took.
fn call_cells(profile: &Profile, calls: &Calls, row: &TopRow) -> [String; 4] {
    let per_call = |value: i64| match calls.calls_or_block_calls(&row.function) {
        Some(number) => {
            let value = value / number.max(1);
            Scale::new(profile.schema.default_type(), value).text(value)
        }
        None => "-".into(),
    };
    [
        calls.calls_text(&row.function),
        calls.block_calls_text(&row.function),
        per_call(row.self_value),
        per_call(row.total_value),
    ]
}

fn noun(by: &By) -> String {
    match by {
        By::Function => "methods".to_string(),
        By::Class => "classes".to_string(),
        By::File => "files".to_string(),
        By::Directory => "directories".to_string(),
        By::Gem(_) => "gems".to_string(),
        By::Label(key) => format!("values of {}", one_line(key)),
        By::Op => "ops".to_string(),
        By::Thread => "threads".to_string(),
        By::State => "states".to_string(),
    }
}

/// Callers and callees of functions.
pub fn callers(page: &Page<'_>, found: &[Neighbours]) -> String {
    let mut text = page.head_about_callers();
    let all = found.len();
    let top = Top::of(
        page.profile,
        page.profile.schema.default_column(),
        &By::Function,
    );
    for neighbours in found.iter().take(page.limit.unwrap_or(all)) {
        let [total, own] = [neighbours.total_value, neighbours.self_value];
        text += &heading(page, &neighbours.function, total, own);
        text += &side(page, "called by", &with_rest(neighbours));
        text += &side(page, "calls", &neighbours.callees);
        text += &side(page, "its blocks", &blocks_of(&neighbours.function, &top));
    }
    text + &more(page, all, "methods that match")
}

/// The blocks of a method, which are called by others: what they call isn't among what it calls.
fn blocks_of(method: &Function, top: &Top) -> Vec<Neighbour> {
    let rows = top.rows.iter();
    let blocks = rows.filter(|row| {
        let function = &row.function;
        function.name != method.name
            && method_of(&function.name) == method.name
            && function.path == method.path
    });
    let mut blocks: Vec<_> = blocks
        .map(|row| Neighbour {
            function: row.function.clone(),
            value: row.total_value,
            lines: Vec::new(),
        })
        .collect();
    blocks.order_by_key(|block| Reverse(block.value.unsigned_abs()));
    blocks
}

/// The callers, with what has none: it is outermost in its stacks. Where a function calls itself,
/// its callers' values are more than its own.
fn with_rest(neighbours: &Neighbours) -> Vec<Neighbour> {
    let mut callers = neighbours.callers.clone();
    let known: i64 = callers.iter().map(|caller| caller.value).sum();
    let calls_itself = callers.iter().any(|it| it.function == neighbours.function);
    let rest = neighbours.total_value.saturating_sub(known);
    if rest > 0 && !callers.is_empty() && !calls_itself {
        callers.push(Neighbour {
            function: Function::named("(no caller)"),
            value: rest,
            lines: Vec::new(),
        });
    }
    callers
}

fn side(page: &Page<'_>, heading: &str, side: &[Neighbour]) -> String {
    if side.is_empty() {
        return String::new();
    }
    let scale = page.scale();
    let mut table = Table::new([""; 3].map(Column::new));
    for neighbour in side {
        let cells = vec![
            "  ".to_string(),
            scale.text(neighbour.value),
            page.percent(neighbour.value),
        ];
        let mut row = Row::of(&neighbour.function, cells, page.share(neighbour.value));
        row.note = calling_lines(&neighbour.lines, &scale);
        table.push(row);
    }
    format!("  {heading}\n{}", page.screen.table(&table))
}

/// The lines of calls, with their values if there are several.
fn calling_lines(lines: &[(u32, i64)], scale: &Scale) -> String {
    const SHOWN: usize = 4;
    let known: Vec<_> = lines.iter().filter(|(line, _)| *line > 0).collect();
    match known[..] {
        [] => String::new(),
        [(line, _)] if lines.len() == 1 => format!("  line {line}"),
        _ => {
            let shown = known.iter().take(SHOWN);
            let shown: Vec<_> = shown
                .map(|(line, value)| format!("{line}: {}", scale.text(*value)))
                .collect();
            let more = if known.len() > SHOWN { ", …" } else { "" };
            format!("  lines {}{more}", shown.join(", "))
        }
    }
}

/// A function with its values, above what is known of it.
fn heading(page: &Page<'_>, function: &Function, total: i64, own: i64) -> String {
    let [total, own] = [total, own].map(|value| page.value_with_percent(value));
    let values = format!(": {total}, self {own}");
    let (name, path) = match (&*function.name, one_line(&function.short_path)) {
        ("", path) => (path, "".into()),
        (name, path) => (function_name(name), path),
    };
    // Where there is little room the values have a line of their own.
    let is_long = page.screen.width().is_some_and(|width| {
        shorten::columns(&values) + shorten::columns(&name).min(shorten::LEAST) > width
    });
    let used = if is_long {
        0
    } else {
        shorten::columns(&values)
    };
    let title = page.screen.named(&name, &path, used);
    let title = page.screen.styled(Some(Style::Bold), &title);
    match is_long {
        true => format!(
            "\n{title}\n{}",
            page.screen.wrapped(&format!("  {}\n", &values[2..]))
        ),
        false => format!("\n{title}{values}\n"),
    }
}

/// How many of a list aren't shown, behind a blank line.
fn more(page: &Page<'_>, all: usize, noun: &str) -> String {
    match left_out(all, page.limit, &format!(" {noun}{SHOWS_MORE}")) {
        none if none.is_empty() => none,
        line => format!("\n{line}"),
    }
}

#[cfg(test)]
mod tests;
