//! A line on the rows of a table that aren't shown. Used by all pages that have a limit.

use rperf_report::numbers::grouped;

/// How `-n` shows more of the rows.
pub const SHOWS_MORE: &str = "; -n shows more";

/// How `-n` shows all of the rows.
pub const SHOWS_ALL: &str = ", -n 0 shows them";

/// How many of `all` rows aren't shown; nothing if all are. `rest` is behind the number.
pub fn left_out(all: usize, limit: Option<usize>, rest: &str) -> String {
    match all.saturating_sub(limit.unwrap_or(all)) {
        0 => String::new(),
        more => format!("({} more{rest})\n", grouped(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_not_shown_are_counted() {
        assert_eq!(
            left_out(1_500, Some(10), SHOWS_MORE),
            "(1,490 more; -n shows more)\n"
        );
        assert_eq!(
            left_out(3, Some(2), SHOWS_ALL),
            "(1 more, -n 0 shows them)\n"
        );
        for limit in [None, Some(3), Some(4)] {
            assert_eq!(left_out(3, limit, SHOWS_MORE), "");
        }
    }
}
