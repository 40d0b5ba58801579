//! The lines of methods, threads and labels.

use super::{Line, Question, What, key, sort_lines};
use crate::store::{Row, Store, Times};
use rustc_hash::FxHashMap;

/// One for each method that has had time.
pub fn methods(store: &Store, question: &Question<'_>) -> Vec<Line> {
    by_process(store, question, |process| {
        let sums = store.sums(question.scope, question.filter, process);
        let mut times = vec![(Times::default(), Times::default()); store.methods.len()];
        for (number, node) in store.nodes.iter().enumerate().skip(1) {
            let (own, total) = &mut times[node.method as usize];
            own.add(sums.own[number]);
            if node.is_outermost {
                total.add(sums.total[number]);
            }
        }
        let all = sums.all();
        let times = times.into_iter().enumerate();
        let known = times.filter(|(_, (_, total))| *total != Times::default());
        let lines = known.map(|(method, (own, total))| Line {
            what: What::Method(method as u32),
            key: key(&("method", process, method)),
            depth: 0,
            opens: None,
            own,
            total,
            whole: all.run,
        });
        let found = |line: &Line| match line.what {
            What::Method(method) => question.finds_method(store, method),
            _ => false,
        };
        (lines.filter(found).collect(), all)
    })
}

/// One for each thread that has had time.
pub fn threads(store: &Store, question: &Question<'_>) -> Vec<Line> {
    by_process(store, question, |process| {
        let mut found: FxHashMap<u32, (Times, u64, u32)> = FxHashMap::default();
        let mut all = Times::default();
        for (row, time) in store.rows_of(question.scope, question.filter, process) {
            let (times, most, node) = found.entry(row.key.thread).or_default();
            times.add_state(row.key.state, time);
            all.add_state(row.key.state, time);
            if time > *most {
                (*most, *node) = (time, row.key.node);
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(thread, _)| *thread);
        let lines = found.into_iter().map(|(thread, (times, _, node))| Line {
            what: What::Thread(thread, node),
            key: key(&("thread", thread)),
            depth: 0,
            opens: None,
            own: times,
            total: times,
            whole: times.all(),
        });
        let is_found = |line: &Line| match line.what {
            What::Thread(_, node) => {
                question.finds_method(store, store.nodes[node as usize].method)
            }
            _ => false,
        };
        (lines.filter(is_found).collect(), all)
    })
}

/// One for each label that something has had.
pub fn labels(store: &Store, question: &Question<'_>) -> Vec<Line> {
    by_process(store, question, |process| {
        let mut sets = vec![Times::default(); store.labels.len()];
        let mut all = Times::default();
        let add = |(row, time): (&Row, u64)| {
            sets[row.key.labels as usize].add_state(row.key.state, time);
            all.add_state(row.key.state, time);
        };
        store
            .rows_of(question.scope, question.filter, process)
            .for_each(add);
        let mut found: FxHashMap<_, Times> = FxHashMap::default();
        let mut without = Times::default();
        for (set, times) in store.labels.iter().zip(sets) {
            for pair in set {
                found.entry(pair).or_default().add(times);
            }
            if set.is_empty() {
                without.add(times);
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(pair, _)| *pair);
        let line = |what, key, times: Times| Line {
            what,
            key,
            depth: 0,
            opens: None,
            own: times,
            total: times,
            whole: all.run,
        };
        let lines = found.into_iter().map(|(pair, times)| {
            let (name, value) = pair.clone();
            line(What::Label(name, value), key(&(process, pair)), times)
        });
        let none = line(What::NoLabel, key(&("no label", process)), without);
        let lines = lines
            .chain([none])
            .filter(|line| line.total != Times::default());
        let is_found = |line: &Line| match &line.what {
            What::Label(name, value) => question.finds(name) || question.finds(value),
            _ => question.search.is_empty(),
        };
        (lines.filter(is_found).collect(), all)
    })
}

/// The lines of each process under its heading, or of all.
fn by_process(
    store: &Store,
    question: &Question<'_>,
    lines: impl Fn(Option<u32>) -> (Vec<Line>, Times),
) -> Vec<Line> {
    let mut found = Vec::new();
    for process in question.processes(store) {
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
