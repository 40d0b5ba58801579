//! What the processes of a session tell each other, and what stands in variables.

use rperf_session::event::Event;
use rperf_session::exec_target;
use rperf_session::process_stats::ProcessStats;
use rperf_session::settings::{ALL, Given, Source, check, quoted};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Lines of a status file, and values of settings.
pub fn seeds() -> Vec<Vec<u8>> {
    [
        "started 9 7 50\nforked 3\ndelivered 7 50 gc_count=3 yjit_ratio=97.5 user_ns=5",
        "exec-failed 7 50\nrefused it is too old\nanother",
        "1000\nwall\n/tmp/a.pb.gz\ntcp://127.0.0.1:6060\nname=value,b=c\n1ms\nOrder#total,Cart.*",
        "ruby -e 1\nPATH=/bin /usr/bin/env",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for line in text.lines() {
        if let Some(event) = Event::parse(line) {
            assert_eq!(Event::parse(&event.to_line()), Some(event));
        }
        let _ = ProcessStats::parse(line).to_line();
    }
    for piece in input.split(|&byte| byte == b'\n') {
        let piece = OsStr::from_bytes(piece);
        for setting in ALL {
            let _ = check(setting, &Given::Text(piece), Source::Variable, || {
                quoted(piece)
            });
        }
        let _ = exec_target::is_missing(piece, true, Some(OsStr::new("/bin")));
    }
}
