//! What the tests of a suite took, in RPV1: the slowest tests, files and factories, and the sums of all.
//! Called by `viewer`; any thread.

use super::columns::Columns;
use super::tables::Tables;
use super::timed;
use rperf_model::numbers;
use rperf_model::{Profile, SuiteSums};
use rperf_report::{Sort, Tests};

/// Rows of a table at most, and bytes of their texts: a suite may have many more.
#[derive(Debug, Clone, Copy)]
struct Limits {
    rows: usize,
    text: usize,
}

const LIMITS: Limits = Limits {
    rows: 5_000,
    text: 2 << 20,
};

/// Writes a profile's, if it has any; those of the page's first profile have the number 0.
pub(super) fn write(index: usize, profile: &Profile, tables: &mut Tables, columns: &mut Columns) {
    let Some(found) = Tests::without_gems(profile, Sort::SelfValue) else {
        return;
    };
    let Tests {
        total,
        without_row,
        examples,
        files,
        factories,
        ..
    } = &found;
    let all = Table::of("suite", index, vec![total], columns);
    let counts = [examples.len(), files.len(), factories.len()];
    for (column, count) in ["tests", "files", "factories"].into_iter().zip(counts) {
        all.number(columns, column, &[count as u64]);
    }
    all.number(columns, "without_row", &[*without_row]);

    let tests = LIMITS.of(examples, |it| {
        it.name.len() + it.sums.title.len() + it.file.len()
    });
    let sums = tests.iter().map(|it| &it.sums).collect();
    let table = Table::of("tests", index, sums, columns);
    let mut text = |column: &str, texts: &mut dyn Iterator<Item = &str>| {
        table.text(columns, tables, column, texts);
    };
    text("name", &mut tests.iter().map(|it| &*it.name));
    text("title", &mut tests.iter().map(|it| &*it.sums.title));
    text("file", &mut tests.iter().map(|it| &*it.file));

    let files = LIMITS.of(files, |it| it.name.len());
    let sums = files.iter().map(|it| &it.sums).collect();
    let table = Table::of("test_files", index, sums, columns);
    let mut names = files.iter().map(|it| &*it.name);
    table.text(columns, tables, "name", &mut names);
    let hooks: Vec<u64> = files.iter().map(|it| it.hooks_ns).collect();
    table.number(columns, "hooks", &hooks);

    let factories = LIMITS.of(factories, |it| it.name.len());
    let sums = factories.iter().map(|it| &it.sums).collect();
    let table = Table::of("factories", index, sums, columns);
    let mut names = factories.iter().map(|it| &*it.name);
    table.text(columns, tables, "name", &mut names);
    let own: Vec<u64> = factories.iter().map(|it| it.sums.own_ns).collect();
    table.number(columns, "own", &own);
    let top_level: Vec<u64> = factories.iter().map(|it| it.sums.top_level).collect();
    table.number(columns, "top_level", &top_level);
}

impl Limits {
    /// The first of `rows`, whose texts have these lengths.
    fn of<T>(self, rows: &[T], text: impl Fn(&T) -> usize) -> &[T] {
        let mut left = self.text;
        let has_room = |row: &&T| match left.checked_sub(text(row)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        let rows = &rows[..rows.len().min(self.rows)];
        let count = rows.iter().take_while(has_room).count();
        &rows[..count]
    }
}

/// A table about a suite: of its tests, files or factories, or of its sums.
struct Table {
    name: String,
}

impl Table {
    /// Writes the columns that all have.
    fn of(table: &str, index: usize, rows: Vec<&SuiteSums>, columns: &mut Columns) -> Self {
        let table = Self {
            name: format!("{table}/{index}"),
        };
        let counts: Vec<u64> = rows.iter().map(|it| it.count).collect();
        table.number(columns, "count", &counts);
        timed::write(columns, &table.name, &rows);
        table
    }

    fn number(&self, columns: &mut Columns, column: &str, numbers: &[u64]) {
        let numbers = numbers.iter().copied().map(numbers::signed);
        columns.signed(&self.column(column), numbers);
    }

    fn text(
        &self,
        columns: &mut Columns,
        tables: &mut Tables,
        column: &str,
        texts: &mut dyn Iterator<Item = &str>,
    ) {
        let strings: Vec<u32> = texts.map(|text| tables.string(text)).collect();
        columns.unsigned(&self.column(column), strings.into_iter());
    }

    fn column(&self, column: &str) -> String {
        format!("{}/{column}", self.name)
    }
}
