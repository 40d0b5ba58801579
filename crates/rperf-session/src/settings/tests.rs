//! Tests of the table of settings, and of what is read by it.

use super::*;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

fn checked(setting: &Setting, text: &str, source: Source) -> Result<Option<Value>, InvalidSetting> {
    check(setting, &Given::Text(text.as_ref()), source, || {
        quoted(text.as_ref())
    })
}

fn message(setting: &Setting, text: &str, source: Source) -> String {
    let error = checked(setting, text, source).expect_err("it is refused");
    error.to_string()
}

/// Texts that are allowed for a setting without a file.
fn examples(setting: &Setting) -> Vec<String> {
    let listed = setting.values(Source::Variable).replace(" to ", ", ");
    let texts = listed.split(", ").map(String::from);
    texts
        .filter(|text| {
            let placeholders = [
                "number",
                "path",
                "time",
                "tcp://127.0.0.1:PORT",
                "KEY=VALUE,...",
                "METHOD,...",
            ];
            !placeholders.contains(&text.as_str())
        })
        .collect()
}

#[test]
fn every_default_is_allowed_and_every_value_is_read_as_it_is_spelled() {
    for setting in ALL {
        let default = [setting.default.keyword, setting.default.page];
        for text in default
            .into_iter()
            .flatten()
            .map(String::from)
            .chain(examples(setting))
        {
            let value = checked(setting, &text, Source::Variable).expect("allowed");
            let value = value.expect("a value");
            assert_eq!(
                value.spelled(Source::Variable),
                OsString::from(&text),
                "{}",
                setting.name
            );
        }
    }
}

#[test]
fn no_name_is_given_out_twice() {
    let mut names = HashSet::new();
    for setting in ALL {
        assert!(names.insert(setting.name.to_string()), "{}", setting.name);
        assert!(setting.keyword || setting.variable || setting.flags.is_some());
        if let Some(Flags {
            short: Some(short), ..
        }) = setting.flags
        {
            assert!(names.insert(short.to_string()), "-{short}");
        }
    }
}

#[test]
fn a_wrong_value_is_named_as_it_was_given() {
    let allowed = "must be a whole number from 1 to 10000 (samples per second), not";
    assert_eq!(
        message(&FREQUENCY, "0", Source::Flag),
        format!("-f {allowed} '0'")
    );
    for text in [
        "10001",
        "-5",
        "1e3",
        "99999999999999999999",
        "_5",
        "5_",
        "1__0",
        "+_5",
        "1 0",
    ] {
        let expected = format!("RPERF_FREQUENCY {allowed} '{text}'");
        assert_eq!(message(&FREQUENCY, text, Source::Variable), expected);
    }
    assert!(message(&MODE, "a\nb\u{7f}", Source::Variable).ends_with("not 'a b '"));
    for (source, expected) in [
        (Source::Flag, "-m must be cpu, wall or trace"),
        (
            Source::Keyword,
            "mode: must be :cpu, :wall, :trace or :account",
        ),
        (
            Source::Variable,
            "RPERF_MODE must be cpu, wall, trace or account",
        ),
    ] {
        assert_eq!(message(&MODE, "x", source), format!("{expected}, not 'x'"));
    }
    let error = check(&FREQUENCY, &Given::Nil, Source::Keyword, || "nil".into());
    let expected = format!("frequency: {allowed} nil");
    assert_eq!(
        error.expect_err("it always has a value").to_string(),
        expected
    );
    assert!(message(&LINES, "", Source::Flag).starts_with("--lines must be 1 or 0, not ''"));
}

#[test]
fn variables_have_numbers_as_ruby_reads_them() {
    for (text, number) in [
        (" 5", 5),
        ("99\t\n", 99),
        ("1_000", 1000),
        ("+7", 7),
        ("0099", 99),
    ] {
        let value = checked(&FREQUENCY, text, Source::Variable);
        assert_eq!(value, Ok(Some(Value::Integer(number))), "{text:?}");
    }
    for text in [" 5", "1_000"] {
        assert!(checked(&FREQUENCY, text, Source::Flag).is_err(), "{text:?}");
    }
}

#[test]
fn an_empty_variable_is_none_unless_any_text_will_do() {
    assert_eq!(checked(&MODE, "", Source::Variable), Ok(None));
    let text = checked(&STAT_COMMAND, "", Source::Variable).expect("allowed");
    assert_eq!(text, Some(Value::Text(OsString::new())));
    assert!(checked(&OUTPUT, "", Source::Variable).is_err());
}

#[test]
fn variables_have_defaults_of_their_own() {
    let none = Settings::from_variables(|_| None).expect("allowed");
    assert_eq!((none.mode().name(), none.inherit()), ("cpu", Inherit::None));
    assert!(
        none.output()
            .is_some_and(|path| path.ends_with(DEFAULT_FILE))
    );
    let page = Settings::from_variables(|name| (name == "STAT").then_some(OsStr::new("1")));
    let page = page.expect("allowed");
    assert_eq!(
        (page.mode().name(), page.output(), page.stat()),
        ("wall", None, true)
    );
}

#[test]
fn members_have_what_is_for_them_and_write_no_file() {
    let given = [(&FREQUENCY, "99".into()), (&INHERIT, "0".into())];
    let settings = Settings::from_flags(given, false).expect("allowed");
    let pairs: Vec<_> = settings.for_children().collect();
    let find = |name: &str| {
        pairs
            .iter()
            .find(|pair| pair.0 == name)
            .map(|pair| &*pair.1)
    };
    let member = Settings::of_member(find).expect("allowed");
    assert_eq!((member.frequency(), member.mode().name()), (99, "cpu"));
    assert_eq!((member.output(), member.inherit()), (None, Inherit::None));
}

#[test]
fn several_words_are_in_the_tables_order_each_once() {
    for (text, spelled) in [("alloc", "alloc"), ("cpu,alloc,cpu", "alloc,cpu")] {
        let value = checked(&MEASURE, text, Source::Flag);
        let value = value.expect("allowed").expect("a value");
        assert_eq!(value.spelled(Source::Variable), OsString::from(spelled));
    }
    let given = Given::Symbols(vec!["cpu".into(), "alloc".into()]);
    let value = check(&MEASURE, &given, Source::Keyword, String::new);
    let value = value.expect("allowed").expect("a value");
    assert_eq!(value.spelled(Source::Keyword), "[:alloc, :cpu]");
    let given = Given::Symbol("alloc=sampled".into());
    let value = check(&MEASURE, &given, Source::Keyword, String::new);
    let value = value.expect("allowed").expect("a value");
    assert_eq!(value.spelled(Source::Keyword), "[:\"alloc=sampled\"]");
    assert_eq!(value.spelled(Source::Variable), "alloc=sampled");
    for text in ["", "alloc,", "time", "alloc cpu"] {
        let allowed = "--measure must be alloc, alloc=sampled, blame, cpu, gc_cost, heap, latency, ops, requests (with commas between several)";
        assert_eq!(
            message(&MEASURE, text, Source::Flag),
            format!("{allowed}, not '{text}'")
        );
    }
    let given = Given::Symbols(Vec::new());
    let error = check(&MEASURE, &given, Source::Keyword, || "[]".into()).expect_err("refused");
    let allowed = ":alloc, :\"alloc=sampled\", :blame, :cpu, :gc_cost, :heap, :latency, :ops, :requests or an Array of them or nil (nothing more)";
    assert_eq!(
        error.to_string(),
        format!("measure: must be {allowed}, not []")
    );
}

#[test]
fn what_is_measured_goes_with_sums_and_with_times() {
    let refused = |pairs: &[(&str, &'static str)]| {
        let found = |key: &str| pairs.iter().find(|pair| pair.0 == key);
        let variable = |key: &str| found(key).map(|pair| OsStr::new(pair.1));
        let error = Settings::from_variables(variable).expect_err("it is refused");
        error.to_string()
    };
    for (pairs, message) in [
        (
            &[("MEASURE", "alloc"), ("AGGREGATE", "0")][..],
            "RPERF_MEASURE=alloc goes with RPERF_AGGREGATE=1, not with RPERF_AGGREGATE=0",
        ),
        (
            &[("MEASURE", "alloc=sampled"), ("AGGREGATE", "0")][..],
            "RPERF_MEASURE=alloc=sampled goes with RPERF_AGGREGATE=1, not with RPERF_AGGREGATE=0",
        ),
        (
            &[("MEASURE", "alloc=sampled,alloc")][..],
            "RPERF_MEASURE=alloc can't be combined with RPERF_MEASURE=alloc=sampled: leave one of them out",
        ),
        (
            &[("MEASURE", "alloc,heap")][..],
            "RPERF_MEASURE=alloc can't be combined with RPERF_MEASURE=heap: leave one of them out",
        ),
        (
            &[("MEASURE", "alloc,gc_cost")][..],
            "RPERF_MEASURE=alloc can't be combined with RPERF_MEASURE=gc_cost: leave one of them out",
        ),
        (
            &[("MODE", "trace"), ("MEASURE", "gc_cost")][..],
            "RPERF_MEASURE=gc_cost goes with RPERF_MODE=cpu or wall, not with RPERF_MODE=trace",
        ),
        (
            &[("MODE", "trace"), ("MEASURE", "heap")][..],
            "RPERF_MEASURE=heap goes with RPERF_MODE=cpu or wall, not with RPERF_MODE=trace",
        ),
        (
            &[("MODE", "trace"), ("MEASURE", "alloc=sampled")][..],
            "RPERF_MEASURE=alloc=sampled goes with RPERF_MODE=cpu or wall, not with RPERF_MODE=trace",
        ),
        (
            &[("MODE", "wall"), ("MEASURE", "blame"), ("AGGREGATE", "0")][..],
            "RPERF_MEASURE=blame goes with RPERF_AGGREGATE=1, not with RPERF_AGGREGATE=0",
        ),
        (
            &[("MEASURE", "blame")][..],
            "RPERF_MEASURE=blame goes with RPERF_MODE=wall, not with RPERF_MODE=cpu",
        ),
        (
            &[("MEASURE", "ops"), ("AGGREGATE", "0")][..],
            "RPERF_MEASURE=ops goes with RPERF_AGGREGATE=1, not with RPERF_AGGREGATE=0",
        ),
        (
            &[("MODE", "trace"), ("MEASURE", "ops")][..],
            "RPERF_MEASURE=ops goes with RPERF_MODE=cpu or wall, not with RPERF_MODE=trace",
        ),
        (
            &[("MODE", "trace"), ("MEASURE", "requests")][..],
            "RPERF_MEASURE=requests goes with RPERF_MODE=wall, not with RPERF_MODE=trace",
        ),
        (
            &[("MODE", "wall"), ("MEASURE", "alloc,latency")][..],
            "RPERF_MEASURE=alloc,latency goes with RPERF_MODE=trace, not with RPERF_MODE=wall",
        ),
        (
            &[("MODE", "trace"), ("CALLS", "count"), ("MEASURE", "cpu")][..],
            "RPERF_MEASURE=cpu can't be combined with RPERF_CALLS=count: leave one of them out",
        ),
        (
            &[("MODE", "trace"), ("ONLY", "A#b"), ("DEPTH", "9")][..],
            "RPERF_DEPTH=9 can't be combined with RPERF_ONLY=A#b: leave one of them out",
        ),
        (
            &[("EXCLUDE_COMMON", "1")][..],
            "RPERF_EXCLUDE_COMMON=1 goes with RPERF_MODE=trace, not with RPERF_MODE=cpu",
        ),
        (
            &[("MODE", "trace"), ("ONLY", "A#b"), ("MEASURE", "alloc")][..],
            "RPERF_MEASURE=alloc can't be combined with RPERF_ONLY=A#b: leave one of them out",
        ),
    ] {
        assert_eq!(refused(pairs), message);
    }
}

#[test]
fn labels_are_pairs_whatever_is_in_them() {
    for (text, pairs) in [
        (
            "release=1.2,host=web 1",
            vec![("host", "web 1"), ("release", "1.2")],
        ),
        ("a=b=c", vec![("a", "b=c")]),
        ("a=", vec![("a", "")]),
        ("a=1,a=2", vec![("a", "2")]),
        (r"a\=b=x\,y\\", vec![("a=b", r"x,y\")]),
    ] {
        let value = checked(&LABELS, text, Source::Flag)
            .expect("allowed")
            .expect("a value");
        let pairs = pairs
            .into_iter()
            .map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!(value, Value::Labels(pairs.collect()), "{text}");
        let spelled = value.spelled(Source::Variable);
        let again = check(
            &LABELS,
            &Given::Text(&spelled),
            Source::Variable,
            String::new,
        );
        assert_eq!(again, Ok(Some(value)), "{text}");
    }
    for text in ["", "a", "a,b=c", "=b", "a=b,", r"a=b\"] {
        let expected =
            format!("--labels must be labels such as release=1.2,host=web1, not '{text}'");
        assert_eq!(message(&LABELS, text, Source::Flag), expected);
    }
}

#[test]
fn labels_with_a_zero_byte_are_refused_wherever_they_are_given() {
    let expected = |label| format!("{label} must be labels without a zero byte, not 'a=x y'");
    for (source, label) in [
        (Source::Flag, "--labels"),
        (Source::Variable, "RPERF_LABELS"),
    ] {
        assert_eq!(message(&LABELS, "a=x\0y", source), expected(label));
    }
    for (key, value) in [("a", "x\0y"), ("a\0b", "x")] {
        let given = Given::Pairs(vec![(key.into(), value.into())]);
        let error = check(&LABELS, &given, Source::Keyword, || "'a=x y'".into());
        let error = error.expect_err("it is refused").to_string();
        assert_eq!(error, expected("labels:"));
    }
}

#[test]
fn chosen_methods_are_names_with_a_class() {
    let value = checked(&ONLY, "Order#total, Cart.find", Source::Variable).expect("allowed");
    let value = value.expect("a value");
    assert_eq!(value.spelled(Source::Variable), "Order#total,Cart.find");
    let given = Given::Texts(vec!["Order#total".into(), "Cart.find".into()]);
    assert_eq!(
        check(&ONLY, &given, Source::Keyword, String::new),
        Ok(Some(value))
    );
    let allowed = "must be methods or their files, such as Order#total or app/**, not";
    for text in ["total", "", "Order#total,"] {
        assert_eq!(
            message(&ONLY, text, Source::Flag),
            format!("--only {allowed} '{text}'")
        );
    }
    let given = Given::Texts(Vec::new());
    assert!(check(&ONLY, &given, Source::Keyword, String::new).is_err());
}

#[test]
fn chosen_methods_are_of_ruby_and_added_up() {
    for (name, text, remaining) in [("CALLS", "all", "ruby"), ("AGGREGATE", "0", "1")] {
        let variable = |key: &str| match key {
            "ONLY" => Some(OsStr::new("A#b")),
            "MODE" if name == "CALLS" => Some(OsStr::new("trace")),
            key => (key == name).then(|| OsStr::new(text)),
        };
        let error = Settings::from_variables(variable).expect_err("it is refused");
        let expected = format!(
            "RPERF_ONLY=A#b goes with RPERF_{name}={remaining}, not with RPERF_{name}={text}"
        );
        assert_eq!(error.to_string(), expected);
    }
    let variable = |key: &str| match key {
        "ONLY" => Some(OsStr::new("A#b")),
        "MODE" => Some(OsStr::new("trace")),
        "CLOCK" => Some(OsStr::new("tick")),
        _ => None,
    };
    let error = Settings::from_variables(variable).expect_err("it is refused");
    let expected = "RPERF_CLOCK=tick can't be combined with RPERF_ONLY=A#b: leave one of them out";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_a_tick_cant_tell_is_refused() {
    let told = |name: &'static str, text: &'static str| {
        Settings::from_variables(move |key| match key {
            "MODE" => Some(OsStr::new("trace")),
            "CLOCK" => Some(OsStr::new("tick")),
            key => (key == name).then(|| OsStr::new(text)),
        })
    };
    for (name, text, allowed) in [
        ("MEASURE", "latency", "alloc or cpu"),
        ("MEASURE", "cpu,latency", "alloc or cpu"),
        ("SPANS", "9ms", "10ms or more"),
    ] {
        let error = told(name, text).expect_err("it is refused").to_string();
        let expected = format!(
            "RPERF_CLOCK=tick goes with RPERF_{name}={allowed}, not with RPERF_{name}={text}"
        );
        assert_eq!(error, expected);
    }
    for (name, text) in [("MEASURE", "alloc,cpu"), ("SPANS", "10ms")] {
        assert!(told(name, text).is_ok(), "{name} {text}");
    }
}

#[test]
fn what_only_samples_have_is_refused_with_a_trace() {
    for (name, text) in [
        ("CAPTURE", "safepoint"),
        ("SIGNAL", "false"),
        ("LINES", "1"),
    ] {
        let variable = |key: &str| match key {
            "MODE" => Some(OsStr::new("trace")),
            key => (key == name).then(|| OsStr::new(text)),
        };
        let error = Settings::from_variables(variable).expect_err("it is refused");
        let expected = format!(
            "RPERF_{name}={text} can't be combined with RPERF_MODE=trace: leave one of them out"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_file_of_the_time_line_alone_needs_a_trace_with_one() {
    let directory = std::env::temp_dir();
    let path = directory.join("a.spans.json");
    let path = path.as_os_str();
    let (shown, spans) = (path.to_string_lossy(), OsStr::new("spans"));
    let flags = |given: &OsStr, setting| {
        Settings::from_flags([(setting, given.to_os_string())], false).map(|_| ())
    };
    let variable = |name: &str| match name {
        "OUTPUT" => Some(path),
        _ => None,
    };
    let keyword = (&OUTPUT, Given::Path(path.into()), String::new);
    let kept = |remedy: &str| format!("{shown} is a time line: {remedy}");
    for (settings, message) in [
        (
            flags(path, &OUTPUT),
            format!("-o {}", kept("'rperf trace --spans 1ms' keeps one")),
        ),
        (
            flags(spans, &FORMAT),
            "--format spans is a time line: 'rperf trace --spans 1ms' keeps one".into(),
        ),
        (
            Settings::from_keywords([keyword]).map(|_| ()),
            format!(
                "output: {}",
                kept("mode: :trace and spans: \"1ms\" keep one")
            ),
        ),
        (
            Settings::from_variables(variable).map(|_| ()),
            format!(
                "RPERF_OUTPUT={}",
                kept("RPERF_MODE=trace and RPERF_SPANS=1ms keep one")
            ),
        ),
    ] {
        assert_eq!(settings.expect_err("it is refused").to_string(), message);
    }
    let traced = |name: &str| match name {
        "MODE" => Some(OsStr::new("trace")),
        "SPANS" => Some(OsStr::new("1ms")),
        name => variable(name),
    };
    Settings::from_variables(traced).expect("it has one");
}
