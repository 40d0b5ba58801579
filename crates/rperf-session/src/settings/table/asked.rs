//! The settings of commands that profile programs that run already: what their ports take. They
//! stand for those of the same names.

use super::super::form::Form::{self, Number, Word};
use super::super::measure::{ATTACH_MEASURE, PUSH_MEASURE};
use super::super::setting::{Defaults, Flags, Setting, Takes};
use rperf_model::{ASKED_FREQUENCIES, Mode};

/// The settings of `rperf attach`.
pub static ATTACH: [&Setting; 3] = [&MODE, &ATTACH_FREQUENCY, &ATTACH_MEASURE];

/// The settings of `rperf push`.
pub static PUSH: [&Setting; 3] = [&MODE, &PUSH_FREQUENCY, &PUSH_MEASURE];

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
        &[Word(Mode::Cpu.name()), Word(Mode::Wall.name())],
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
