//! How long a request has waited for the server, by the header with which a proxy tells when it took it.

/// In ns: if a wait is longer, the proxy's clock is wrong.
const LONGEST: u64 = 60_000_000_000;

/// In ns since 1970: every moment since 1973 is later. Smaller numbers are seconds, milliseconds or microseconds.
const LEAST: f64 = 1e17;

/// How long a request has waited by `now_ns` since 1970, in ns. The value of the header is the time at which it was
/// taken, `t=` before it or not: in seconds, milliseconds, microseconds or nanoseconds, told apart by their size.
pub fn queue_ns(header: &[u8], now_ns: u64) -> Option<u64> {
    let text = std::str::from_utf8(header).ok()?;
    let text = text.strip_prefix("t=").unwrap_or(text).trim();
    let mut start: f64 = text.parse().ok()?;
    if !(start > 0.0 && start.is_finite()) {
        return None;
    }
    while start < LEAST {
        start *= 1000.0;
    }
    let waited = now_ns.checked_sub(start as u64)?;
    (waited <= LONGEST).then_some(waited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_told_by_their_size() {
        let now = 1_790_000_000_250_000_000;
        for header in [
            "1790000000",
            "t=1790000000.000",
            " 1790000000000 ",
            "t=1790000000000000",
            "1790000000000000000",
        ] {
            let waited = queue_ns(header.as_bytes(), now);
            let is_near = waited.is_some_and(|it| it.abs_diff(250_000_000) < 1000);
            assert!(is_near, "{header}: {waited:?}");
        }
    }

    #[test]
    fn other_texts_and_old_or_future_times_give_none() {
        let now = 1_790_000_000_250_000_000;
        let headers: [&[u8]; 11] = [
            b"",
            b"now",
            b"t=",
            b"-5",
            b"t=1e400",
            b"nan",
            b"0",
            b"99999999999",
            b"1789999900",
            b"1790000001",
            b"\xff",
        ];
        for header in headers {
            assert_eq!(queue_ns(header, now), None, "{header:?}");
        }
    }
}
