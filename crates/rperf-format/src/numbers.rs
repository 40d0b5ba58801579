//! Numbers as people read them. Used by the text report and all terminal output; any
//! thread.

/// With a comma between thousands: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds with one decimal, rounded: `1,234.5`.
pub fn milliseconds(ns: u64) -> String {
    // In whole numbers, since a float would not hold all of them.
    let tenths = ns / 100_000 + u64::from(ns % 100_000 >= 50_000);
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

/// Seconds with three decimals, rounded: `1,234.567`.
pub fn seconds(ns: u64) -> String {
    let ms = ns / 1_000_000 + u64::from(ns % 1_000_000 >= 500_000);
    format!("{}.{:03}", grouped(ms / 1000), ms % 1000)
}

/// `part` of `whole` in percent, 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
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
    }

    #[test]
    fn times_are_rounded() {
        assert_eq!(milliseconds(0), "0.0");
        assert_eq!(milliseconds(49_999), "0.0");
        assert_eq!(milliseconds(50_000), "0.1");
        assert_eq!(milliseconds(1_234_550_000), "1,234.6");
        assert_eq!(milliseconds(u64::MAX), "18,446,744,073,709.6");
        assert_eq!(seconds(5_677_500_000), "5.678");
    }

    #[test]
    fn percents_of_nothing_are_zero() {
        assert_eq!(percent(1, 4), 25.0);
        assert_eq!(percent(1, 0), 0.0);
    }
}
