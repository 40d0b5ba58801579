//! The options of call graphs, as clap sees them, and checked. Used by `options`.

use super::view_args::Belongs;
use crate::Refusal;
use rperf_format::GraphOptions;
use rperf_report::{By, NodeKind};

/// The picture unless asked for otherwise.
pub const SVG_FILE: &str = "rperf.svg";

/// Options of `rperf report`.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Call graph")]
pub struct GraphArgs {
    /// Write the call graph in DOT, which Graphviz draws [default: to stdout]
    #[arg(long)]
    pub dot: bool,
    /// Write the call graph as a picture; needs Graphviz [default: rperf.svg]
    #[arg(long)]
    pub svg: bool,
    /// Nodes at most; 0: all [default: 80]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub nodecount: Option<String>,
    /// Leave nodes out whose total is less than this share of all [default: 0.005]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub nodefraction: Option<String>,
    /// Leave arrows out that have less than this share of all [default: 0.001]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub edgefraction: Option<String>,
    /// Draw a frame around the methods of each class
    #[arg(long)]
    pub clusters: bool,
}

impl GraphArgs {
    /// Where the options have a meaning.
    pub fn belongings(&self) -> [Belongs; 4] {
        let given = |name, is_given| -> Belongs { (name, is_given, &["--dot", "--svg"]) };
        [
            given("--nodecount", self.nodecount.is_some()),
            given("--nodefraction", self.nodefraction.is_some()),
            given("--edgefraction", self.edgefraction.is_some()),
            given("--clusters", self.clusters),
        ]
    }

    /// The graph that the options ask for.
    pub fn options(&self, kind: NodeKind) -> Result<GraphOptions, Refusal> {
        if self.clusters && kind != NodeKind::Function {
            let message = "--clusters are of methods: it goes with --by method only";
            return Err(Refusal::usage(message));
        }
        let usual = GraphOptions::default();
        let share = |option, text: &Option<String>, usual| {
            let text = text.as_deref();
            text.map_or(Ok(usual), |text| parse_share(option, text))
        };
        Ok(GraphOptions {
            kind,
            node_count: match self.nodecount.as_deref() {
                Some(text) => parse_count(text)?,
                None => usual.node_count,
            },
            node_fraction: share("--nodefraction", &self.nodefraction, usual.node_fraction)?,
            edge_fraction: share("--edgefraction", &self.edgefraction, usual.edge_fraction)?,
            has_clusters: self.clusters,
        })
    }
}

/// The nodes of a graph that has these for rows.
pub fn node_kind(by: &By) -> Result<NodeKind, Refusal> {
    match by {
        By::Function => Ok(NodeKind::Function),
        By::Class => Ok(NodeKind::Class),
        By::File => Ok(NodeKind::File),
        By::Directory => Ok(NodeKind::Directory),
        By::Gem(core) => Ok(NodeKind::Gem(*core)),
        By::Thread => Ok(NodeKind::FunctionOfThread),
        By::State | By::Label(_) | By::Op => Err(Refusal::usage(
            "--by state, --by op and --by label:KEY go with --top, not with --dot or --svg",
        )),
    }
}

fn parse_count(text: &str) -> Result<usize, Refusal> {
    match text.parse() {
        Ok(0) => Ok(usize::MAX),
        Ok(count) => Ok(count),
        Err(_) => Err(Refusal::usage(format!(
            "--nodecount must be a number of nodes, 0 for all, not '{text}'"
        ))),
    }
}

fn parse_share(option: &str, text: &str) -> Result<f64, Refusal> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(Refusal::usage(format!(
            "{option} must be a share from 0 to 1, such as 0.01, not '{text}'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_pprof_s_unless_given() {
        let options = GraphArgs::default().options(NodeKind::Class);
        let expected = GraphOptions {
            kind: NodeKind::Class,
            ..GraphOptions::default()
        };
        assert_eq!(options.expect("valid"), expected);
        let args = GraphArgs {
            nodecount: Some("0".into()),
            nodefraction: Some("1".into()),
            edgefraction: Some("0.25".into()),
            clusters: true,
            ..GraphArgs::default()
        };
        let options = args.options(NodeKind::Function).expect("valid");
        assert_eq!(
            (
                options.node_count,
                options.node_fraction,
                options.edge_fraction
            ),
            (usize::MAX, 1.0, 0.25)
        );
        assert!(options.has_clusters && args.options(NodeKind::File).is_err());
    }

    #[test]
    fn shares_are_shares() {
        for text in ["-0.1", "1.1", "5%", "nan", "inf", ""] {
            let refusal = parse_share("--nodefraction", text).expect_err("no share");
            let expected = "--nodefraction must be a share from 0 to 1, such as 0.01, not ";
            assert_eq!(refusal.message, format!("{expected}'{text}'"));
        }
        assert!(parse_count("-1").is_err() && parse_count("1e3").is_err());
    }
}
