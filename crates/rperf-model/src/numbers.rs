//! Numbers as people read them. Used by all that writes text, and for the lines about a run in its
//! profile; any thread.

/// With a comma between thousands: `1,234,567`.
pub fn grouped(number: impl Into<i128>) -> String {
    let number = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(1 + digits.len() + digits.len() / 3);
    if number < 0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things, whose plural ends in `s`: `1 sample`, `1,234 samples`.
pub fn counted(number: impl Into<i128>, noun: &str) -> String {
    let number = number.into();
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// Milliseconds with one decimal, rounded: `1,234.5`.
pub fn milliseconds(ns: impl Into<i128>) -> String {
    let (sign, tenths) = rounded(ns.into(), 100_000);
    format!("{sign}{}.{}", grouped(tenths / 10), tenths % 10)
}

/// A difference in milliseconds, rounded, with its sign: `+1,234.5`; one that rounds to 0 has none.
pub fn milliseconds_more(ns: impl Into<i128>) -> String {
    let ns = ns.into();
    match rounded(ns, 100_000) {
        ("", 1..) => format!("+{}", milliseconds(ns)),
        _ => milliseconds(ns),
    }
}

/// Seconds with three decimals, rounded: `1,234.567`.
pub fn seconds(ns: impl Into<i128>) -> String {
    let (sign, ms) = rounded(ns.into(), 1_000_000);
    format!("{sign}{}.{:03}", grouped(ms / 1000), ms % 1000)
}

/// The sign of `number`, and how many times it holds `unit`, rounded. In whole numbers,
/// since a float would not hold all of them.
fn rounded(number: i128, unit: i128) -> (&'static str, i128) {
    let units = (number.abs() + unit / 2) / unit;
    (if number < 0 && units > 0 { "-" } else { "" }, units)
}

/// The sign in front of a difference, whose number has its own if it is below 0.
pub fn plus(difference: impl Into<i128>) -> &'static str {
    match difference.into() {
        1.. => "+",
        _ => "",
    }
}

/// A number in the type of a profile's values, or the greatest one that it can have.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// `part` of `whole` in percent, 0 of nothing.
pub fn percent(part: impl Into<i128>, whole: impl Into<i128>) -> f64 {
    match (part.into(), whole.into()) {
        (_, 0) => 0.0,
        (part, whole) => part as f64 * 100.0 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let texts = [0, 999, 1000, 12_345, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(grouped(-123), "-123");
        assert_eq!(grouped(i64::MIN), "-9,223,372,036,854,775,808");
    }

    #[test]
    fn times_are_rounded() {
        assert_eq!(milliseconds(0), "0.0");
        assert_eq!(milliseconds(49_999), "0.0");
        assert_eq!(milliseconds(50_000), "0.1");
        assert_eq!(milliseconds(1_234_550_000), "1,234.6");
        assert_eq!(milliseconds(u64::MAX), "18,446,744,073,709.6");
        assert_eq!(milliseconds(-49_999), "0.0");
        assert_eq!(milliseconds(-1_234_550_000), "-1,234.6");
        assert_eq!(seconds(5_677_500_000_u64), "5.678");
        assert_eq!(seconds(-400_000), "0.000");
    }

    #[test]
    fn differences_have_a_sign_and_numbers_an_end() {
        assert_eq!([-1, 0, 1].map(plus), ["", "", "+"]);
        let more = [-50_000, -49_999, 0, 49_999, 50_000, 1_234_550_000].map(milliseconds_more);
        assert_eq!(more, ["-0.1", "0.0", "0.0", "0.0", "+0.1", "+1,234.6"]);
        assert_eq!([7, u64::MAX].map(signed), [7, i64::MAX]);
    }

    #[test]
    fn percents_of_nothing_are_zero() {
        assert_eq!(percent(1, 4), 25.0);
        assert_eq!(percent(1, 0), 0.0);
        assert_eq!(percent(1, -4), -25.0);
    }
}
