//! The settings that bound what profiling takes of a program.

use super::super::form::Form::{self, Number};
use super::super::setting::{Defaults, Flags, Setting, Takes};
use rperf_model::fold::MAX_NODES as NODES;

const MAX_OVERHEAD_FORMS: [Form; 1] = [Number(1, 100, "percent of the CPU time")];

/// How much sampling may cost.
pub static MAX_OVERHEAD: Setting = Setting {
    default: Defaults::is("5"),
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "PERCENT",
            "Sample less often if sampling takes more of the CPU time; 100: never",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "max_overhead",
        &MAX_OVERHEAD_FORMS,
        "CPU time that sampling may take before it samples less often",
    )
};

const MAX_NODES_FORMS: [Form; 1] = [Number(
    *NODES.start(),
    *NODES.end(),
    "nodes of the call tree",
)];

/// How large the call tree of a profile may become.
pub static MAX_NODES: Setting = Setting {
    default: Defaults::is("1000000"),
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "N",
            "Nodes of the call tree at most: beyond, the lightest stacks lose callers, no time",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "max_nodes",
        &MAX_NODES_FORMS,
        "nodes of the call tree before stacks are folded",
    )
};
