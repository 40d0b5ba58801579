//! Tests of the call graph in DOT: its text, and that Graphviz takes it, where there is Graphviz.

use crate::golden::assert_golden;
use crate::profiles::{self, Builder};
use proptest::prelude::*;
use rperf_format::answers::FilteredProfile;
use rperf_format::{GraphOptions, dot};
use rperf_model::test_support::{schema, wall_schema};
use rperf_model::{Meta, NodeId, Profile, State};
use rperf_report::{CoreMethods, NodeKind};
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Whether Graphviz is here. Without it the text is tested, but not what is made of it.
static HAS_GRAPHVIZ: LazyLock<bool> = LazyLock::new(|| {
    let version = Command::new("dot").arg("-V").stderr(Stdio::null()).status();
    let is_here = version.is_ok_and(|status| status.success());
    if !is_here {
        eprintln!("no Graphviz: not tested whether it takes our graphs");
    }
    is_here
});

/// What Graphviz makes of `text`, in one of its formats; `None` where it isn't here.
fn drawn(text: &str, format: &str) -> Option<String> {
    if !*HAS_GRAPHVIZ {
        return None;
    }
    let mut child = Command::new("dot")
        .arg(format!("-T{format}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it is here");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("it reads all");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

fn graph(profile: &Profile, options: &GraphOptions) -> String {
    dot(FilteredProfile::all(profile), options)
}

/// All nodes and edges.
fn whole(kind: NodeKind) -> GraphOptions {
    GraphOptions {
        kind,
        node_count: usize::MAX,
        node_fraction: 0.0,
        edge_fraction: 0.0,
        has_clusters: kind == NodeKind::Function,
    }
}

const KINDS: [NodeKind; 6] = [
    NodeKind::Function,
    NodeKind::Class,
    NodeKind::File,
    NodeKind::Directory,
    NodeKind::Gem(CoreMethods::Caller),
    NodeKind::FunctionOfThread,
];

#[test]
fn graphs_are_as_they_were() {
    let profile = profiles::everything(wall_schema());
    for (name, options) in [
        ("wall", GraphOptions::default()),
        ("wall.clusters", whole(NodeKind::Function)),
        ("wall.threads", whole(NodeKind::FunctionOfThread)),
    ] {
        let text = graph(&profile, &options);
        assert_golden(&format!("{name}.dot"), text.as_bytes());
        drawn(&text, "svg");
    }
}

#[test]
fn counted_calls_and_unknown_ones_are_told_apart() {
    let types = [("calls", "count"), ("wall", "nanoseconds")];
    let mut builder = Builder::new(schema(&types, 1), Meta::default());
    builder.thread(1, "");
    let none = builder.labels(&[]);
    let main = ("<main>", "app.rb", 1, 9);
    for (frames, calls, ns) in [
        (&[main][..], 1, 1_000_000),
        (&[main, ("Order#total", "app.rb", 3, 4)], 1200, 8_000_000),
        (&[main, ("Kernel#load", "<C method>", 0, 0)], 0, 2_000_000),
    ] {
        let node = builder.node(frames);
        builder.add(node, 1, none, State::Running, &[calls, ns]);
    }
    let text = graph(&builder.finish(), &GraphOptions::default());
    assert_golden("calls.dot", text.as_bytes());
    drawn(&text, "svg");
}

#[test]
fn what_is_cut_is_told_in_the_title() {
    let mut builder = Builder::new(wall_schema(), Meta::default());
    builder.thread(1, "");
    let none = builder.labels(&[]);
    for number in 0..30 {
        let name = format!("Order#step_{number}");
        let node = builder.node(&[("<main>", "a.rb", 1, 2), (&name, "a.rb", 3, 4)]);
        builder.add_times(
            node,
            1,
            none,
            State::Running,
            [1, 1 + number * 1_000_000, 0],
        );
    }
    let profile = builder.finish();
    let options = GraphOptions {
        node_count: 10,
        ..GraphOptions::default()
    };
    let text = graph(&profile, &options);
    assert!(
        text.contains("\\lShowing 10 of 31 methods; cut: 3 of less than 0.5%, 18 beyond 10\\l")
    );
    let options = GraphOptions {
        node_fraction: 0.07,
        ..GraphOptions::default()
    };
    let text = graph(&profile, &options);
    assert!(text.contains(" of less than 7%"), "{text}");
    let text = graph(&profile, &whole(NodeKind::Class));
    assert!(text.contains("\\lShowing 2 of 2 classes\\l"), "{text}");
}

#[test]
fn a_profile_without_weights_is_a_title() {
    let mut builder = Builder::new(wall_schema(), Meta::default());
    let none = builder.labels(&[]);
    builder.add(NodeId::ROOT, 0, none, State::Running, &[0, 0, 0]);
    let text = graph(&builder.finish(), &GraphOptions::default());
    assert!(text.contains("Showing 0 of 0 methods\\l"));
    drawn(&text, "svg");
}

/// Names that would be markup, or end the text that they are in.
const HOSTILE: [&str; 16] = [
    "\"] x [label=\"y",
    "\\",
    "\\\"",
    "\\N \\G \\E \\T \\H \\L \\n \\l \\r",
    "a\nb\r\nc\0d",
    "<b>bold</b>",
    "<<b>bold</b>>",
    "</svg><script>alert(1)</script>",
    "]]><!-- & &lt; &#60; &amp;lt; &eacute; &nosuch;",
    "// comment */ /* # x",
    "n0 -> n1; }",
    "",
    " ",
    "\u{202e}edoc\u{ffff}\u{fffe}\u{2028}",
    "計算#合計",
    "+ % $( ` ' {a|b} ",
];

#[test]
fn no_name_is_markup() {
    let long = "\\\"&<".repeat(20_000);
    let mut builder = Builder::new(wall_schema(), Meta::default());
    builder.thread(1, HOSTILE[0]);
    let none = builder.labels(&[]);
    for name in HOSTILE.iter().copied().chain([&*long]) {
        let node = builder.node(&[("main", "a.rb", 1, 2), (name, name, 3, 4)]);
        builder.add_times(node, 1, none, State::Running, [1, 1_000_000, 0]);
    }
    let profile = builder.finish();
    for kind in KINDS {
        let text = graph(&profile, &whole(kind));
        assert!(text.len() < 100_000);
        let Some(svg) = drawn(&text, "svg") else {
            continue;
        };
        assert!(!svg.contains("<b>") && !svg.contains("<script"), "{svg}");
        if kind != NodeKind::Function {
            continue;
        }
        for shown in [
            "&quot;] x [label=&quot;y",
            "\\N \\G \\E \\T \\H \\L \\n \\l \\r",
            "&lt;b&gt;bold&lt;/b&gt;",
            "&amp; &amp;lt; &amp;#60;",
            "計算",
        ] {
            let plain = svg.replace("&#45;", "-").replace("&#39;", "'");
            assert!(plain.contains(shown), "{shown}\n{plain}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn graphviz_takes_the_graph_of_any_profile(profile in profiles::arbitrary(), kind in 0..6_usize) {
        for options in [whole(KINDS[kind]), GraphOptions { kind: KINDS[kind], node_count: 3, ..GraphOptions::default() }] {
            let text = graph(&profile, &options);
            prop_assert_eq!(&text, &graph(&profile, &options));
            drawn(&text, "canon");
        }
    }
}
