//! The figures that lib/rperf/session/standalone.rb gives to `NativeProfile#stat`, and member.rb
//! leaves for the merging process, as Rust values.
//! On a Ruby thread, with the GVL.

use magnus::{Error, RHash, Ruby, TryConvert, Value};
use rperf_session::os::OsStats;
use rperf_session::page::stat::Figures;
use rperf_session::process_stats::{ProcessStats, RubyStats};

/// Ruby's figures from `hash`, with those of children, if there are any; the
/// system's are read here.
pub fn figures(ruby: &Ruby, hash: RHash) -> Result<Figures, Error> {
    let hash = Keys { ruby, hash };
    let mut process = ProcessStats {
        ruby: RubyStats {
            gc_count: hash.get("gc_count")?.unwrap_or_default(),
            gc_minor: hash.get("gc_minor")?.unwrap_or_default(),
            gc_major: hash.get("gc_major")?.unwrap_or_default(),
            gc_time_ms: hash.get("gc_time_ms")?.unwrap_or_default(),
            allocated_objects: hash.get("allocated_objects")?.unwrap_or_default(),
            freed_objects: hash.get("freed_objects")?.unwrap_or_default(),
            yjit_methods: hash.get("yjit_methods")?,
            yjit_ratio: hash.get("yjit_ratio")?,
        },
        os: OsStats::now(),
        profiled_ns: 0,
    };
    let processes = hash.get("processes")?.unwrap_or(1);
    if processes > 1 {
        let children: String = hash.get("children")?.unwrap_or_default();
        process.add(ProcessStats::parse(&children));
    }
    Ok(Figures {
        command: hash.get("command")?.unwrap_or_default(),
        report: hash.get("report")?.unwrap_or_default(),
        lines: hash.get("lines")?.unwrap_or_default(),
        shows_idle: false,
        processes,
        times: None,
        process,
    })
}

struct Keys<'a> {
    ruby: &'a Ruby,
    hash: RHash,
}

impl Keys<'_> {
    /// The value under this Symbol; `None` for nil too.
    fn get<T: TryConvert>(&self, key: &str) -> Result<Option<T>, Error> {
        match self.hash.get(self.ruby.to_symbol(key)) {
            Some(value) => Option::<T>::try_convert(value as Value),
            None => Ok(None),
        }
    }
}
