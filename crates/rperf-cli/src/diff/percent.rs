//! Changes in percent, as `rperf diff` writes them. Does no I/O.

use rperf_report::numbers::grouped;

/// A change in percent. Where nearly nothing was before, the number says nothing.
pub fn percent_text(percent: f64) -> String {
    const MOST: f64 = 9_999.0;
    match percent > MOST {
        true => format!(">{}%", grouped(MOST as i64)),
        false => format!("{percent:+.1}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_that_say_nothing_are_bounded() {
        assert_eq!(percent_text(-12.34), "-12.3%");
        assert_eq!(percent_text(9_999.0), "+9999.0%");
        assert_eq!(percent_text(1_933_916.5), ">9,999%");
    }
}
