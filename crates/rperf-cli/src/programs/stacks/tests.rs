//! Tests of the stacks of a running program, as they are printed.

use super::*;
use rperf_protocol::hello::Beginner;
use rperf_protocol::json::read;
use serde_json::{Value, json};

fn hello() -> Hello {
    Hello {
        protocol: 1,
        rperf: "0".into(),
        ruby: "3.4.5".into(),
        pid: 7,
        start: 1,
        program: "puma\n[shop]".into(),
        roots: vec!["/srv/shop".into()],
        rperf_directories: Vec::new(),
        uptime_ns: None,
        cpu_ns: 0,
        clock_ns: 0,
        beginner: Beginner::Program,
        session: None,
        tcp: None,
        clients: 1,
        silent_ns: 0,
        holder: None,
    }
}

fn answer(body: &Value) -> Stacks<'static> {
    read(body.to_string().as_bytes()).expect("an answer")
}

fn page(args: &StacksArgs, hello: &Hello, body: &Value, screen: Screen) -> Option<String> {
    super::page(args, hello, &answer(body), screen)
}

fn as_json(args: &StacksArgs, hello: &Hello, body: &Value) -> Option<String> {
    let answer = answer(body);
    super::json::as_json(args.pid, hello, &answer, &code_paths(args, hello, &answer))
}

fn args() -> StacksArgs {
    StacksArgs {
        pid: 7,
        json: false,
        fibers: false,
        no_wake: false,
        paths: PathArgs::default(),
    }
}

/// What programs of other versions send is shown as it was.
#[test]
fn recorded_answers_are_shown_in_both_forms() {
    let mut args = args();
    args.fibers = true;
    for (answer, json, text) in [
        (
            include_str!("../../../../rperf-protocol/golden/stacks.json"),
            include_str!("../../../golden/stacks.json"),
            include_str!("../../../golden/stacks.txt"),
        ),
        (
            include_str!("../../../../rperf-protocol/golden/native_stacks.json"),
            include_str!("../../../golden/native_stacks.json"),
            include_str!("../../../golden/native_stacks.txt"),
        ),
    ] {
        let answer = serde_json::from_str(answer).expect("JSON");
        assert_eq!(as_json(&args, &hello(), &answer).as_deref(), Some(json));
        let page = page(&args, &hello(), &answer, Screen::default());
        assert_eq!(page.as_deref(), Some(text));
    }
}

#[test]
fn equal_stacks_are_one_and_names_command_no_terminal() {
    let thread = |number: u32, name: &str| {
        json!({
            "number": number, "name": name, "tid": 40 + number, "state": "blocked",
            "waits_in": "waits to be woken",
            "frames": [1, 0],
        })
    };
    let pop = json!({ "name": "Thread::Queue#pop", "path": "a.rb", "line": 7 });
    let mut running = thread(3, "\u{1b}[31mx");
    running["state"] = json!("running");
    let answer = json!({
        "source": "vm", "note": null, "elapsed_ns": 2_100_000, "other_ractors": 1,
        "stacks_left_out": 1200,
        "threads": [thread(1, "pool"), thread(2, ""), running],
        "frames": [{ "name": "<main>", "path": "b.rb", "line": 1 }, pop.clone()],
    });
    let mut args = args();
    let threads = page(&args, &hello(), &answer, Screen::default()).expect("not much");
    args.fibers = true;
    let stack = |count: u32, frames: Value| json!({ "count": count, "state": "suspended", "block": "b.rb:1", "frames": frames });
    let shown = |fibers: Value| {
        let mut answer = answer.clone();
        answer["fibers"] = fibers;
        let page = page(&args, &hello(), &answer, Screen::default()).expect("not much");
        let fibers = page.strip_prefix(&threads).expect("the threads first");
        let lines = fibers.lines().map(|line| line.trim_end().to_string());
        (lines.collect::<Vec<_>>(), as_json(&args, &hello(), &answer))
    };
    assert_eq!(shown(json!({ "note": "no" })).0, ["", "no."]);
    let (lines, text) = shown(json!({
        "note": null, "left_out": 2000, "walk_ns": 2_000_000, "elapsed_ns": 3_000_000,
        "stacks": [stack(1, json!([])), stack(1200, json!([1]))],
    }));
    let expected = [
        "",
        "1,201 fibers beside the threads, taken in 3.0 ms, with a walk of the heap of 2.0 ms",
        "2,000 more were left out: too many, or Ruby would have run the program's own `to_s` for them.",
        "",
        &format!("{:56}suspended", "1,200 fibers"),
        &format!("{:56}a.rb:7", "    Thread::Queue#pop"),
        "",
        &format!("{:56}suspended", "1 fiber, block at b.rb:1"),
    ];
    assert_eq!(lines, expected);
    let found: Value = serde_json::from_str(&text.expect("not much")).expect("JSON");
    let mut with_both = pop.clone();
    with_both["short_path"] = "a.rb".into();
    assert_eq!(found["fibers"]["stacks"][1]["frames"], json!([with_both]));
    assert_eq!(found["fibers"]["left_out"], 2000);
    let page = threads;
    let lines: Vec<_> = page.lines().map(str::trim_end).collect();
    let frame = format!("{:56}a.rb:7", "    Thread::Queue#pop");
    assert_eq!(
        lines[0],
        "7 puma [shop]: 3 threads, Ruby 3.4.5, taken in 2.1 ms"
    );
    let heading = "#1 \"pool\" tid 41, #2 tid 42: 2 threads with one stack";
    assert_eq!(lines[1], "The threads of one other Ractor are not shown.");
    let left_out = "The stacks of 1,200 threads are left out: there are too many frames.";
    assert_eq!(lines[2], left_out);
    assert_eq!(lines[4], format!("{heading:56}blocked: waits to be woken"));
    assert_eq!((lines[5], lines[9]), (&*frame, &*frame));
    assert_eq!(lines[8], format!("{:56}running", "#3 \" [31mx\" tid 43"));

    let text = as_json(&args, &hello(), &answer).expect("not much");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let mut main = answer["frames"][0].clone();
    main["short_path"] = "b.rb".into();
    assert_eq!(found["threads"][1]["frames"], json!([with_both, main]));
    assert_eq!(found["threads"][1]["tid"], 42);
    assert_eq!(
        (&found["source"], &found["stacks_left_out"]),
        (&json!("vm"), &json!(1200))
    );
}

#[test]
fn terminals_show_the_file_of_a_path_and_each_state() {
    let thread = |number: u32| json!({ "number": number, "tid": 4000 + number, "state": "blocked", "frames": [0] });
    let path = format!("/usr/lib/{}/puma/server.rb", "x".repeat(90));
    let answer = json!({
        "source": "vm", "elapsed_ns": 1,
        "threads": (1..=9).map(thread).collect::<Vec<_>>(),
        "frames": [{ "name": "Puma", "path": path, "line": 7 }],
    });
    let lines = |screen| {
        let page = page(&args(), &hello(), &answer, screen).expect("not much");
        page.lines().map(String::from).collect::<Vec<_>>()
    };
    let narrow = lines(Screen::of_width(80));
    let heading = "#1 tid 4001, #2 tid 4002, #3 tid 4003, …: 9 threads with one stack";
    assert_eq!(narrow[2], format!("{heading}  blocked"));
    let cut = format!("{:56}/usr/lib/xx…/server.rb:7", "    Puma");
    assert_eq!(narrow[3], cut);
    let file = lines(Screen::default());
    assert!(file[2].contains("#9 tid 4009: 9 threads"));
    assert_eq!(file[3], format!("{:56}{path}:7", "    Puma"));
}

#[test]
fn a_few_bytes_become_no_endless_text() {
    let thread = json!({ "state": "blocked", "frames": vec![0; 100] });
    let answer = json!({
        "source": "vm",
        "frames": [{ "name": "x".repeat(1 << 20), "path": "", "line": 1 }],
        "threads": [thread],
    });
    assert!(page(&args(), &hello(), &answer, Screen::default()).is_none());
    assert!(as_json(&args(), &hello(), &answer).is_none());
}
