//! Long calls with their begins and ends, beside the sums of a traced profile. Made as a
//! trace ends, read by formats. Any thread, no I/O.

/// Calls that a profile has at most: of several processes the longest ones stay.
const MAX_SPANS: usize = 1 << 18;

/// The long calls of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeLine {
    /// The process's number.
    pub process: u32,
    /// Its name, as tools show it.
    pub program: String,
    /// The begin, in ns since the Unix epoch.
    pub start_time_ns: u64,
    /// The ns that a call must have taken to be there.
    pub least_ns: u64,
    /// How many calls took that long, and found no room: shorter ones than those that are there.
    pub left_out: u64,
    /// The names of methods.
    pub names: Vec<String>,
    /// The calls, in the order of their begins; of those with one begin the outermost comes first.
    pub spans: Vec<Span>,
}

/// A call with its begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The method: an index of `names`.
    pub name: u32,
    /// The thread's seq.
    pub thread: u32,
    /// The number of the fiber; those of one thread are told apart by it.
    pub fiber: u32,
    /// The begin, in ns since the begin of the time line.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Whether it was still open at the end.
    pub is_open: bool,
}

impl TimeLine {
    /// Bytes held, or nearly so.
    pub(crate) fn memory(&self) -> usize {
        let names = self
            .names
            .iter()
            .map(|name| size_of::<String>() + name.len());
        size_of::<Self>() + self.spans.len() * size_of::<Span>() + names.sum::<usize>()
    }

    /// Puts the calls in order.
    pub fn sort(&mut self) {
        let order = |span: &Span| (span.start_ns, u64::MAX - span.duration_ns);
        self.spans.sort_by_key(order);
    }

    /// Whether each call has a name.
    pub fn has_all_names(&self) -> bool {
        let names = self.names.len();
        self.spans.iter().all(|span| (span.name as usize) < names)
    }
}

/// Leaves only as many calls as a profile may have: the longest ones.
pub(crate) fn limit(lines: &mut [TimeLine]) {
    limit_to(MAX_SPANS, lines);
}

fn limit_to(most: usize, lines: &mut [TimeLine]) {
    let spans = lines.iter().flat_map(|line| &line.spans);
    let mut durations: Vec<u64> = spans.map(|span| span.duration_ns).collect();
    let Some(surplus) = durations.len().checked_sub(most).filter(|it| *it > 0) else {
        return;
    };
    let (_, least, _) = durations.select_nth_unstable(surplus);
    let least = *least;
    // Of those that are just as long, as many as there is room for.
    let longer = durations.iter().filter(|it| **it > least).count();
    let mut room = most.saturating_sub(longer);
    for line in lines {
        let before = line.spans.len();
        line.spans.retain(|span| {
            let has_room = span.duration_ns == least && room > 0;
            room -= usize::from(has_room);
            span.duration_ns > least || has_room
        });
        line.left_out += (before - line.spans.len()) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(durations: &[u64]) -> TimeLine {
        let span = |(place, duration_ns): (usize, &u64)| Span {
            name: 0,
            thread: 1,
            fiber: 0,
            start_ns: place as u64,
            duration_ns: *duration_ns,
            is_open: false,
        };
        TimeLine {
            spans: durations.iter().enumerate().map(span).collect(),
            ..TimeLine::default()
        }
    }

    #[test]
    fn the_longest_calls_stay_and_the_others_are_counted() {
        let mut lines = [line(&[5, 1, 3, 3]), line(&[3, 9, 3])];
        limit_to(7, &mut lines);
        assert_eq!((lines[0].spans.len(), lines[1].left_out), (4, 0));
        limit_to(4, &mut lines);
        let durations = lines.each_ref().map(|line| {
            let spans = line.spans.iter();
            spans.map(|span| span.duration_ns).collect::<Vec<_>>()
        });
        assert_eq!(durations, [vec![5, 3, 3], vec![9]]);
        assert_eq!((lines[0].left_out, lines[1].left_out), (1, 2));
    }

    #[test]
    fn callers_come_before_what_they_call() {
        let mut line = line(&[1, 2, 3]);
        for span in &mut line.spans {
            span.start_ns = 7;
        }
        line.sort();
        let durations: Vec<u64> = line.spans.iter().map(|span| span.duration_ns).collect();
        assert_eq!(durations, [3, 2, 1]);
        assert!(!line.has_all_names());
    }
}
