//! Changes in percent, as `rperf diff` writes them. Does no I/O.

use rperf_report::numbers::grouped;

/// A change in percent. Where nearly nothing was before, the number says nothing.
pub fn percent_text(percent: f64) -> String {
    const MOST: f64 = 9_999.0;
    if percent > MOST {
        return format!(">{}%", grouped(MOST as i64));
    }
    let text = match (percent * 10.0).round() {
        0.0 => return "0.0%".into(),
        _ => format!("{percent:+.1}"),
    };
    match text[1..].split_once('.') {
        Some((whole, tenth)) if whole.len() > 3 => {
            let whole = whole.parse::<i64>().map_or_else(|_| whole.into(), grouped);
            format!("{}{whole}.{tenth}%", &text[..1])
        }
        _ => text + "%",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_that_say_nothing_are_bounded() {
        assert_eq!(percent_text(-12.34), "-12.3%");
        assert_eq!(percent_text(9_999.0), "+9,999.0%");
        assert_eq!([-0.04, 0.0, 0.04].map(percent_text), ["0.0%"; 3]);
        assert_eq!([-0.06, 0.06].map(percent_text), ["-0.1%", "+0.1%"]);
        assert_eq!(percent_text(1_100.72), "+1,100.7%");
        assert_eq!(percent_text(-1_100.72), "-1,100.7%");
        assert_eq!(percent_text(999.96), "+1,000.0%");
        assert_eq!(percent_text(1_933_916.5), ">9,999%");
    }
}
