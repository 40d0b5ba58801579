//! Why collections ran, for people: a head and a table. Used by `rperf report --gc` and by the page of
//! `rperf stat`; any thread.

use crate::table::{Column, Row, Style, Table};
use rperf_model::ValueType;
use rperf_report::numbers::{counted, grouped, percent, signed};
use rperf_report::one_line::one_line;
use rperf_report::{CauseTimes, GcTimes, Scale};

/// What the table is about, in a line without its end.
pub fn gc_head(times: &GcTimes) -> String {
    let total = &times.total;
    let scale = scale(total.wall_ns);
    let text = |ns| scale.text(signed(ns));
    format!(
        "{} in {}: {} = {} marking + {} sweeping",
        counted(total.count, "collection"),
        counted(total.pauses.count(), "pause"),
        text(total.wall_ns),
        text(total.marking_ns),
        text(total.sweeping_ns()),
    )
}

/// The causes, those with the most time first.
pub fn gc_table(times: &GcTimes) -> Table {
    let weights = [0, 5, 7, 2, 2, 1, 3, 4, 6];
    let columns = HEADINGS.into_iter().zip(weights);
    let columns = columns.map(|(heading, weight)| match weight {
        0 => Column::new(heading),
        weight => Column::weighing(heading, weight),
    });
    let mut table = Table::new(columns).with_names("cause");
    for row in &times.causes {
        let CauseTimes { cause, sums, app } = row;
        table.push(Row {
            cells: cells(times, row),
            style: Style::of_share(percent(sums.wall_ns, times.total.wall_ns)),
            name: cause.name().into(),
            detail: match app {
                Some((function, line)) => format!("{}:{line}", one_line(&function.short_path)),
                None => cause.description().into(),
            },
            ..Row::default()
        });
    }
    table
}

/// What is told of each cause.
pub(crate) const HEADINGS: [&str; 9] = [
    "time", "time%", "GCs", "marking", "sweeping", "pauses", "p50", "p99", "max",
];

/// What stands below these of a cause.
pub(crate) fn cells(times: &GcTimes, of: &CauseTimes) -> Vec<String> {
    let (sums, whole) = (&of.sums, scale(times.total.wall_ns));
    let share = percent(sums.wall_ns, times.total.wall_ns);
    let time = |ns| whole.text(signed(ns));
    // They differ by orders of magnitude.
    let pause = |ns| scale(ns).text(signed(ns));
    vec![
        time(sums.wall_ns),
        format!("{share:.1}%"),
        grouped(sums.count),
        time(sums.marking_ns),
        time(sums.sweeping_ns()),
        grouped(sums.pauses.count()),
        pause(sums.pauses.quantile(50)),
        pause(sums.pauses.quantile(99)),
        pause(sums.pauses.max()),
    ]
}

fn scale(ns: u64) -> Scale {
    Scale::new(&ValueType::new("wall", "nanoseconds"), signed(ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Surface;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::{CollectionSums, GcCause};

    #[test]
    fn causes_have_columns_with_units() {
        let mut profile = TestProfile::wall().profile;
        for (cause, pauses) in [
            (GcCause::MinorNewobj, &[2_000_000, 1_000_000][..]),
            (GcCause::MajorOldgen, &[9_000_000]),
        ] {
            let mut sums = CollectionSums {
                count: 1,
                marking_ns: pauses[0],
                ..CollectionSums::default()
            };
            for &pause in pauses {
                sums.wall_ns += pause;
                sums.pauses.add(pause);
            }
            profile.collections.add(cause, &sums);
        }
        let times = GcTimes::of(&profile).expect("there are some");
        let expected = "\
2 collections in 3 pauses: 12.0 ms = 11.0 ms marking + 1.0 ms sweeping
  time  time%  GCs  marking  sweeping  pauses       p50     p99     max  cause
9.0 ms  75.0%    1   9.0 ms    0.0 ms       1    9.0 ms  9.0 ms  9.0 ms  major oldgen (many old objects)
3.0 ms  25.0%    1   2.0 ms    1.0 ms       2  983.0 µs  2.0 ms  2.0 ms  minor newobj (no free slot for a new object)
";
        let text = format!(
            "{}\n{}",
            gc_head(&times),
            gc_table(&times).render(Surface::PLAIN)
        );
        assert_eq!(text, expected);
    }
}
