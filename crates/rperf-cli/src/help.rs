//! `rperf help`: the list of commands and topics, the options of a command as `--help` shows them,
//! and the pages of docs/guide. Called by `run` on the command's only thread.

mod inline;
mod markdown;
mod table;
mod topics;
mod wrap;

use crate::args::Args;
use crate::report::screen::{Screen, Style};
use crate::{FAILURE, USAGE, say};
use clap::CommandFactory;
use rperf_model::Order;
use topics::{TOPICS, Topic};

/// The longest lines of a page, on wider terminals too.
const WIDEST: usize = 100;
/// The topic that is all of them.
const ALL: &str = "all";

/// Prints the list, or the help on a command or topic, and returns the exit status.
pub fn print(name: Option<&str>) -> i32 {
    let screen = Screen::stdout(true);
    let text = match name {
        None => list(&screen),
        Some(name) => match help_on(name, &screen) {
            Some(text) => text,
            None => {
                say(&unknown(name));
                return USAGE;
            }
        },
    };
    match screen.print(&text) {
        Ok(()) => 0,
        Err(error) => {
            say(&format!("can't write the help: {error}"));
            FAILURE
        }
    }
}

/// A command's options, a page of the guide, or all of them.
fn help_on(name: &str, screen: &Screen) -> Option<String> {
    if let Some(text) = help_of(name) {
        return Some(text);
    }
    if name == ALL {
        return Some(everything(screen));
    }
    topics::find(name).map(|topic| page(topic, screen))
}

fn page(topic: &Topic, screen: &Screen) -> String {
    let width = screen.width().map_or(WIDEST, |width| width.min(WIDEST));
    markdown::render(topic.page, width, &|title| bold(screen, title))
}

fn bold(screen: &Screen, text: &str) -> String {
    screen.styled(Some(Style::Bold), text)
}

/// The commands, with their purpose.
fn commands() -> Vec<(String, String)> {
    let command = Args::command();
    let commands = command.get_subcommands();
    commands
        .map(|it| {
            let about = it.get_about().map(ToString::to_string).unwrap_or_default();
            (it.get_name().to_string(), about)
        })
        .collect()
}

fn help_of(name: &str) -> Option<String> {
    let mut command = Args::command();
    // The lines with "Usage:" then have the whole name.
    command.build();
    let command = command.find_subcommand_mut(name)?;
    Some(command.render_help().to_string())
}

/// The list of commands and topics, a line for each.
fn list(screen: &Screen) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("rperf {version}: a sampling profiler for Ruby programs\n");
    let line = |name: &str, about: &str| screen.fitted(&format!("  {name:<22} {about}"), 0) + "\n";
    text += &format!(
        "\n{}\n",
        bold(screen, "Commands (rperf help COMMAND prints the options)")
    );
    for (name, about) in commands() {
        text += &line(&name, &about);
    }
    text += &format!(
        "\n{}\n",
        bold(
            screen,
            "Topics (rperf help TOPIC prints a page of the guide)"
        )
    );
    for topic in &TOPICS {
        text += &line(topic.name, topic.question());
    }
    text + "\n" + &line(ALL, "Everything, in one text")
}

/// The overview, the options of all commands, and all pages.
fn everything(screen: &Screen) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("rperf {version}: a sampling profiler for Ruby programs\n");
    section(
        &mut text,
        "OVERVIEW",
        &Args::command().render_help().to_string(),
    );
    for (name, _) in commands() {
        if let Some(help) = help_of(&name) {
            section(&mut text, &format!("RPERF {}", name.to_uppercase()), &help);
        }
    }
    for topic in &TOPICS {
        section(&mut text, &topic.name.to_uppercase(), &page(topic, screen));
    }
    text
}

fn section(text: &mut String, title: &str, body: &str) {
    text.push_str(&format!("\n== {title} ==\n\n{}\n", body.trim_end()));
}

fn unknown(name: &str) -> String {
    let near = nearest(name);
    let hint = match near.as_slice() {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    };
    format!("there is no command or topic '{name}'{hint} ('rperf help' lists them)")
}

/// The names of up to three commands and topics that look like this one, or have a word that does.
fn nearest(name: &str) -> Vec<String> {
    const ALIKE: f64 = 0.8;
    let name = name.to_lowercase();
    let mut known: Vec<(f64, String)> = commands()
        .into_iter()
        .map(|(command, _)| (strsim::jaro_winkler(&name, &command), command))
        .collect();
    for topic in &TOPICS {
        let alike = topic.names().map(|it| strsim::jaro_winkler(&name, it));
        known.push((alike.fold(0.0, f64::max), topic.name.to_string()));
    }
    known.retain(|(alike, _)| *alike >= ALIKE);
    known.order_by(|one, other| other.0.total_cmp(&one.0));
    known.into_iter().map(|(_, name)| name).take(3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> String {
        everything(&Screen::default())
    }

    #[test]
    fn everything_has_every_option_of_every_command() {
        let text = all();
        for command in Args::command().get_subcommands() {
            assert!(text.contains(&format!("Usage: rperf {}", command.get_name())));
            for argument in command.get_arguments() {
                if let Some(long) = argument.get_long() {
                    assert!(text.contains(&format!("--{long}")), "{long}");
                }
            }
        }
    }

    #[test]
    fn the_list_has_every_command_and_topic() {
        let text = list(&Screen::default());
        for topic in &TOPICS {
            assert!(text.contains(&format!("  {:<22} {}\n", topic.name, topic.question())));
            assert!(topic.question().ends_with('?'), "{}", topic.question());
        }
        for (name, about) in commands() {
            assert!(text.contains(&format!("  {name:<22} {about}\n")));
        }
    }

    #[test]
    fn pages_fit_a_terminal_and_have_no_marks() {
        for topic in &TOPICS {
            let text = page(topic, &Screen::default());
            for line in text.lines().filter(|line| !line.starts_with("    ")) {
                assert!(line.chars().count() <= WIDEST, "{}: {line}", topic.name);
                // Patterns of files have stars, too.
                let line = line.replace("/**", "");
                for mark in ["**", "](", "```", "\u{a0}"] {
                    assert!(!line.contains(mark), "{}: {line}", topic.name);
                }
            }
        }
    }

    #[test]
    fn a_command_has_its_own_help() {
        let help = help_of("record").expect("a command");
        assert!(help.contains("Usage: rperf record [OPTIONS] <COMMAND>"));
        assert!(help_of("rekord").is_none());
    }

    #[test]
    fn what_is_unknown_is_met_with_the_nearest_names() {
        for (name, expected) in [
            (
                "rekord",
                "there is no command or topic 'rekord'; did you mean record or report?",
            ),
            (
                "labelz",
                "there is no command or topic 'labelz'; did you mean labels?",
            ),
            (
                "sidekik",
                "there is no command or topic 'sidekik'; did you mean web-and-jobs?",
            ),
            (
                "#",
                "there is no command or topic '#' ('rperf help' lists them)",
            ),
        ] {
            assert!(unknown(name).starts_with(expected), "{}", unknown(name));
        }
    }
}
