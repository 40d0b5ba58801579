//! The call graph in DOT, the language of Graphviz, which draws it. It is about the profile's default
//! column. Called by `format::write` and by `rperf report`; any thread.
//!
//! Names of functions are quoted text always, never markup of Graphviz.

mod look;
mod text;

use crate::FormatError;
use crate::answers::FilteredProfile;
use look::Look;
use rperf_model::Profile;
use rperf_report::numbers::{counted, grouped, percent, seconds};
use rperf_report::one_line::one_line;
use rperf_report::{
    CallGraph, GraphEdge, GraphLimits, GraphNode, NodeKind, Scale, class_of, idle_line,
    losses_line, without_idle,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write;
use text::{escaped, name_lines, path_end, tooltip_name};

/// The graph that is wanted. The limits have pprof's names and defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphOptions {
    /// What the nodes are.
    pub kind: NodeKind,
    /// How many nodes there may be.
    pub node_count: usize,
    /// The least total of a node, as a share of the whole.
    pub node_fraction: f64,
    /// The least value of an edge, as a share of the whole.
    pub edge_fraction: f64,
    /// Whether there is a frame around the methods of each class.
    pub has_clusters: bool,
}

impl Default for GraphOptions {
    fn default() -> Self {
        Self {
            kind: NodeKind::Function,
            node_count: 80,
            node_fraction: 0.005,
            edge_fraction: 0.001,
            has_clusters: false,
        }
    }
}

/// The graph in DOT.
pub fn dot(filtered: FilteredProfile<'_>, options: &GraphOptions) -> String {
    let FilteredProfile {
        profile,
        whole,
        idle,
    } = filtered;
    let limits = GraphLimits::of_shares(
        whole,
        options.node_count,
        options.node_fraction,
        options.edge_fraction,
    );
    let column = profile.schema.default_column();
    let graph = CallGraph::of(profile, column, options.kind, limits);
    let picture = Picture {
        profile,
        whole,
        idle: idle.left_out(),
        options,
        scale: Scale::new(profile.schema.default_type(), whole),
        look: Look { whole },
        graph: &graph,
    };
    picture.dot()
}

/// Writes the graph of all of `profile`.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let (profile, idle) = without_idle(profile);
    let filtered = FilteredProfile::all_but_idle(&profile, idle);
    let text = dot(filtered, &GraphOptions::default());
    output.write_all(text.as_bytes())?;
    Ok(())
}

struct Picture<'a> {
    profile: &'a Profile,
    whole: i64,
    idle: i64,
    options: &'a GraphOptions,
    scale: Scale,
    look: Look,
    graph: &'a CallGraph,
}

impl Picture<'_> {
    fn dot(&self) -> String {
        let mut dot = String::from("digraph rperf {\n");
        dot += "  graph [bgcolor=\"#ffffff\" ranksep=0.45 nodesep=0.3 outputorder=edgesfirst\n";
        let _ = writeln!(
            dot,
            "    fontname=\"Helvetica,Arial,sans-serif\" fontsize=12 fontcolor=\"{}\" \
             labelloc=t labeljust=l\n    label=\"{}\"]",
            look::TEXT,
            lines(&self.title(), "\\l")
        );
        let _ = writeln!(
            dot,
            "  node [shape=box fontname=\"Helvetica,Arial,sans-serif\" fontcolor=\"{}\" \
             margin=\"0.1,0.05\"]",
            look::TEXT
        );
        let _ = writeln!(
            dot,
            "  edge [fontname=\"Helvetica,Arial,sans-serif\" fontsize=10 fontcolor=\"{}\" \
             arrowsize=0.7]",
            look::TEXT
        );
        let names = self.names_of_several();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            self.node(&mut dot, index, node, &names);
        }
        self.clusters(&mut dot);
        for edge in &self.graph.edges {
            self.edge(&mut dot, edge);
        }
        dot += "}\n";
        dot
    }

    /// What the graph is about, what of it is shown, and how it is read.
    fn title(&self) -> Vec<String> {
        let mut title = vec![self.subject(), self.shown()];
        title.extend(idle_line(self.profile, self.idle));
        if let Some(losses) = losses_line(&self.profile.meta.counters) {
            title.push(losses);
        }
        let mut key = "Colour and size: self. Border: total. Arrow: what goes through the call; \
                       dotted: by way of what is cut."
            .to_string();
        if self.graph.counts_calls {
            key += " Dashed: the number of calls isn't known.";
        }
        title.push(key);
        title
    }

    fn subject(&self) -> String {
        let meta = &self.profile.meta;
        let value_type = self.profile.schema.default_type();
        let mut subject = match one_line(&meta.program) {
            program if program.is_empty() => String::new(),
            program => format!("{}: ", tooltip_name(&program)),
        };
        subject += &format!(
            "{}, {}",
            one_line(&value_type.name),
            self.amount(self.whole)
        );
        if self.graph.total != self.whole {
            subject += &format!(", of which {} are left", self.value(self.graph.total));
        }
        if let Some(samples) = self.profile.sample_count() {
            subject += &format!(", {}", counted(samples, "sample"));
        }
        if meta.duration_ns > 0 {
            subject += &format!(", duration {} s", seconds(meta.duration_ns));
        }
        if !self.graph.counts_calls {
            subject += "; sampled, so calls are not counted";
        }
        subject
    }

    fn shown(&self) -> String {
        let cut = self.graph.cut;
        let shown = self.graph.nodes.len();
        let all = shown + cut.small_nodes + cut.further_nodes;
        let noun = match self.options.kind {
            NodeKind::Function | NodeKind::FunctionOfThread => "methods",
            NodeKind::Class => "classes",
            NodeKind::File => "files",
            NodeKind::Directory => "directories",
            NodeKind::Gem(_) => "gems",
        };
        let mut parts = Vec::new();
        // A hundred times 0.07 isn't 7 in binary.
        let share = |fraction: f64| format!("{}%", (fraction * 1e8).round() / 1e6);
        if cut.small_nodes > 0 {
            let least = share(self.options.node_fraction);
            parts.push(format!(
                "{} of less than {least}",
                grouped(cut.small_nodes as u64)
            ));
        }
        if cut.further_nodes > 0 {
            let most = grouped(self.options.node_count as u64);
            parts.push(format!(
                "{} beyond {most}",
                grouped(cut.further_nodes as u64)
            ));
        }
        if cut.edges > 0 {
            let least = share(self.options.edge_fraction);
            let calls = grouped(cut.edges as u64);
            parts.push(format!("{calls} arrows of less than {least}"));
        }
        let mut text = format!(
            "Showing {} of {} {noun}",
            grouped(shown as u64),
            grouped(all as u64)
        );
        if !parts.is_empty() {
            text += &format!("; cut: {}", parts.join(", "));
        }
        text
    }

    /// Which names more than one function has.
    fn names_of_several(&self) -> HashMap<&str, usize> {
        let mut names = HashMap::new();
        for node in &self.graph.nodes {
            *names.entry(node.function.name.as_str()).or_default() += 1;
        }
        names
    }

    fn node(&self, dot: &mut String, index: usize, node: &GraphNode, names: &HashMap<&str, usize>) {
        let function = &node.function;
        let mut label = name_lines(&function.name);
        if names[function.name.as_str()] > 1 && !function.short_path.is_empty() {
            label.push(path_end(&function.short_path));
        }
        label.push(format!("self {}", self.value(node.self_value)));
        label.push(format!("total {}", self.value(node.total_value)));
        label.extend(node.calls.map(calls));
        let mut tooltip = tooltip_name(&function.name);
        if !function.short_path.is_empty() {
            let _ = write!(tooltip, " ({})", tooltip_name(&function.short_path));
        }
        let _ = writeln!(
            dot,
            "  n{index} [label=\"{}\" tooltip=\"{}\" fontsize={} fillcolor=\"{}\" color=\"{}\" \
             penwidth={} style=\"{}\"]",
            lines(&label, "\\n"),
            escaped(&tooltip),
            self.look.font_size(node.self_value),
            self.look.fill(node.self_value),
            self.look.border(node.total_value),
            self.look.border_width(node.total_value),
            match self.graph.counts_calls && node.calls.is_none() {
                true => "filled,dashed",
                false => "filled",
            },
        );
    }

    /// A frame around the methods of each class, if asked for, or around those of each thread.
    fn clusters(&self, dot: &mut String) {
        let mut clusters: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let name = match &node.thread {
                Some(thread) => thread.as_str(),
                None if self.options.has_clusters => class_of(&node.function.name),
                None => return,
            };
            clusters.entry(name).or_default().push(index);
        }
        // Without it Graphviz gives up ("trouble in init_rank") where clusters call each other in
        // circles.
        *dot += "  newrank=true\n";
        let by_thread = self.options.kind == NodeKind::FunctionOfThread;
        let shown = clusters
            .iter()
            .filter(|(_, nodes)| by_thread || nodes.len() > 1);
        for (number, (name, nodes)) in shown.enumerate() {
            let nodes: Vec<_> = nodes.iter().map(|node| format!("n{node}")).collect();
            let _ = writeln!(
                dot,
                "  subgraph cluster_{number} {{ label=\"{}\" tooltip=\"{}\" color=\"{}\" \
                 style=rounded {} }}",
                lines(&name_lines(name), "\\n"),
                escaped(&tooltip_name(name)),
                look::CLUSTER,
                nodes.join(" "),
            );
        }
    }

    fn edge(&self, dot: &mut String, edge: &GraphEdge) {
        let mut label = vec![self.amount(edge.value)];
        label.extend(edge.calls.map(calls));
        let name = |node: usize| tooltip_name(&self.graph.nodes[node].function.name);
        let (verb, style) = match edge.is_residual {
            true => ("calls, by way of what is cut,", " style=dotted"),
            false => ("calls", ""),
        };
        let tooltip = escaped(&format!(
            "{} {verb} {}: {}",
            name(edge.caller),
            name(edge.callee),
            self.value(edge.value)
        ));
        // Graphviz puts the text next to the middle of the line, however wide that is.
        let gap = " ".repeat(self.look.edge_gap(edge.value));
        let _ = writeln!(
            dot,
            "  n{} -> n{} [label=\"{gap}{}\" tooltip=\"{tooltip}\" labeltooltip=\"{tooltip}\" \
             penwidth={} color=\"{}\" weight={}{style}]",
            edge.caller,
            edge.callee,
            lines(&label, &format!("\\n{gap}")),
            self.look.edge_width(edge.value),
            self.look.edge(edge.value),
            self.look.weight(edge.value),
        );
    }

    fn amount(&self, value: i64) -> String {
        self.scale.text(value)
    }

    /// `12.3 ms (4.5%)`
    fn value(&self, value: i64) -> String {
        format!(
            "{} ({:.1}%)",
            self.amount(value),
            percent(value, self.whole)
        )
    }
}

fn calls(calls: i64) -> String {
    let noun = if calls == 1 { "call" } else { "calls" };
    format!("{} {noun}", grouped(calls))
}

/// The lines as the text of a quoted string, with `ending` between two of them, which says how they are
/// aligned; `\l` follows the last one, too.
fn lines(lines: &[String], ending: &str) -> String {
    let is_left = ending == "\\l";
    let lines: Vec<_> = lines.iter().map(|line| escaped(line)).collect();
    lines.join(ending) + if is_left { ending } else { "" }
}
