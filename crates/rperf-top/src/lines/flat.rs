//! The lines of methods, threads and labels.

use crate::line::{Line, Question, What, key, sort_lines};
use rperf_watch::sums::{Label, RowKey, Sums, Times};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Returns a line for each method that has had time.
pub fn methods(sums: &Sums, question: &Question<'_>) -> Vec<Line> {
    by_process(sums, question, |process| {
        let (methods, all) = sums.method_times(question.scope, question.filter, process);
        let found = methods.into_iter();
        let found = found.filter(|it| question.finds_method(sums, it.method));
        let lines = found.map(|it| Line {
            what: What::Method(it.method),
            key: key(&("method", process, it.method as usize)),
            depth: 0,
            opens: None,
            own: it.own,
            total: it.total,
            whole: all.run,
        });
        (lines.collect(), all)
    })
}

/// Returns a line for each thread that has had time.
pub fn threads(sums: &Sums, question: &Question<'_>) -> Vec<Line> {
    by_process(sums, question, |process| {
        let mut found: BTreeMap<u32, Times> = BTreeMap::new();
        let mut places: FxHashMap<_, u64> = FxHashMap::default();
        let mut all = Times::default();
        for (row, times) in sums.rows_of(question.scope, question.filter, process) {
            let RowKey { thread, state, .. } = row.key;
            found.entry(thread).or_default().add(times);
            let place = (thread, sums.node_of(row), state);
            let place = places.entry(place).or_default();
            *place = place.saturating_add(times.all());
            all.add(times);
        }
        // The node that each has been in most, and for how long.
        let mut most: FxHashMap<u32, (u64, Reverse<u32>)> = FxHashMap::default();
        for ((thread, node, _), time) in places {
            let most = most.entry(thread).or_default();
            *most = (*most).max((time, Reverse(node)));
        }
        let lines = found.into_iter().map(|(thread, times)| {
            let (_, Reverse(node)) = most[&thread];
            Line {
                what: What::Thread(thread, node),
                key: key(&("thread", thread)),
                depth: 0,
                opens: None,
                own: times,
                total: times,
                whole: times.all(),
            }
        });
        let is_found = |line: &Line| match line.what {
            What::Thread(_, node) => question.finds_method(sums, sums.nodes[node as usize].method),
            _ => false,
        };
        (lines.filter(is_found).collect(), all)
    })
}

/// Returns a line for each label that something has had.
pub fn labels(sums: &Sums, question: &Question<'_>) -> Vec<Line> {
    by_process(sums, question, |process| {
        let (scope, filter) = (question.scope, question.filter);
        let (found, without) = sums.label_times(scope, filter, process);
        let mut all = Times::default();
        for (_, times) in sums.rows_of(scope, filter, process) {
            all.add(times);
        }
        let line = |what, key, times: Times| Line {
            what,
            key,
            depth: 0,
            opens: None,
            own: times,
            total: times,
            whole: all.run,
        };
        let is_found = |(name, value): &Label| question.finds(name) || question.finds(value);
        let found = found.into_iter().filter(|(label, _)| is_found(label));
        let mut lines: Vec<_> = found
            .map(|(label, times)| {
                let (name, value) = label.clone();
                line(What::Label(name, value), key(&(process, label)), times)
            })
            .collect();
        if question.search.is_empty() && without != Times::default() {
            lines.push(line(What::NoLabel, key(&("no label", process)), without));
        }
        (lines, all)
    })
}

/// The lines of each process under its heading, or of all.
fn by_process(
    sums: &Sums,
    question: &Question<'_>,
    lines: impl Fn(Option<u32>) -> (Vec<Line>, Times),
) -> Vec<Line> {
    let mut found = Vec::new();
    for process in question.processes(sums) {
        let (mut lines, all) = lines(process);
        sort_lines(&mut lines, question.sort, false);
        match process {
            Some(process) if all != Times::default() => found.push(Line::heading(process, all)),
            _ => {}
        }
        found.extend(lines);
    }
    found
}
