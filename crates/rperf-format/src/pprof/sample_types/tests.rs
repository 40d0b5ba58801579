//! Tests of the choice among sample types.

use super::*;

fn choose(types: &[(&str, &str)], default: &str) -> Result<Columns, ReadError> {
    let types: Vec<_> = types
        .iter()
        .map(|(name, unit)| (name.to_string(), unit.to_string()))
        .collect();
    Columns::choose(&types, default)
}

fn values(columns: &Columns, row: &[i64], state: State) -> (u64, u64, u64) {
    let values = columns.values(row, state).expect("a good row");
    (values.count, values.wall_ns, values.cpu_ns)
}

#[test]
fn our_own_types_are_found_again() {
    for mode in [Mode::Cpu, Mode::Wall] {
        let columns = choose(of_mode(mode), mode.name()).expect("has time");
        assert_eq!(columns.mode, mode);
        let written = Values {
            count: 1,
            wall_ns: if mode == Mode::Wall { 2 } else { 0 },
            cpu_ns: 3,
        };
        let row: Vec<i64> = values_of_mode(written, mode).collect();
        let read = columns.values(&row, State::Running).expect("a good row");
        assert_eq!(read, written);
    }
}

#[test]
fn gc_time_in_cpu_mode_is_wall_time_too() {
    let columns = choose(of_mode(Mode::Cpu), "cpu").expect("has time");
    assert_eq!(values(&columns, &[1, 5], State::GcMarking), (1, 5, 5));
    assert_eq!(values(&columns, &[1, 5], State::Running), (1, 0, 5));
}

#[test]
fn other_units_are_converted_and_huge_times_cut() {
    let columns = choose(&[("cpu", "microseconds")], "").expect("has time");
    assert_eq!(values(&columns, &[7], State::Running), (1, 0, 7_000));
    assert_eq!(values(&columns, &[0], State::Running), (0, 0, 0));
    assert_eq!(
        values(&columns, &[i64::MAX], State::Running),
        (1, 0, u64::MAX)
    );
}

#[test]
fn without_known_names_the_default_or_last_type_is_taken() {
    let types = [("contentions", "count"), ("delay", "ns"), ("other", "ms")];
    let last = choose(&types, "").expect("has time");
    assert_eq!(values(&last, &[2, 3, 4], State::Running), (2, 4_000_000, 0));
    let default = choose(&types, "delay").expect("has time");
    assert_eq!(default.mode, Mode::Wall);
    assert_eq!(values(&default, &[2, 3, 4], State::Running), (2, 3, 0));
    let cpu = choose(&[("my_cpu", "ms")], "").expect("has time");
    assert_eq!(cpu.mode, Mode::Cpu);
}

#[test]
fn profiles_without_time_are_refused_with_what_they_have() {
    let error = choose(&[("objects", "count"), ("space", "bytes")], "").expect_err("no time");
    assert_eq!(
        error.to_string(),
        "the profile has no time in it: it measures objects/count, space/bytes"
    );
    let error = choose(&[], "").expect_err("no time");
    assert!(error.to_string().ends_with("measures nothing"));
}

#[test]
fn rows_of_the_wrong_length_or_sign_are_refused() {
    let columns = choose(of_mode(Mode::Cpu), "cpu").expect("has time");
    for row in [&[1][..], &[1, 2, 3], &[1, -1], &[-1, 1]] {
        let error = columns.values(row, State::Running);
        assert!(matches!(error, Err(ReadError::Damaged(_))), "{row:?}");
    }
}
