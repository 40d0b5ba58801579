//! A look at a program for what grows in it: its objects by class, its RSS, and the sites that its session
//! knows. On the command's thread.

use crate::failure::AskError;
use crate::heap::{HeapError, How, take};
use crate::patience::SNAPSHOT;
use crate::process::{resident, start_of_stack};
use crate::program::Program;
use crate::take::read;
use rperf_format::Look;
use rperf_heap::answer::Asked;
use rperf_heap::file::{HeapFacts, HeapFile};
use rperf_report::in_use::{InUse, SitesInUse};
use rperf_session::process_id::ProcessId;
use std::collections::BTreeSet;

/// Classes of a look at most. Those with less have some hundred bytes each, which is no growth.
const CLASSES: usize = 5000;

/// A program that is looked at again and again.
pub struct Watched {
    process: ProcessId,
    /// What tells the program from another one in its process, if the system tells.
    began: Option<u64>,
}

impl Watched {
    /// The program in this process.
    pub fn new(process: ProcessId) -> Self {
        Watched {
            process,
            began: start_of_stack(process.pid),
        }
    }

    /// Whether it is still there, and the same.
    pub fn is_there(&self) -> bool {
        self.process.is_alive() && start_of_stack(self.process.pid) == self.began
    }

    /// Whether its process has ended, or is about to: then it is there for a moment longer, without memory.
    pub fn has_ended(&self) -> bool {
        let has_no_memory = || self.began.is_some() && start_of_stack(self.process.pid).is_none();
        !self.process.is_alive() || has_no_memory()
    }

    /// Looks at it.
    pub fn look(&self, force: bool, may_wake: bool) -> Result<(Look, HeapFacts), HeapError> {
        let how = How {
            force,
            may_wake,
            asked: Asked::default(),
            classes: CLASSES,
        };
        let file = take(self.process, how)?;
        // Where a session follows objects, the copy has told of them.
        let sites = match file.sites.is_some() {
            true => self.sites(may_wake)?,
            false => None,
        };
        let look = Look {
            rss_bytes: resident(self.process.pid),
            sites,
            ..look_of(&file)
        };
        Ok((look, file.facts))
    }

    /// The sites that its session knows; `None` if that has ended meanwhile.
    fn sites(&self, may_wake: bool) -> Result<Option<SitesInUse>, HeapError> {
        let mut program = Program::connect(self.process).map_err(HeapError::Failure)?;
        let reply = match program.snapshot(may_wake, SNAPSHOT) {
            Ok(reply) => reply,
            Err(AskError::Refused(it)) if it.code.lacks_session() => return Ok(None),
            Err(error) => return Err(HeapError::Failure(error.into())),
        };
        let profile = read(&reply.body).map_err(HeapError::Failure)?;
        Ok(SitesInUse::of(&profile))
    }
}

/// What a kept look has of classes: the objects that something refers to.
pub fn look_of(file: &HeapFile) -> Look {
    let classes = file.classes.iter().map(|it| {
        let in_use = InUse {
            objects: it.objects.saturating_sub(it.unreferenced.objects),
            bytes: it.bytes.saturating_sub(it.unreferenced.bytes),
        };
        (it.name.clone(), in_use)
    });
    let of_all = |all: u64, unreferenced: u64| all.saturating_sub(unreferenced);
    Look {
        time_ns: file.facts.time_ns,
        classes: classes.collect(),
        total: InUse {
            objects: of_all(file.total.objects, file.unreferenced.objects),
            bytes: of_all(file.total.bytes, file.unreferenced.bytes),
        },
        ..Look::default()
    }
}

/// What kept looks have of classes, and how many classes are left out: a file that lacks classes with few bytes
/// doesn't tell whether there were none of them.
pub fn looks_of(files: &[HeapFile]) -> (Vec<Look>, usize) {
    let mut looks: Vec<Look> = files.iter().map(look_of).collect();
    let cut = files.iter().filter(|it| it.lacks_classes());
    let known: Vec<BTreeSet<&str>> = cut
        .map(|file| file.classes.iter().map(|it| &*it.name).collect())
        .collect();
    let mut left_out = BTreeSet::new();
    for look in &mut looks {
        look.classes.retain(|(name, _)| {
            let is_known = known.iter().all(|it| it.contains(&**name));
            if !is_known {
                left_out.insert(name.clone());
            }
            is_known
        });
    }
    (looks, left_out.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_heap::file::{ClassRow, Sum};
    use std::io::Read;

    #[test]
    fn garbage_is_left_out() {
        let row = ClassRow {
            name: "Order".into(),
            objects: 7,
            bytes: 280,
            unreferenced: Sum {
                objects: 2,
                bytes: 80,
            },
            ..ClassRow::default()
        };
        let file = HeapFile {
            classes: vec![row],
            ..HeapFile::default()
        };
        let left = InUse {
            objects: 5,
            bytes: 200,
        };
        assert_eq!(look_of(&file).classes, [("Order".into(), left)]);
    }

    #[test]
    fn classes_that_a_file_may_have_cut_off_are_left_out() {
        let file = |names: &[&str], total: u64| HeapFile {
            total: Sum {
                objects: total,
                bytes: 40 * total,
            },
            unreferenced: Sum {
                objects: 1,
                bytes: 40,
            },
            classes: names
                .iter()
                .map(|it| ClassRow {
                    name: (*it).into(),
                    objects: 1,
                    bytes: 40,
                    ..ClassRow::default()
                })
                .collect(),
            ..HeapFile::default()
        };
        let names = |looks: &[Look]| -> Vec<Vec<String>> {
            let names = |look: &Look| look.classes.iter().map(|it| it.0.clone()).collect();
            looks.iter().map(names).collect()
        };
        let (looks, left_out) =
            looks_of(&[file(&["A", "B"], 7), file(&["A"], 1), file(&["A", "C"], 7)]);
        assert_eq!(
            (names(&looks), left_out),
            (vec![vec!["A".to_string()]; 3], 2)
        );
        let total = InUse {
            objects: 6,
            bytes: 240,
        };
        assert_eq!(looks[0].total, total);
        let (looks, left_out) = looks_of(&[file(&["A", "B"], 2), file(&["A"], 1)]);
        assert_eq!((looks[0].classes.len(), left_out), (2, 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn another_program_in_the_same_process_is_another_one() {
        let spawn = |script: &str| {
            let mut command = std::process::Command::new("/bin/sh");
            command.args(["-c", script]);
            command.stdin(std::process::Stdio::piped());
            command.stdout(std::process::Stdio::piped());
            command.spawn().expect("a child")
        };
        let mut child = spawn("echo; read line; exec sleep 60");
        // From then on it is the shell.
        let mut line = [0];
        let out = child.stdout.as_mut().expect("its output");
        out.read_exact(&mut line).expect("a line");
        let watched = Watched::new(ProcessId::named(child.id() as i32));
        assert!(watched.is_there());
        drop(child.stdin.take());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while watched.is_there() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let found = (watched.is_there(), watched.has_ended());
        let watched = Watched::new(ProcessId::named(child.id() as i32));
        child.kill().expect("killed");
        while watched.is_there() && std::time::Instant::now() < until {}
        // Its parent hasn't waited for it yet.
        let ended = (watched.is_there(), watched.has_ended());
        child.wait().expect("waited for");
        assert_eq!((found, ended), ((false, false), (false, true)));
    }
}
