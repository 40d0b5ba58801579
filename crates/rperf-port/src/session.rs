//! What clients get of the VM, and the session that they have begun: it is there as long as one of
//! them needs it. On the port's thread.
//!
//! The program's own session comes first. Clients see it, and have no other one meanwhile.

use crate::connection::{Connection, MayWake, Wait};
use crate::copies::Copies;
use crate::facts;
use crate::memory;
use crate::profiling::{Phase, Profiling, encode};
use crate::questions::Questions;
use crate::refusals::{not_taken, other_runs};
use crate::request;
use crate::stacks;
use crate::state::Port;
use crate::step::{Holder, Holding};
use crate::task::{Message, ProfileUpTo, Question, Reply, Task, Why};
use crate::waits::Seen;
use crate::wake;
use rperf_protocol::ask::Sampling;
use rperf_protocol::hello::Session;
use rperf_protocol::json::written;
use rperf_protocol::message::profile_response;
use rperf_protocol::refusal::{Code, Refusal};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// What is said if the VM has taken too long.
const SILENT: &str = "the VM doesn't answer: no Ruby code runs just now, or a thread keeps the GVL in \
                      native code";

/// What is said if the VM has taken too long, and could be woken.
const STUCK: &str = "the VM doesn't answer: a thread keeps the GVL in native code, or the main thread \
                     waits in native code that can't be interrupted";

/// What is said if the VM has taken too long, and is at work on the answer.
const BUSY: &str =
    "the program has so many threads, or is so busy, that the answer wasn't ready in time";

/// Profiles that are under way at a time, until their clients have taken them in.
const MAX_PROFILES: usize = 4;

/// What the port knows of the VM.
pub struct Vm {
    port: &'static Port,
    questions: Questions,
    messages: Receiver<Message>,
    /// How the session samples that clients have begun, while it runs.
    session: Option<Sampling>,
    /// What the threads wait for whose stacks are being taken for this question.
    seen: Option<(Question, Seen)>,
    /// The function that tells who has the GVL, of the session that runs, or ran last.
    holder: Option<Holder>,
    /// Who had the GVL when stacks were asked for.
    held: Option<Holding>,
    copies: Copies,
}

impl Vm {
    /// Nothing has been asked.
    pub fn new(port: &'static Port, messages: Receiver<Message>) -> Self {
        Vm {
            port,
            questions: Questions::default(),
            messages,
            session: None,
            seen: None,
            holder: None,
            held: None,
            copies: Copies::default(),
        }
    }

    /// When there is something to do next.
    pub fn deadline(&self, clients: &[Connection]) -> Option<Instant> {
        let ends = clients.iter().filter_map(|client| match &client.wait {
            Some(Wait::Profile(profiling)) => match profiling.phase {
                Phase::Runs(until) => Some(until),
                _ => None,
            },
            _ => None,
        });
        ends.chain(self.questions.next())
            .chain(self.copies.next())
            .min()
    }

    /// How long it has been asked in vain.
    pub fn silence(&self) -> Duration {
        let elapsed = Task::ALL.map(|task| self.questions.elapsed(task));
        elapsed.into_iter().max().unwrap_or_default()
    }

    /// Has the VM asked for a sign of life.
    pub fn look(&mut self) {
        self.questions.ask(self.port, Task::Look);
    }

    /// All that can be done now for the clients.
    pub fn advance(&mut self, clients: &mut [Connection]) {
        while let Ok(message) = self.messages.try_recv() {
            self.take(message, clients);
        }
        for place in 0..clients.len() {
            self.advance_one(place, clients);
        }
        self.give_up(clients);
        self.copies.tidy(clients, &mut self.questions);
        if ![Task::Stacks, Task::Fibers]
            .map(|it| self.questions.is_open(it))
            .contains(&true)
        {
            self.seen = None;
        }
        if !clients.iter().any(wants_session) {
            self.questions.withdraw(Task::Begin);
        }
        if clients.is_empty() {
            self.questions.withdraw(Task::Look);
        }
        if !clients.iter().any(needs_session) && (self.session.is_some() || self.has_unknown()) {
            self.questions.ask(self.port, Task::End);
        }
        let may_wake = |task| clients.iter().any(|client| wakes_for(client, task));
        self.questions.ask_again(self.port, may_wake);
        let is_owed = |client: &Connection| matches!(client.wait, Some(Wait::Encoding));
        if self.port.owes() && !clients.iter().any(|it| is_owed(it) || it.wants().1) {
            self.port.owes_nothing();
        }
    }

    fn advance_one(&mut self, place: usize, clients: &mut [Connection]) {
        let is_needed = (0..clients.len()).any(|it| it != place && needs_session(&clients[it]));
        let client = &mut clients[place];
        let has_ended_asking = client.has_ended_asking();
        match &mut client.wait {
            Some(Wait::Answer(task, _)) => {
                if !self.questions.is_open(*task) {
                    self.held = holding(self.holder.as_ref());
                }
                self.questions.ask(self.port, *task);
            }
            Some(Wait::Heap { is_asked: true, .. }) => {}
            Some(Wait::Heap { force, .. }) => {
                let force = *force;
                self.copies
                    .begin(force, client, &mut self.questions, self.port);
            }
            Some(Wait::Snapshot(_)) => self.questions.ask(self.port, Task::Snapshot),
            Some(Wait::Session(sampling)) => {
                let sampling = *sampling;
                self.join_session(client, sampling);
            }
            Some(Wait::Profile(profiling)) => {
                let now = Instant::now();
                match profiling.phase {
                    Phase::Begins => {
                        if let Err(refusal) = self.begin_profile(profiling) {
                            client.refuse(&refusal);
                        }
                    }
                    Phase::Joins => self.questions.ask(self.port, Task::Snapshot),
                    Phase::Runs(until) if until <= now || has_ended_asking => {
                        profiling.phase = Phase::Ends;
                        let is_last = !profiling.is_of_program && !is_needed;
                        let task = if is_last { Task::End } else { Task::Snapshot };
                        self.questions.ask(self.port, task);
                    }
                    Phase::Runs(_) | Phase::Ends => {}
                }
            }
            Some(Wait::Encoding | Wait::News(_)) | None => {}
        }
    }

    /// The session that the program has begun.
    fn programs(&self) -> Option<Session> {
        let running = (self.port.program.session)().filter(|it| !it.beginner.is_clients());
        running.map(|it| it.session)
    }

    /// Whether a session runs that was begun for clients, by a helper that was ended before it said so.
    fn has_unknown(&self) -> bool {
        let running = (self.port.program.session)();
        running.is_some_and(|it| it.beginner.is_clients()) && !self.questions.is_open(Task::Begin)
    }

    fn join_session(&mut self, client: &mut Connection, sampling: Sampling) {
        if self.questions.is_open(Task::End) {
            return;
        }
        match self.session {
            Some(running) if running == sampling => {
                client.holds_session = true;
                client.answer_json(&written(&Session::from(sampling)));
            }
            Some(running) => client.refuse(&other_runs(&running.into())),
            None => match self.programs() {
                Some(session) => client.refuse(&other_runs(&session)),
                None => self.questions.ask_for_session(self.port, sampling),
            },
        }
    }

    fn begin_profile(&mut self, profiling: &mut Profiling) -> Result<(), Refusal> {
        if self.questions.is_open(Task::End) {
            return Ok(());
        }
        let programs = self.programs();
        if programs.as_ref().is_some_and(Session::is_trace) {
            let error =
                "the program's calls are being traced, and a trace isn't cut to a stretch of time";
            return Err(Refusal::new(Code::Tracing, error, "ask for /v1/snapshot"));
        }
        if self.session.is_none() && programs.is_none() {
            self.questions
                .ask_for_session(self.port, profiling.wanted.sampling);
            return Ok(());
        }
        profiling.is_of_program = self.session.is_none();
        profiling.phase = Phase::Joins;
        self.questions.ask(self.port, Task::Snapshot);
        Ok(())
    }

    fn take(&mut self, message: Message, clients: &mut [Connection]) {
        match message {
            Message::Taken(question, tids) => {
                let seen = self.seen.take().filter(|(of, _)| *of == question);
                let seen = seen.unwrap_or_else(|| (question, Seen::default()));
                self.seen.insert(seen).1.look(&tids);
            }
            Message::Reply(question, reply) => self.take_reply(question, reply, clients),
            Message::Holder(holder) => self.holder = Some(holder),
            Message::Ended(why, taken) => self.session_ended(why, &taken, clients),
            Message::Encoded(id, content) => {
                let mut clients = clients.iter_mut();
                if let Some(client) = clients.find(|client| client.id == id) {
                    self.send(client, content);
                }
            }
        }
    }

    fn take_reply(&mut self, question: Question, reply: Reply, clients: &mut [Connection]) {
        let elapsed = self.questions.elapsed(question.task);
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let is_woken = self.questions.is_woken(question.task);
        let is_its = self.questions.close(question);
        match (question.task, reply) {
            (task, Reply::Stacks(stacks)) => {
                let seen = self.seen.take().filter(|(of, _)| *of == question);
                let seen = seen.map_or_else(Seen::default, |(_, seen)| seen);
                let body = stacks::of_vm(&stacks, &seen, is_woken, elapsed_ns);
                answer(clients, task, &body);
            }
            (task, Reply::Memory(memory)) => {
                let body = memory::of_vm(memory, is_woken, elapsed_ns);
                answer(clients, task, &body);
            }
            (task, Reply::Failed(why)) if task.is_of_stacks() || task.is_of_memory() => {
                let body = of_system(task, &why, is_woken, elapsed_ns);
                answer(clients, task, &body);
            }
            (Task::Heap, reply) if is_its => self.copies.take(reply, clients),
            (Task::Heap, Reply::Forked(pid)) => self.copies.note(pid),
            (Task::Begin, Reply::Begun) => self.session_begun(clients),
            (Task::Begin, Reply::Failed(why)) => {
                let refusal = Refusal::new(Code::Failed, why, "try again");
                for client in clients.iter_mut().filter(|it| wants_session(it)) {
                    client.refuse(&refusal);
                }
            }
            (task @ (Task::End | Task::Snapshot), reply) if is_its => {
                if task == Task::End {
                    self.session = None;
                }
                for client in clients {
                    client.profile.is_woken = is_woken;
                    self.give_profile(client, task, &reply);
                }
            }
            // A session that couldn't begin is asked for again, or the program's is joined.
            _ => {}
        }
    }

    fn session_begun(&mut self, clients: &mut [Connection]) {
        let sampling = request::sampling();
        self.session = Some(sampling);
        for client in clients {
            match &mut client.wait {
                Some(Wait::Profile(it))
                    if it.phase == Phase::Begins && it.wanted.sampling == sampling =>
                {
                    it.run(None);
                }
                _ => {}
            }
        }
    }

    /// What the VM has said to `task`, for one client.
    fn give_profile(&mut self, client: &mut Connection, task: Task, reply: &Reply) {
        match (&mut client.wait, reply) {
            (Some(Wait::Snapshot(_)), Reply::Profile(taken)) if task == Task::Snapshot => {
                let taken = taken.clone();
                self.encode(client, taken, None);
            }
            (Some(Wait::Snapshot(_)), reply) if task == Task::Snapshot => {
                client.refuse(&not_taken(reply));
            }
            (Some(Wait::Profile(it)), reply) => match (it.phase, reply) {
                (Phase::Joins, Reply::Profile(taken)) if task == Task::Snapshot => {
                    it.run(Some(Arc::clone(&taken.profile)));
                }
                (Phase::Joins, Reply::NotNow) => it.phase = Phase::Begins,
                (Phase::Ends, Reply::Profile(taken)) => {
                    let base = it.base.take();
                    let taken = taken.clone();
                    self.encode(client, taken, base);
                }
                (Phase::Joins | Phase::Ends, reply) => client.refuse(&not_taken(reply)),
                _ => {}
            },
            _ => {}
        }
    }

    /// The program has ended the session.
    fn session_ended(&mut self, why: Why, taken: &ProfileUpTo, clients: &mut [Connection]) {
        self.session = None;
        self.questions.withdraw(Task::End);
        for client in clients {
            client.holds_session = false;
            if let Some(Wait::Profile(it)) = &mut client.wait
                && matches!(it.phase, Phase::Runs(_) | Phase::Ends)
            {
                let base = it.base.take();
                client.profile.ended = Some(why.text());
                self.encode(client, taken.clone(), base);
            }
        }
    }

    fn encode(
        &self,
        client: &mut Connection,
        taken: ProfileUpTo,
        base: Option<Arc<rperf_model::Profile>>,
    ) {
        let wanted = client.measure();
        client.wait = Some(Wait::Encoding);
        let comment = client.profile.names_process.then(facts::process);
        encode(self.port, client.id, taken, base, comment, wanted);
    }

    fn send(&self, client: &mut Connection, content: Result<Vec<u8>, String>) {
        match content {
            Ok(content) => {
                let ended = client.profile.ended.take();
                let is_woken = std::mem::take(&mut client.profile.is_woken);
                let response = profile_response(&content, ended, is_woken, client.closes());
                client.answer_profile(response);
            }
            Err(why) => client.refuse(&Refusal::new(Code::Failed, why, "try again")),
        }
    }

    /// Which thread has kept the GVL for so long, if one has since stacks were asked for.
    fn kept(&self, elapsed: Duration) -> Option<String> {
        let held = self.held?;
        let is_kept = holding(self.holder.as_ref()) == Some(held);
        let holder = is_kept.then(|| facts::gvl_holder(held.tid as i32))?;
        Some(format!("the VM doesn't answer: {}", holder.text(elapsed)))
    }

    /// Why the VM has taken too long for this.
    fn lateness(&self, clients: &[Connection], task: Task) -> String {
        if self.questions.is_at_work(task) {
            return BUSY.into();
        }
        let kept = self.kept(self.questions.elapsed(task));
        kept.unwrap_or_else(|| why(clients, task).into())
    }

    /// The VM has taken too long for what can be done without it, or be asked for again.
    fn give_up(&mut self, clients: &mut [Connection]) {
        for task in Task::for_which_the_system_answers() {
            if self.questions.is_late(task) {
                let is_woken = self.questions.is_woken(task);
                let elapsed = self.questions.elapsed(task);
                let why = self.lateness(clients, task);
                self.questions.withdraw(task);
                let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
                let body = of_system(task, &why, is_woken, elapsed_ns);
                answer(clients, task, &body);
            }
        }
        if self.questions.is_late(Task::Heap) {
            let why = self.lateness(clients, Task::Heap);
            // The copy may be being made: then it answers.
            if self.questions.withdraw(Task::Heap) {
                let refusal = Refusal::new(Code::Silent, why, "try again");
                self.copies.take(Reply::Refused(refusal), clients);
            }
        }
        if self.questions.is_late(Task::Snapshot) {
            let why = why(clients, Task::Snapshot);
            let waits = |client: &Connection| matches!(client.wait, Some(Wait::Snapshot(_)));
            for client in clients.iter_mut().filter(|it| waits(it)) {
                let hint = "ask for /v1/stacks, or try again";
                client.refuse(&Refusal::new(Code::Silent, why, hint));
            }
            let wants = |client: &Connection| match &client.wait {
                Some(Wait::Profile(it)) => matches!(it.phase, Phase::Joins | Phase::Ends),
                _ => false,
            };
            if !clients.iter().any(wants) {
                self.questions.withdraw(Task::Snapshot);
            }
        }
    }
}

/// Whether there may be one profile more.
pub fn check_room(clients: &[Connection]) -> Result<(), Refusal> {
    let profiles = clients.iter().filter(|client| client.holds_profile());
    match profiles.count() < MAX_PROFILES {
        true => Ok(()),
        false => {
            let error = format!("{MAX_PROFILES} profiles are under way already");
            Err(Refusal::new(Code::Busy, error, "end one of them, or wait"))
        }
    }
}

/// Whether the session that clients have begun must go on for it.
fn needs_session(client: &Connection) -> bool {
    client.holds_session
        || match &client.wait {
            Some(Wait::Session(_)) => true,
            Some(Wait::Profile(profiling)) => !profiling.is_of_program,
            _ => false,
        }
}

fn wants_session(client: &Connection) -> bool {
    match &client.wait {
        Some(Wait::Session(_)) => true,
        Some(Wait::Profile(profiling)) => profiling.phase == Phase::Begins,
        _ => false,
    }
}

fn holding(holder: Option<&Holder>) -> Option<Holding> {
    holder.and_then(|holder| holder())
}

/// Why the VM says nothing to `task`.
fn why(clients: &[Connection], task: Task) -> &'static str {
    match wake::is_possible() && clients.iter().any(|client| wakes_for(client, task)) {
        true => STUCK,
        false => SILENT,
    }
}

/// Whether `client` waits for `task`, and the VM may be woken for it.
fn wakes_for(client: &Connection, task: Task) -> bool {
    match client.wait {
        Some(Wait::Answer(wanted, MayWake(may))) => may && task == wanted,
        Some(Wait::Heap {
            may_wake: MayWake(may),
            is_asked: true,
            ..
        }) => may && task == Task::Heap,
        Some(Wait::Snapshot(MayWake(may))) => may && task == Task::Snapshot,
        _ => false,
    }
}

/// The answer without the VM.
fn of_system(task: Task, why: &str, is_woken: bool, elapsed_ns: u64) -> String {
    match task.is_of_memory() {
        true => memory::of_system(why, is_woken, elapsed_ns),
        false => stacks::of_system(why, is_woken, elapsed_ns),
    }
}

fn answer(clients: &mut [Connection], task: Task, body: &str) {
    for client in clients {
        if matches!(client.wait, Some(Wait::Answer(wanted, _)) if wanted == task) {
            client.answer_json(body);
        }
    }
}
