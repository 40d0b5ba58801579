//! What the Rubies of the command tell us, through a file, about their profiles.
//! `lib/rperf/launch.rb` writes the lines; `launch` reads them after the end.

use std::path::Path;

/// The lines of the status file, summed up.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// A Ruby has started to profile itself.
    pub started: bool,
    /// It has handed its profile over, or said why it can't.
    pub delivered: bool,
    /// A Ruby has said why it can't be profiled.
    pub refused: bool,
    /// It has become another program by exec.
    pub replaced: bool,
    /// Rubies after the first one, which run without a profile.
    pub others: usize,
}

impl Status {
    /// What is in the file. No file means that there was no Ruby.
    pub fn read(path: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut status = Status::default();
        for line in text.lines() {
            match line.split(' ').next() {
                Some("exec") => status.replaced = line == "exec",
                Some("started") => status.started = true,
                Some("delivered") => status.delivered = true,
                Some("refused") => status.refused = true,
                Some("another") => status.others += 1,
                _ => {}
            }
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_summed_up() {
        let status = Status::parse("started\nanother\nrefused no such mode\nanother\ndelivered\n");
        let all = Status {
            started: true,
            delivered: true,
            refused: true,
            replaced: false,
            others: 2,
        };
        assert_eq!(status, all);
        assert!(Status::parse("started\ndelivered\nexec\n").replaced);
        assert!(!Status::parse("exec\nexec failed\ndelivered\n").replaced);
        assert_eq!(Status::read(Path::new("/no/such/file")), Status::default());
    }
}
