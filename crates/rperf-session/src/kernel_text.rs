//! What the kernel's texts on processes and memory say (proc(5)). No I/O, any thread.

use rperf_report::memory::mappings::bytes_of_kb;

/// The bytes in the line that begins with `name`, such as `VmRSS:`.
pub fn bytes_in(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    bytes_of_kb(lines.find_map(|line| line.strip_prefix(name))?)
}

/// The name in `/proc/PID/stat`, which may have spaces and parentheses, and the fields behind it. Their first
/// one is the letter of the state.
pub fn name_and_fields(stat: &str) -> Option<(&str, &str)> {
    let (head, fields) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    Some((name, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_kb() {
        let text = "MemTotal: 5 kB\nMemAvailable:   7 kB\nPages: 3\n";
        assert_eq!(bytes_in(text, "MemAvailable:"), Some(7 * 1024));
        assert_eq!(bytes_in(text, "Pages:"), None);
        assert_eq!(bytes_in(text, "Mem"), None);
        assert_eq!(bytes_in("MemTotal: 9 kB\n", "MemAvailable:"), None);
        assert_eq!(bytes_in("A: 1 MB", "A:"), None);
        assert_eq!(bytes_in("Swap: 18446744073709551615 kB\n", "Swap:"), None);
    }

    #[test]
    fn names_may_have_parentheses() {
        let found = name_and_fields("7 (a) (b) S 1 2\n");
        assert_eq!(found, Some(("a) (b", "S 1 2\n")));
        assert_eq!(name_and_fields(""), None);
    }
}
