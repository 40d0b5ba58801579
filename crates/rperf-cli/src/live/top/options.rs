//! The options of `rperf top`, and the times that tables and screens have in common.

use crate::live::choose::Choice;
use std::time::Duration;

/// After so long it says that it waits for a program.
pub const SILENCE: Duration = Duration::from_secs(2);

/// For how long nothing is asked at most: the port lets go of clients that are silent.
pub const REST: Duration = Duration::from_secs(20);

/// Options of `rperf top`.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// The programs.
    #[command(flatten)]
    pub choice: Choice,
    /// Print one table and end
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Print so many tables and end
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Seconds between two tables (0.1 to 3600)
    #[arg(long, value_name = "S", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Print one JSON object for each interval and program, with times in nanoseconds
    #[arg(long)]
    pub json: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "seconds are a number".to_string())?;
    match (0.1..=3600.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("0.1 to 3600 seconds are possible".into()),
    }
}
