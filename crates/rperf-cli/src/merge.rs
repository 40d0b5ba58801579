//! Makes one profile of those that the processes of a session have left in its
//! folder. Called by `launch`, and through the extension for a session that a
//! program started. Any thread.

use crate::figures::ProcessFigures;
use crate::os::OsFigures;
use crate::status::{Member, Outcome, Status};
use rperf_model::Profile;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Label that holds a process's number.
const PID: &str = "%pid";
/// Label that holds its name.
const NAME: &str = "%process";

/// What the processes of a session have left.
#[derive(Debug, Default)]
pub struct Merged {
    /// All of it in one; `None` if there is nothing.
    pub profile: Option<Profile>,
    /// How many processes are in it.
    pub processes: usize,
    /// Their figures.
    pub figures: ProcessFigures,
    /// What the user should know: lines.
    pub remarks: Vec<String>,
}

/// A profile that is to become a part of the whole.
enum Part<'a> {
    Own(i32, Box<Profile>),
    Member(&'a Member),
}

impl Part<'_> {
    fn pid(&self) -> i32 {
        match self {
            Part::Own(pid, _) => *pid,
            Part::Member(member) => member.process.pid,
        }
    }
}

/// Merges what the members have delivered into `own`, the profile of the calling
/// process with its number, if that belongs to the session.
pub fn merge(folder: &Path, status: &Status, own: Option<(i32, Profile)>) -> Merged {
    let delivered = status
        .members
        .iter()
        .filter(|member| matches!(member.outcome, Outcome::Delivered(_)));
    let own = own.map(|(pid, profile)| Part::Own(pid, Box::new(profile)));
    let parts: Vec<Part<'_>> = own
        .into_iter()
        .chain(delivered.clone().map(Part::Member))
        .collect();
    let processes = parts.iter().map(Part::pid).collect::<BTreeSet<_>>().len();
    let mut merged = Merged {
        processes,
        figures: sum(delivered),
        ..Merged::default()
    };
    let merging = Merging {
        folder,
        labelled: processes > 1,
    };
    let mut damaged = Vec::new();
    merged.profile = merging.all(parts, &mut damaged);
    // One line tells as much as many.
    let other = damaged.len().saturating_sub(1);
    if let Some(first) = damaged.into_iter().next() {
        let more = match other {
            0 => String::new(),
            other => format!("; so it is with {other} more"),
        };
        let line = format!("the profile of a process is lost: {first}{more}");
        merged.remarks.push(line);
    }
    merged
}

/// The system counts on through an exec; Ruby begins anew.
fn sum<'a>(delivered: impl Iterator<Item = &'a Member>) -> ProcessFigures {
    let mut sum = ProcessFigures::default();
    let mut last: BTreeMap<i32, OsFigures> = BTreeMap::new();
    let mut is_first = true;
    for member in delivered {
        if let Outcome::Delivered(figures) = member.outcome {
            last.insert(member.process.pid, figures.os);
            if std::mem::take(&mut is_first) {
                sum.ruby = figures.ruby;
            } else {
                sum.ruby.add(figures.ruby);
            }
        }
    }
    for os in last.into_values() {
        sum.os.add(os);
    }
    sum
}

struct Merging<'a> {
    folder: &'a Path,
    labelled: bool,
}

impl Merging<'_> {
    /// In halves: each row is moved log n times, not n times.
    fn all(&self, mut parts: Vec<Part<'_>>, damaged: &mut Vec<String>) -> Option<Profile> {
        if parts.len() <= 1 {
            return self.read(parts.pop()?, damaged);
        }
        let second = parts.split_off(parts.len() / 2);
        let first = self.all(parts, damaged);
        let second = self.all(second, damaged);
        match (first, second) {
            (Some(mut first), Some(second)) => {
                if let Err(error) = first.merge(&second) {
                    damaged.push(error.to_string());
                }
                Some(first)
            }
            (first, second) => first.or(second),
        }
    }

    fn read(&self, part: Part<'_>, damaged: &mut Vec<String>) -> Option<Profile> {
        let pid = part.pid();
        let mut profile = match part {
            Part::Own(_, profile) => *profile,
            Part::Member(member) => match read(&self.folder.join(member.file_name())) {
                Ok(profile) => profile,
                Err(error) => {
                    damaged.push(error);
                    return None;
                }
            },
        };
        if self.labelled {
            let name = profile.meta.program.clone();
            profile.label_all(&[(PID, &pid.to_string()), (NAME, &name)]);
        }
        Some(profile)
    }
}

fn read(path: &Path) -> Result<Profile, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    rperf_format::pprof::read(&mut BufReader::new(file)).map_err(|error| error.to_string())
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
    use crate::stat::tests::profile;
    use std::fs;

    fn member(pid: i32, begun_ns: u64, gc_count: u64, user_ns: u64) -> Member {
        let mut figures = ProcessFigures::default();
        figures.ruby.gc_count = gc_count;
        figures.os.user_ns = user_ns;
        Member {
            process: ProcessId { pid, start: 0 },
            begun_ns,
            outcome: Outcome::Delivered(figures),
            replaced: false,
        }
    }

    fn session(members: Vec<Member>) -> (tempfile::TempDir, Status) {
        let folder = tempfile::tempdir().expect("a folder");
        for member in &members {
            let mut profile = profile();
            profile.meta.program = format!("app {}", member.process.pid);
            let mut content = Vec::new();
            rperf_format::pprof::write(&profile, &mut content).expect("written");
            fs::write(folder.path().join(member.file_name()), content).expect("a file");
        }
        let status = Status {
            members,
            ..Status::default()
        };
        (folder, status)
    }

    fn weight_ns(profile: &Profile) -> u64 {
        rperf_model::Totals::of(profile).weight_ns
    }

    #[test]
    fn one_process_has_no_labels_even_with_several_programs() {
        let (folder, status) = session(vec![member(7, 1, 2, 30), member(7, 2, 3, 40)]);
        let merged = merge(folder.path(), &status, None);
        let whole = merged.profile.expect("a profile");
        assert_eq!(merged.processes, 1);
        assert_eq!(whole.label_sets.len(), 1);
        assert_eq!(weight_ns(&whole), 2 * weight_ns(&profile()));
        let figures = merged.figures;
        assert_eq!((figures.ruby.gc_count, figures.os.user_ns), (5, 40));
    }

    #[test]
    fn several_processes_have_their_numbers_and_names_as_labels() {
        let members = (1..=5).map(|pid| member(pid, 10 + pid as u64, 1, 10));
        let (folder, status) = session(members.collect());
        let own = Some((99, profile()));
        let merged = merge(folder.path(), &status, own);
        let whole = merged.profile.expect("a profile");
        assert!(whole.check().is_ok());
        assert_eq!((merged.processes, merged.figures.os.user_ns), (6, 50));
        assert_eq!(weight_ns(&whole), 6 * weight_ns(&profile()));
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
    fn what_cannot_be_read_is_said_once() {
        let (folder, status) = session(vec![
            member(1, 1, 0, 0),
            member(2, 2, 0, 0),
            member(3, 3, 0, 0),
        ]);
        fs::write(folder.path().join("2-2.pb.gz"), "no profile").expect("a file");
        fs::remove_file(folder.path().join("3-3.pb.gz")).expect("removed");
        let merged = merge(folder.path(), &status, None);
        assert!(merged.profile.is_some());
        let [line] = &merged.remarks[..] else {
            panic!("one line: {:?}", merged.remarks);
        };
        assert!(line.contains("is lost: ") && line.ends_with("so it is with 1 more"));
    }

    #[test]
    fn nothing_is_nothing() {
        let merged = merge(Path::new("/no/such/folder"), &Status::default(), None);
        assert!(merged.profile.is_none() && merged.remarks.is_empty());
        assert!(silence(&Status::default()).is_empty());
    }
}
