//! The lines of memory: the rows of each program, and their sum.

use crate::line::{Line, Question, What, key};
use rperf_watch::sums::{Sums, Times};

/// Returns a line for each row, and one for the sum of each program.
pub fn memory(sums: &Sums, question: &Question<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let known: Vec<_> = (0..)
        .zip(&sums.processes)
        .filter(|(_, it)| !it.has_ended)
        .collect();
    let has_headings = question.by_process || known.len() > 1;
    for (process, it) in known {
        let memory = &it.memory;
        if memory.rows.is_empty() {
            continue;
        }
        if has_headings {
            lines.push(Line::heading(process, Times::default()));
        }
        let line = |row: Option<u32>| Line {
            what: What::Memory(process, row),
            key: key(&("memory", process, row)),
            depth: 0,
            opens: None,
            own: Times::default(),
            total: Times::default(),
            whole: memory.total().0,
        };
        let rows = (0..).zip(&memory.rows);
        let rows = rows.filter(|(_, row)| question.finds(&row.title));
        lines.extend(rows.map(|(place, _)| line(Some(place))));
        if question.search.is_empty() {
            lines.push(line(None));
        }
    }
    lines
}
