//! The options of `rperf top`, and the times that tables and screens have in common.

use crate::Refusal;
use crate::programs::choose::Choice;
use crate::programs::users::UserArgs;
use crate::shared_args::checked::NO_PID;
use crate::shared_args::path_args::PathArgs;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// After so long it says that it waits for a program; and for so long nothing is asked at most.
pub use rperf_watch::patience::{LATE as SILENCE, REST};

/// Options of `rperf top`.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// All programs that match this regular expression in the last column of 'rperf ps'
    #[arg(
        long = "match",
        id = "matching",
        value_name = "REGEX",
        conflicts_with = "words"
    )]
    pub matching: Option<String>,
    /// Whose programs may match.
    #[command(flatten)]
    pub users: UserArgs,
    /// Print one table and end
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Print so many tables and end; it waits until Ruby code runs, --once doesn't
    #[arg(short = 'n', value_name = "N", value_parser = crate::shared_args::checked::count)]
    pub count: Option<u64>,
    /// Seconds between two tables (0.1 to 3600)
    #[arg(long, value_name = "S", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Print one JSON object for each interval and program, with times in nanoseconds
    #[arg(long)]
    pub json: bool,
    /// Show the time of threads that wait for work, too
    #[arg(long)]
    pub idle: bool,
    /// The form of paths.
    #[command(flatten)]
    pub paths: PathArgs,
    /// The programs' processes; or profiles to look at; or a command to run, with its arguments
    #[arg(
        value_name = "PID|FILE|COMMAND",
        trailing_var_arg = true,
        required_unless_present = "matching"
    )]
    pub words: Vec<OsString>,
}

/// What is watched, or looked at.
#[derive(Debug, PartialEq, Eq)]
pub enum Subject {
    /// Programs that run.
    Programs(Choice),
    /// Profiles that were saved.
    Files(Vec<PathBuf>),
    /// A command that is to run.
    Command(Vec<OsString>),
}

impl TopArgs {
    /// What the words name.
    pub fn subject(&self) -> Result<Subject, Refusal> {
        if !self.words.is_empty() {
            self.users.refuse_with("PIDs, files or a command")?;
        }
        let mut words = self.words.iter();
        Ok(match words.next() {
            Some(first) if is_number(first) => {
                let pids = self.words.iter().map(|word| {
                    let pid = word.to_str().and_then(|word| word.parse().ok());
                    pid.filter(|pid| *pid > 0).ok_or_else(|| {
                        let word = word.to_string_lossy();
                        let word = rperf_report::terminal_text::shown(&word);
                        Refusal::usage(format!("'PID' can't be '{word}': {NO_PID}"))
                    })
                });
                Subject::Programs(Choice {
                    pids: pids.collect::<Result<_, _>>()?,
                    matching: None,
                    users: UserArgs::default(),
                })
            }
            Some(first) if is_profile(first) => {
                Subject::Files(self.words.iter().map(PathBuf::from).collect())
            }
            Some(_) => Subject::Command(self.words.clone()),
            None => Subject::Programs(Choice {
                pids: Vec::new(),
                matching: self.matching.clone(),
                users: self.users.clone(),
            }),
        })
    }

    /// The command line with the first options in front that `line` has after processes or files;
    /// nothing if there are none any more. What comes after a command is the command's. `before` has
    /// the words that came before, which are given again behind a `--`.
    pub fn with_options_in_front(
        &mut self,
        line: &[OsString],
        before: &mut Vec<OsString>,
    ) -> Option<Vec<OsString>> {
        if self.words.len() == before.len() {
            return None;
        }
        let front = &line[..line.len() - self.words.len()];
        if before.is_empty() {
            self.words
                .first()
                .filter(|it| is_number(it) || is_profile(it))?;
        } else {
            self.words.truncate(self.words.len() - before.len() - 1);
        }
        let is_option = |word: &OsString| word != "-" && word.as_encoded_bytes().starts_with(b"-");
        let mut words = self.words.iter().take_while(|word| *word != "--");
        let Some(place) = words.position(is_option) else {
            before.append(&mut self.words);
            self.words = std::mem::take(before);
            return None;
        };
        let options = self.words.split_off(place);
        before.append(&mut self.words);
        Some([front, &options, &["--".into()], before].concat())
    }
}

fn is_number(word: &OsString) -> bool {
    let bytes = word.as_encoded_bytes();
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

/// Whether it is a file that is no program: neither is a script that somebody forgot to give to Ruby.
/// On some file systems all files are executable.
fn is_profile(word: &OsString) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let path = Path::new(word);
    let is_script = path.extension().is_some_and(|it| it == "rb");
    #[expect(clippy::disallowed_methods, reason = "`is_gzipped` waits for nothing")]
    let found = std::fs::metadata(path);
    let Some(found) = found.ok().filter(|it| it.is_file()) else {
        return false;
    };
    !is_script && (found.permissions().mode() & 0o111 == 0 || is_gzipped(path))
}

fn is_gzipped(path: &Path) -> bool {
    let mut start = [0; 2];
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let read = file.and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == [0x1f, 0x8b]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Subcommand};

    fn args(words: &[&str]) -> TopArgs {
        let line = ["rperf", "top"].iter().chain(words).map(OsString::from);
        match Args::of(line.collect()).expect("clap takes it").subcommand {
            Subcommand::Top(args) => args,
            _ => panic!("another command"),
        }
    }

    fn subject(words: &[&str]) -> Subject {
        args(words).subject().expect("a subject")
    }

    fn processes(pids: &[i32]) -> Subject {
        Subject::Programs(Choice {
            pids: pids.to_vec(),
            matching: None,
            users: UserArgs::default(),
        })
    }

    #[test]
    fn options_come_before_processes_or_after_but_only_before_a_command() {
        assert_eq!(subject(&["7", "5"]), processes(&[7, 5]));
        let mixed = args(&["--json", "7", "-n", "3", "5", "--interval", "2"]);
        assert_eq!(
            (mixed.json, mixed.count, mixed.interval),
            (true, Some(3), Duration::from_secs(2))
        );
        assert_eq!(mixed.subject().ok(), Some(processes(&[7, 5])));
        for lacking in [["7", "8", "-n"], ["7", "8", "--interval"]] {
            let line = ["rperf", "top"].iter().chain(&lacking).map(OsString::from);
            Args::of(line.collect()).expect_err("no process is a value");
        }
        for words in [
            ["7", "--", "-x"].as_slice(),
            &["7", "-"],
            &["7", "-n", "3", "x"],
        ] {
            assert_eq!(args(words).subject().expect_err("refused").status, 2);
        }
        let command = args(&["--once", "ruby", "x.rb", "--json"]);
        assert!(command.once && !command.json);
        let words = ["ruby", "x.rb", "--json"].map(OsString::from).to_vec();
        assert_eq!(command.subject().ok(), Some(Subject::Command(words)));
        assert_eq!(
            args(&["--match", "puma"]).subject().ok(),
            Some(Subject::Programs(Choice {
                pids: Vec::new(),
                matching: Some("puma".into()),
                users: UserArgs::default(),
            }))
        );
    }

    #[test]
    fn files_that_are_no_programs_are_profiles() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        let (profile, script, ruby) = (path("x.pb.gz"), path("x"), path("x.rb"));
        for file in [&profile, &script, &ruby] {
            std::fs::write(file, "").expect("a file");
        }
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&script, mode).expect("permissions");
        let is_profile = |word: &str| matches!(subject(&[word]), Subject::Files(_));
        assert!(is_profile(&profile) && !is_profile(&script) && !is_profile(&ruby));
        std::fs::write(&script, [0x1f, 0x8b, 8]).expect("written");
        assert!(is_profile(&script), "gzip'd files are no programs");
        assert!(args(&[&profile, "--once"]).once && !is_profile("no/such/file"));
        for words in [["0"].as_slice(), &["7", "x"], &["99999999999"]] {
            assert_eq!(args(words).subject().expect_err("refused").status, 2);
        }
    }
}
