//! The topics of `rperf help`: the pages of docs/guide, which are part of the program. Read by
//! `help` on the command's only thread.

/// A page of the guide.
pub struct Topic {
    /// The name of its file, without `.md`.
    pub name: &'static str,
    /// Other words for it.
    aliases: &'static [&'static str],
    /// The page, in Markdown.
    pub page: &'static str,
}

impl Topic {
    /// The question that the page answers: its first heading.
    pub fn question(&self) -> &'static str {
        let first = self.page.lines().next().unwrap_or_default();
        first.trim_start_matches("# ")
    }

    /// Its name and the other words for it.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

macro_rules! topic {
    ($name:literal, $($alias:literal),*) => {
        Topic {
            name: $name,
            aliases: &[$($alias),*],
            page: include_str!(concat!("../../../../docs/guide/", $name, ".md")),
        }
    };
}

/// All pages, in the order of docs/guide/README.md.
pub const TOPICS: [Topic; 50] = [
    topic!("tutorial", "start", "guide"),
    topic!("recipes", "recipe", "slow", "install"),
    topic!("recipes-tests",),
    topic!("recipes-servers", "servers", "puma"),
    topic!("memory-grows", "grows", "fragmentation"),
    topic!("gc-is-slow", "slow-gc"),
    topic!("container-killed", "killed", "oom", "oomkilled"),
    topic!("modes", "mode", "cpu", "wall"),
    topic!("stat-page", "page"),
    topic!("states", "state", "gvl", "what-to-look-for"),
    topic!("idle-threads", "idle"),
    topic!("cli", "command-line", "commands", "options", "exit-status"),
    topic!("views", "reports", "filters", "flame-graph"),
    topic!("call-graphs", "call-graph", "dot", "svg", "graphviz"),
    topic!(
        "boot",
        "start-up",
        "startup",
        "loading",
        "require",
        "initializers"
    ),
    topic!(
        "tests",
        "test",
        "rspec",
        "minitest",
        "factories",
        "examples"
    ),
    topic!("comparing", "diffs", "compare", "noise", "ci"),
    topic!(
        "formats",
        "format",
        "files",
        "pprof",
        "collapsed",
        "markdown",
        "html"
    ),
    topic!("running-program", "running", "live", "port", "listen"),
    topic!("containers", "container", "docker", "podman"),
    topic!(
        "fleets",
        "fleet",
        "serve",
        "push",
        "pyroscope",
        "in-production",
        "collectors",
        "alloy",
        "side-car"
    ),
    topic!("production", "systemd", "service", "leave-on"),
    topic!("json",),
    topic!("tracing", "calls", "count-calls"),
    topic!("allocations", "objects", "alloc", "measure"),
    topic!("what-stays", "inuse"),
    topic!("memory", "rss", "pss", "smaps", "malloc"),
    topic!("heap", "dominators", "retained", "holders"),
    topic!("leak", "leaks", "growth", "max-rss"),
    topic!(
        "garbage-collection",
        "gc",
        "garbage",
        "collections",
        "pauses"
    ),
    topic!("blame", "gvl-blame", "gvl-wait", "contention"),
    topic!("slow-requests", "tail", "p99"),
    topic!(
        "ops", "op", "queries", "sql", "http", "redis", "n+1", "database"
    ),
    topic!("call-counts", "counts", "callgrind", "kcachegrind"),
    topic!("time-line", "spans", "perfetto", "chrome-trace"),
    topic!("trace-one-method", "only", "one-method"),
    topic!("environment-variables", "environment", "variables", "env"),
    topic!(
        "ruby-api",
        "api",
        "ruby",
        "from-ruby",
        "profile",
        "the-profile"
    ),
    topic!("labels", "label"),
    topic!("snapshots", "snapshot"),
    topic!("sections", "section", "defer"),
    topic!("accounts", "account", "server-timing"),
    topic!(
        "web-and-jobs",
        "middleware",
        "rails",
        "rack",
        "sinatra",
        "sidekiq",
        "jobs",
        "active-job"
    ),
    topic!("viewer", "the-viewer-in-an-app"),
    topic!(
        "child-processes",
        "children",
        "processes",
        "fork",
        "inherit"
    ),
    topic!(
        "capture",
        "tick",
        "safepoint",
        "the-stack-at-the-tick",
        "yjit",
        "zjit",
        "jit"
    ),
    topic!("signals", "signal", "eintr"),
    topic!("lines", "line"),
    topic!("cost", "overhead", "accuracy"),
    topic!("limits", "limit"),
];

/// The topic of this name.
pub fn find(name: &str) -> Option<&'static Topic> {
    let name = name.trim().to_lowercase().replace([' ', '_'], "-");
    let name = name.trim_end_matches(".md");
    TOPICS
        .iter()
        .find(|topic| topic.names().any(|known| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::Path;

    #[test]
    fn every_page_of_the_guide_is_a_topic() {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let files = std::fs::read_dir(guide).expect("the guide");
        let pages: HashSet<String> = files
            .map(|file| {
                file.expect("a page")
                    .file_name()
                    .into_string()
                    .expect("a name")
            })
            .filter(|name| name != "README.md")
            .collect();
        let topics = TOPICS.iter().map(|topic| format!("{}.md", topic.name));
        assert_eq!(topics.collect::<HashSet<_>>(), pages);
    }

    #[test]
    fn a_word_names_one_topic() {
        let names: Vec<_> = TOPICS.iter().flat_map(Topic::names).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }

    #[test]
    fn a_topic_is_found_by_other_words_and_spellings() {
        for name in [
            "child-processes",
            "Child Processes",
            "child_processes.md",
            "fork",
        ] {
            assert_eq!(
                find(name).map(|topic| topic.name),
                Some("child-processes"),
                "{name}"
            );
        }
        assert!(find("kittens").is_none());
    }
}
