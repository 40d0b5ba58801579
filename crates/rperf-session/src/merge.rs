//! Makes one profile of those that the processes of a session have left in its directory. Used by the
//! command, and through the extension for a session that a program started. Any thread.

use crate::directory;
use crate::os::OsStats;
use crate::output::without_write_signals;
use crate::process_id::ProcessId;
use crate::process_stats::ProcessStats;
use crate::status::{Member, Outcome, Status};
use rperf_format::ReadError;
use rperf_model::label_keys::{PID, PROCESS};
use rperf_model::{MergeError, Profile};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What the processes of a session have left.
#[derive(Debug, Default)]
pub struct Merged {
    /// All of it in one; `None` if there is nothing.
    pub profile: Option<Profile>,
    /// How many processes are in it.
    pub processes: usize,
    /// Their statistics.
    pub stats: ProcessStats,
    /// The profiles that are not in it.
    pub unmerged: Vec<Unmerged>,
}

/// A profile that couldn't be merged, and what has become of it. Its text is a line for the user.
#[derive(Debug, thiserror::Error)]
#[error(
    "the profile of process {pid} can't be merged ({reason}); {}",
    rescued(kept)
)]
pub struct Unmerged {
    pid: i32,
    reason: Obstacle,
    /// Where it is now.
    kept: io::Result<PathBuf>,
}

fn rescued(kept: &io::Result<PathBuf>) -> String {
    match kept {
        Ok(path) => format!("it is in {}", path.display()),
        Err(error) => format!("it is lost: {error}"),
    }
}

/// Why a profile can't be merged.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Content(#[from] ReadError),
    #[error(transparent)]
    Schema(#[from] MergeError),
}

/// A profile that is to become a part of the whole.
enum MergeInput<'a> {
    Own(i32, Box<Profile>),
    Member(&'a Member),
}

/// Several parts in one.
struct MergedInputs<'a> {
    profile: Profile,
    /// How long the parts were profiled, each for itself.
    profiled_ns: u64,
    members: Vec<&'a Member>,
}

/// A part that can't be one, and why.
struct Damaged<'a> {
    member: &'a Member,
    reason: Obstacle,
}

/// Merges what the members have delivered into `own`, the profile of the calling
/// process with its number, if that belongs to the session.
pub fn merge(directory: &Path, status: &Status, own: Option<(i32, Profile)>) -> Merged {
    merge_and_keep(directory, status, own, &directory::temporary())
}

/// What can't be merged is kept in `keep_in`.
fn merge_and_keep(
    directory: &Path,
    status: &Status,
    own: Option<(i32, Profile)>,
    keep_in: &Path,
) -> Merged {
    let delivered: Vec<&Member> = status
        .members
        .iter()
        .filter(|member| matches!(member.outcome, Outcome::Delivered(_)))
        .collect();
    let own_count = usize::from(own.is_some());
    let own = own.map(|(pid, profile)| MergeInput::Own(pid, Box::new(profile)));
    let merging = Merging {
        directory,
        keep_in,
        labelled: own_count + processes(&delivered).len() > 1,
    };
    let parts = own
        .into_iter()
        .chain(delivered.into_iter().map(MergeInput::Member))
        .collect();
    let mut damaged = Vec::new();
    let whole = merging.all(parts, &mut damaged);
    let mut merged = Merged {
        unmerged: damaged.into_iter().map(|it| merging.keep(it)).collect(),
        ..Merged::default()
    };
    if let Some(whole) = whole {
        merged.processes = own_count + processes(&whole.members).len();
        merged.stats = sum(&whole);
        merged.profile = Some(whole.profile);
    }
    merged
}

/// The system's statistics of each process as its last member has them: it counts on
/// through an exec.
fn processes(members: &[&Member]) -> HashMap<ProcessId, OsStats> {
    let stats = |member: &Member| match member.outcome {
        Outcome::Delivered(stats) => stats.os,
        _ => OsStats::default(),
    };
    let members = members.iter();
    members
        .map(|member| (member.process, stats(member)))
        .collect()
}

/// Ruby begins to count anew after an exec.
fn sum(whole: &MergedInputs<'_>) -> ProcessStats {
    let mut sum = ProcessStats {
        profiled_ns: whole.profiled_ns,
        ..ProcessStats::default()
    };
    let mut is_first = true;
    for member in &whole.members {
        if let Outcome::Delivered(stats) = member.outcome {
            if std::mem::take(&mut is_first) {
                sum.ruby = stats.ruby;
            } else {
                sum.ruby.add(stats.ruby);
            }
            sum.keep_more_memory(stats.memory);
        }
    }
    for os in processes(&whole.members).into_values() {
        sum.os.add(os);
    }
    sum
}

struct Merging<'a> {
    directory: &'a Path,
    keep_in: &'a Path,
    labelled: bool,
}

impl Merging<'_> {
    /// In halves: each row is moved log n times, not n times.
    fn all<'a>(
        &self,
        mut parts: Vec<MergeInput<'a>>,
        damaged: &mut Vec<Damaged<'a>>,
    ) -> Option<MergedInputs<'a>> {
        if parts.len() <= 1 {
            return self.read(parts.pop()?, damaged);
        }
        let second = parts.split_off(parts.len() / 2);
        let first = self.all(parts, damaged);
        let second = self.all(second, damaged);
        match (first, second) {
            (Some(mut first), Some(second)) => {
                match first.profile.merge(&second.profile) {
                    Ok(()) => {
                        first.profiled_ns = first.profiled_ns.saturating_add(second.profiled_ns);
                        first.members.extend(second.members);
                    }
                    Err(error) => damaged.extend(second.members.into_iter().map(|member| {
                        let reason = error.clone().into();
                        Damaged { member, reason }
                    })),
                }
                Some(first)
            }
            (first, second) => first.or(second),
        }
    }

    fn read<'a>(
        &self,
        part: MergeInput<'a>,
        damaged: &mut Vec<Damaged<'a>>,
    ) -> Option<MergedInputs<'a>> {
        let (pid, mut profile, members) = match part {
            MergeInput::Own(pid, profile) => (pid, *profile, Vec::new()),
            MergeInput::Member(member) => match read(&member.profile_path(self.directory)) {
                Ok(profile) => (member.process.pid, profile, vec![member]),
                Err(reason) => {
                    damaged.push(Damaged { member, reason });
                    return None;
                }
            },
        };
        if self.labelled {
            let name = profile.meta.program.clone();
            profile.label_all(&[(PID, &pid.to_string()), (PROCESS, &name)]);
        }
        Some(MergedInputs {
            profiled_ns: profile.meta.duration_ns,
            profile,
            members,
        })
    }

    /// What we can't make sense of, somebody else may: it outlives the session.
    fn keep(&self, damaged: Damaged<'_>) -> Unmerged {
        let pid = damaged.member.process.pid;
        Unmerged {
            pid,
            reason: damaged.reason,
            kept: keep(
                &damaged.member.profile_path(self.directory),
                self.keep_in,
                pid,
            ),
        }
    }
}

fn read(path: &Path) -> Result<Profile, Obstacle> {
    let mut file = BufReader::new(open(path)?);
    Ok(rperf_format::pprof::read_own(&mut file)?)
}

/// The file of a process. What isn't one, such as a pipe, which would be waited for, is refused.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// Copies a process's file to a new one in `directory`, which may be another file system.
fn keep(path: &Path, directory: &Path, pid: i32) -> io::Result<PathBuf> {
    let mut file = open(path)?;
    let mut kept = tempfile::Builder::new()
        .prefix(&format!("rperf-{pid}-"))
        .suffix(".pb.gz")
        .tempfile_in(directory)?;
    without_write_signals(|| io::copy(&mut file, kept.as_file_mut()))?;
    let (_, path) = kept.keep().map_err(|error| error.error)?;
    Ok(path)
}

/// What is to be said of members that have left nothing, and had not said why.
pub fn silence(status: &Status) -> Vec<String> {
    let (running, gone) = status.silent();
    let running = match running {
        0 => None,
        1 => Some("1 process still ran; its samples are not in the profile".to_string()),
        running => Some(format!(
            "{running} processes still ran; their samples are not in the profile"
        )),
    };
    let gone = match gone {
        0 => None,
        1 => Some("1 process ended before its profile could be written".to_string()),
        gone => Some(format!(
            "{gone} processes ended before their profiles could be written"
        )),
    };
    running.into_iter().chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_id::ProcessId;
    use rperf_model::State;
    use rperf_model::test_profile::TestProfile;
    use std::fs;

    /// A second of one thread.
    fn lasting_a_second(profile: TestProfile) -> Profile {
        let stack = ["Object#work"];
        let mut profile = profile
            .with(&stack, 1, State::Running, 1_000_000_000)
            .profile;
        profile.meta.duration_ns = 1_000_000_000;
        profile
    }

    fn profile() -> Profile {
        lasting_a_second(TestProfile::wall())
    }

    fn cpu_profile() -> Profile {
        lasting_a_second(TestProfile::cpu())
    }

    fn member(pid: i32, begun_ns: u64, gc_count: u64, user_ns: u64) -> Member {
        let mut stats = ProcessStats::default();
        stats.ruby.gc_count = gc_count;
        stats.os.user_ns = user_ns;
        Member {
            process: ProcessId { pid, start: 0 },
            begun_ns,
            outcome: Outcome::Delivered(stats),
            ending: false,
        }
    }

    fn session(members: Vec<Member>) -> (tempfile::TempDir, Status) {
        let directory = tempfile::tempdir().expect("a directory");
        for member in &members {
            let mut profile = profile();
            profile.meta.program = format!("app {}", member.process.pid);
            let mut content = Vec::new();
            rperf_format::pprof::write(&profile, &mut content).expect("written");
            fs::write(member.profile_path(directory.path()), content).expect("a file");
        }
        let status = Status {
            members,
            ..Status::default()
        };
        (directory, status)
    }

    fn wall_ns(profile: &Profile) -> i64 {
        profile.sum(profile.schema.default_column())
    }

    #[test]
    fn one_process_has_no_labels_even_with_several_programs() {
        let (directory, status) = session(vec![member(7, 1, 2, 30), member(7, 2, 3, 40)]);
        let merged = merge(directory.path(), &status, None);
        let whole = merged.profile.expect("a profile");
        assert_eq!(merged.processes, 1);
        assert_eq!(whole.label_sets.len(), 1);
        assert_eq!(wall_ns(&whole), 2 * wall_ns(&profile()));
        let stats = merged.stats;
        assert_eq!((stats.ruby.gc_count, stats.os.user_ns), (5, 40));
    }

    #[test]
    fn several_processes_have_their_numbers_and_names_as_labels() {
        let members = (1..=5).map(|pid| member(pid, 10 + pid as u64, 1, 10));
        let (directory, status) = session(members.collect());
        let own = Some((99, profile()));
        let merged = merge(directory.path(), &status, own);
        let whole = merged.profile.expect("a profile");
        assert!(whole.check().is_ok());
        assert_eq!((merged.processes, merged.stats.os.user_ns), (6, 50));
        assert_eq!(wall_ns(&whole), 6 * wall_ns(&profile()));
        let sets: Vec<Vec<(&str, &str)>> = whole
            .label_sets
            .iter()
            .map(|set| {
                let text = |id| whole.strings.get(id);
                set.iter().map(|&(k, v)| (text(k), text(v))).collect()
            })
            .collect();
        assert!(sets.contains(&vec![("%pid", "3"), ("%process", "app 3")]));
        assert!(sets.contains(&vec![("%pid", "99"), ("%process", "")]));
        assert_eq!(whole.threads.len(), 6);
    }

    #[test]
    fn what_cannot_be_read_is_kept_and_said() {
        let (directory, status) = session(vec![
            member(1, 1, 1, 10),
            member(2, 2, 1, 10),
            member(3, 3, 1, 10),
        ]);
        fs::write(directory.path().join("2-2.pb.gz"), "no profile").expect("a file");
        fs::remove_file(directory.path().join("3-3.pb.gz")).expect("removed");
        let keep_in = tempfile::tempdir().expect("a directory");
        let merged = merge_and_keep(directory.path(), &status, None, keep_in.path());
        assert!(merged.profile.is_some());
        let stats = merged.stats;
        assert_eq!(
            (merged.processes, stats.ruby.gc_count, stats.os.user_ns),
            (1, 1, 10)
        );
        let lines: Vec<_> = merged.unmerged.iter().map(ToString::to_string).collect();
        let [kept, lost] = &lines[..] else {
            panic!("two lines: {lines:?}");
        };
        assert!(kept.starts_with("the profile of process 2 can't be merged (not a pprof"));
        let (_, path) = kept.split_once("; it is in ").expect("a path");
        assert!(Path::new(path).starts_with(keep_in.path()));
        assert_eq!(fs::read(path).expect("a file"), b"no profile");
        assert!(lost.starts_with("the profile of process 3") && lost.contains("it is lost: "));
    }

    #[test]
    fn nothing_but_damage_is_no_profile() {
        let (directory, status) = session(vec![member(1, 1, 0, 0)]);
        fs::remove_file(directory.path().join("1-1.pb.gz")).expect("removed");
        let merged = merge(directory.path(), &status, None);
        assert!(merged.profile.is_none() && merged.unmerged.len() == 1);
        assert_eq!(merged.processes, 0);
    }

    #[test]
    fn of_a_half_that_cannot_be_merged_all_is_kept_and_nothing_counted() {
        let members = (1..=4).map(|pid| member(pid, 10, 1, 10));
        let (directory, status) = session(members.collect());
        for pid in [3, 4] {
            let mut content = Vec::new();
            rperf_format::pprof::write(&cpu_profile(), &mut content).expect("written");
            fs::write(directory.path().join(format!("{pid}-10.pb.gz")), content).expect("a file");
        }
        let keep_in = tempfile::tempdir().expect("a directory");
        let merged = merge_and_keep(directory.path(), &status, None, keep_in.path());
        assert_eq!((merged.processes, merged.stats.os.user_ns), (2, 20));
        assert_eq!(merged.unmerged.len(), 2);
        assert_eq!(
            fs::read_dir(keep_in.path()).expect("a directory").count(),
            2
        );
    }

    #[test]
    fn a_number_that_is_given_out_again_is_another_process() {
        let mut again = member(7, 2, 1, 40);
        again.process.start = 5;
        let (directory, status) = session(vec![member(7, 1, 1, 30), again]);
        let merged = merge(directory.path(), &status, None);
        assert_eq!((merged.processes, merged.stats.os.user_ns), (2, 70));
        assert_eq!(merged.stats.profiled_ns, 2 * profile().meta.duration_ns);
    }

    #[test]
    fn nothing_is_nothing() {
        let merged = merge(Path::new("/no/such/directory"), &Status::default(), None);
        assert!(merged.profile.is_none() && merged.unmerged.is_empty());
        assert!(silence(&Status::default()).is_empty());
    }
}
