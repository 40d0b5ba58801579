//! Copies of the process that send the graph of all objects: one at a time, and not one after the other. On
//! the port's thread.

pub mod handed_over;
pub(crate) mod room;

use crate::connection::{Connection, Wait};
use crate::questions::Questions;
use crate::state::Port;
use crate::task::{Reply, Task};
use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use rperf_protocol::refusal::{Code, Refusal};
use rperf_session::kernel_text::name_and_fields;
use std::fs::OpenOptions;
use std::io::Read;
use std::time::{Duration, Instant};

/// How long after the begin of one there is no other.
const PAUSE: Duration = Duration::from_secs(10);

/// A copy ends itself before.
const LIFE: Duration = Duration::from_secs(40);

/// Bytes of `/proc/PID/stat` at most.
const MOST: u64 = 4096;

/// Where the size of the address space is among the fields of `/proc/PID/stat` behind the name: proc(5).
const VSIZE: usize = 20;

/// How often it is looked whether a copy has ended whose parent this process is.
const LOOK: Duration = Duration::from_millis(20);

/// The copy that was made last.
#[derive(Default)]
pub struct Copies {
    pid: Option<i32>,
    began: Option<Instant>,
    /// The kernel has made this process its parent: it is the first of a container, or takes such
    /// processes. Then nobody else takes it when it has ended.
    is_ours: bool,
}

/// Whether a process runs. One that ends lets go of its memory first; it may have ended without that anybody
/// has taken it from the kernel.
fn runs(pid: i32) -> bool {
    let file = OpenOptions::new()
        .read(true)
        .open(format!("/proc/{pid}/stat"));
    let mut text = String::new();
    let read = file.and_then(|file| file.take(MOST).read_to_string(&mut text));
    let fields = name_and_fields(&text).map_or("", |(_, fields)| fields);
    let has_memory = fields.split(' ').nth(VSIZE).is_some_and(|it| it != "0");
    read.is_ok() && has_memory && !fields.starts_with(['Z', 'X'])
}

/// Whether it waits for a copy of the process, for which the VM was asked.
fn waits(client: &Connection) -> bool {
    matches!(client.wait, Some(Wait::Heap { is_asked: true, .. }))
}

impl Copies {
    /// Has the graph of all objects sent to a client, or refuses it.
    pub fn begin(
        &mut self,
        force: bool,
        client: &mut Connection,
        questions: &mut Questions,
        port: &Port,
    ) {
        if questions.is_open(Task::Heap) {
            let error = "another client waits for a snapshot of its objects";
            return client.refuse(&Refusal::new(Code::TooSoon, error, "ask later"));
        }
        if let Err(refusal) = self.check(force) {
            return client.refuse(&refusal);
        }
        if let Err(error) = handed_over::put(client.socket()) {
            let error = format!("the connection can't be handed over: {error}");
            return client.refuse(&Refusal::new(Code::Failed, error, "ask later"));
        }
        if let Some(Wait::Heap { is_asked, .. }) = &mut client.wait {
            *is_asked = true;
        }
        questions.ask(port, Task::Heap);
    }

    /// What has become of the copy, for the client that waits for it.
    pub fn take(&mut self, reply: Reply, clients: &mut [Connection]) {
        handed_over::take_back();
        if let Reply::Forked(pid) = reply {
            self.note(pid);
        }
        let Some(client) = clients.iter_mut().find(|it| waits(it)) else {
            return;
        };
        match reply {
            Reply::Forked(_) => client.hand_over(),
            Reply::Refused(refusal) => client.refuse(&refusal),
            Reply::Failed(why) => client.refuse(&Refusal::new(Code::Failed, why, "try again")),
            _ => {}
        }
    }

    /// Withdraws what nobody waits for any more, unless the copy is being made, and takes a copy that has ended.
    pub fn tidy(&mut self, clients: &[Connection], questions: &mut Questions) {
        self.reap();
        let is_in_vain = questions.is_open(Task::Heap) && !clients.iter().any(waits);
        if is_in_vain && questions.withdraw(Task::Heap) {
            handed_over::take_back();
        }
    }

    /// Why there can't be one now; `force`: however little memory is free, and however soon after the last one.
    fn check(&mut self, force: bool) -> Result<(), Refusal> {
        let elapsed = self.began.map(|it| it.elapsed());
        let refused = |code, error: &str, hint: &str| Err(Refusal::new(code, error, hint));
        if self.is_alive() {
            return refused(
                Code::TooSoon,
                "a snapshot of its objects is under way already",
                "wait for it",
            );
        }
        if !force && elapsed.is_some_and(|it| it < PAUSE) {
            let seconds = PAUSE.as_secs();
            let error = format!("the last snapshot of its objects is less than {seconds} s old");
            return refused(
                Code::TooSoon,
                &error,
                "wait a moment, or give --force: each one stops the program for a moment",
            );
        }
        if !force && let Some(lack) = room::lack() {
            let error = format!(
                "there may be too little memory for a copy of the program: {} MB are free, and {} MB should be",
                lack.free >> 20,
                lack.needed >> 20
            );
            let hint = match lack.ends_together {
                true => {
                    "--force makes it all the same; the system may end the whole container (memory.oom.group)"
                }
                false => "--force makes it all the same; it is the first process to be ended",
            };
            return refused(Code::Busy, &error, hint);
        }
        Ok(())
    }

    /// Notes that the copy `pid` was made.
    pub fn note(&mut self, pid: i32) {
        (self.pid, self.began, self.is_ours) = (Some(pid), Some(Instant::now()), true);
        self.reap();
    }

    /// Takes it from the kernel if it has ended, and this process is its parent.
    fn reap(&mut self) {
        let Some(pid) = self.pid.filter(|_| self.is_ours) else {
            return;
        };
        match waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)) {
            Ok(nix::sys::wait::WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
            Ok(_) => (self.pid, self.is_ours) = (None, false),
            Err(_) => self.is_ours = false,
        }
    }

    /// When it is looked again whether it has ended.
    pub fn next(&self) -> Option<Instant> {
        self.is_ours.then(|| Instant::now() + LOOK)
    }

    fn is_alive(&mut self) -> bool {
        self.reap();
        let is_young = self.began.is_some_and(|it| it.elapsed() < LIFE);
        let pid = self.pid.filter(|_| is_young);
        pid.is_some_and(runs)
    }
}
