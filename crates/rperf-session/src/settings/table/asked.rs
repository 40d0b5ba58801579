//! The settings of commands that profile programs that run already: what their ports take. They
//! stand for those of the same names.

use super::super::form::Form::{self, Number, Word, Words};
use super::super::setting::{Defaults, Flags, Setting, Takes};
use super::super::words::{ALLOC_SAMPLED, BLAME, CPU, HEAP, OPS, REQUESTS};
use rperf_model::{ASKED_FREQUENCIES, Mode};

/// The settings of `rperf attach`.
pub static ATTACH: [&Setting; 3] = [&MODE, &ATTACH_FREQUENCY, &ATTACH_MEASURE];

/// The settings of `rperf push`.
pub static PUSH: [&Setting; 3] = [&MODE, &PUSH_FREQUENCY, &PUSH_MEASURE];

static ATTACH_MEASURE: Setting = Setting {
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "MEASURES",
            "alloc=sampled: some of the objects that are made, with their callers; heap: these, and which \
             of them stay; ops: queries and other ops, with their names; requests, in wall mode: which \
             are slow, for 'rperf why'; blame is always measured in wall mode",
        ),
        record_only: false,
    }),
    ..measure(&[Words(&[ALLOC_SAMPLED, BLAME, HEAP, OPS, REQUESTS])])
};

/// Its sessions are too short to see what stays, and what servers keep of samples doesn't tell requests
/// apart.
static PUSH_MEASURE: Setting = Setting {
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "MEASURES",
            "alloc=sampled: some of the objects that are made, with their callers; ops: queries and other \
             ops are frames, with their names",
        ),
        record_only: false,
    }),
    ..measure(&[Words(&[ALLOC_SAMPLED, OPS])])
};

const fn measure(forms: &'static [Form]) -> Setting {
    Setting {
        unset: Some("nothing more"),
        ..Setting::named("measure", forms, "what to measure beside times")
    }
}

static MODE: Setting = Setting {
    default: Defaults::is(Mode::Wall.name()),
    flags: Some(Flags {
        short: Some('m'),
        takes: Takes::Value(
            "MODE",
            "wall: all time, with waiting and sleeping; cpu: CPU time of each thread",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "mode",
        &[Word(CPU), Word(Mode::Wall.name())],
        "what to measure",
    )
};

static ATTACH_FREQUENCY: Setting = frequency("1000");

/// Lower, as it is for days.
static PUSH_FREQUENCY: Setting = frequency("100");

const FREQUENCY_FORMS: [Form; 1] = [Number(
    *ASKED_FREQUENCIES.start(),
    *ASKED_FREQUENCIES.end(),
    "samples per second",
)];

const fn frequency(default: &'static str) -> Setting {
    Setting {
        default: Defaults::is(default),
        flags: Some(Flags {
            short: Some('f'),
            takes: Takes::Value("HZ", "Samples per second, {values}"),
            record_only: false,
        }),
        ..Setting::named("frequency", &FREQUENCY_FORMS, "samples per second")
    }
}
