//! The stacks of all threads, for the port's clients. On the helper, with the GVL, a little at a time:
//! other threads run in between, so a stack is of the moment at which its turn came.

use super::giving_way;
use crate::interrupts::let_others_run;
use crate::native;
use crate::ruby::frames::RubyVm;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::resolve;
use crate::ruby::thread_names;
use crate::ruby::threads::RubyThread;
use crate::running::roots;
use crate::sampling::step;
use crate::text;
use crate::without_gvl::try_without_gvl;
use magnus::{Error, RModule, RString, Ruby, Value, prelude::*};
use rperf_model::shown_line;
use rperf_port::request;
use rperf_port::stacks::frames::FrameName;
use rperf_port::stacks::list::{Stack, StackList};
use rperf_port::stacks::{Stacks, ThreadStack, Waiting};
use rperf_port::task::Question;
use rperf_tracing::TraceVm;
use rperf_vm::{FrameWord, Gvl, JobId};
use rustc_hash::FxHashMap;
use std::thread;
use std::time::{Duration, Instant};

/// Frames of a stack; those beyond are left out at its root.
const LIMIT: usize = 1000;

/// For how long the GVL is held at a stretch at first; and at most, as [`Turns`] has it.
const STRETCH: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(2);

/// So much of the time that the answer has taken so far is a turn, from when that is longer: beside
/// threads that compute, each turn waits for those.
const PART: u32 = 200;

/// What Ruby says of a thread: its name, status, native number and, if that is asked for, the line of
/// its topmost frame.
type Facts = (Option<RString>, RString, Option<i32>, Option<i64>);

/// Takes them. `holder` is the object of the thread that had the GVL when the `question` came.
pub fn take(
    ruby: &Ruby,
    helper: RModule,
    question: Question,
    holder: usize,
) -> Result<Stacks, Error> {
    let gvl = &mut native::gvl(ruby);
    let mut taking = Taking::new(helper, question, holder);
    let taken = taking.take(ruby, gvl);
    for job in taking.kept {
        roots::take_named(gvl, job);
    }
    taken?;
    let (stacks, left_out) = taking.stacks.finish();
    Ok(Stacks {
        threads: taking.threads,
        stacks,
        left_out,
        names: taking.names,
        ractors: helper.funcall("other_ractors", ())?,
        fibers: None,
    })
}

struct Taking {
    helper: RModule,
    question: Question,
    holder: usize,
    threads: Vec<ThreadStack>,
    /// The port has been told of so many of them.
    told: usize,
    stacks: StackList,
    /// Each frame once, with its place here.
    frames: Vec<FrameWord>,
    places: FxHashMap<FrameWord, u32>,
    /// What keeps them alive, and where they are.
    kept: Vec<JobId>,
    names: Vec<FrameName>,
    /// Room for a stack and its lines.
    stack: Vec<FrameWord>,
    lines: Vec<u32>,
}

impl Taking {
    fn new(helper: RModule, question: Question, holder: usize) -> Self {
        Taking {
            helper,
            question,
            holder,
            threads: Vec::new(),
            told: 0,
            stacks: StackList::default(),
            frames: Vec::new(),
            places: FxHashMap::default(),
            kept: Vec::new(),
            names: Vec::new(),
            stack: vec![0; LIMIT],
            lines: vec![0; LIMIT],
        }
    }

    fn take(&mut self, ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(), Error> {
        let mut turns = Turns::begin();
        let own = RubyThread::current(gvl).object();
        let live = LiveThreads::list(ruby, gvl)?;
        for place in 0..live.len() {
            if turns.rest().is_zero() {
                self.tell();
                turns.let_all_run(gvl)?;
                if !request::is_wanted(self.question) {
                    return Ok(());
                }
            }
            if let Some((thread, object)) = live.at(place)
                && thread.object() != own
            {
                self.take_one(gvl, thread, object)?;
            }
        }
        self.tell();
        while resolve::name_frames(gvl, turns.rest(), |_, named| {
            self.names.extend(named.map(|(_, found)| FrameName {
                path: (!resolve::is_of_c(&found)).then_some(found.path),
                name: found.name,
            }));
            self.frames.get(self.names.len()).copied()
        }) {
            turns.let_all_run(gvl)?;
            if !request::is_wanted(self.question) {
                break;
            }
        }
        Ok(())
    }

    /// Has the port look what the threads wait for whose stacks were taken just now.
    fn tell(&mut self) {
        let threads = self.threads[self.told..].iter();
        request::note_taken(self.question, threads.filter_map(|it| it.tid).collect());
        self.told = self.threads.len();
    }

    /// `object` is that of `thread`, and on the stack to the end: `facts` gets it.
    fn take_one(
        &mut self,
        gvl: &Gvl<'_>,
        thread: RubyThread<'_>,
        object: Value,
    ) -> Result<(), Error> {
        let vm = RubyVm::new(gvl);
        let depth = thread.backtrace(vm, &mut self.stack, &mut self.lines);
        let known = self.frames.len();
        let frames = self.stack[..depth].iter().zip(&self.lines);
        let mut frames: Stack = frames
            .map(|(&frame, &line)| {
                let place = *self.places.entry(frame).or_insert_with(|| {
                    self.frames.push(frame);
                    self.frames.len() as u32 - 1
                });
                (place, shown_line((line as i32).into()))
            })
            .collect();
        // Before anything allocates.
        if self.frames.len() > known {
            self.kept
                .extend(roots::keep_words_until_named(gvl, &self.frames[known..]));
        }
        // The VM gives none for a method of C, which needs none, nor in compiled code.
        let lacks_line =
            frames.first().is_some_and(|&(_, line)| line == 0) && !vm.is_c_method(self.stack[0]);
        let facts: Option<Facts> = self.helper.funcall("facts", (object, lacks_line))?;
        if let Some((name, status, tid, line)) = facts {
            if let (Some(first), Some(line)) = (frames.first_mut(), line) {
                first.1 = shown_line(line);
            }
            let stack = self.stacks.add(frames);
            let has_let_go = giving_way::has_let_go(gvl, thread.object() as usize);
            let known = step::facts(gvl, thread);
            let off_gvl = known.as_ref().and_then(|it| it.off_gvl);
            // What it waited for is there, and it waits for the GVL.
            let is_ready = has_let_go || off_gvl.is_some_and(|it| it.is_ready);
            self.threads.push(ThreadStack {
                name: match name {
                    Some(name) => text::content(name),
                    None => thread_names::of_main(gvl, thread)
                        .unwrap_or_default()
                        .into(),
                },
                status: match is_ready {
                    true => "run".into(),
                    false => text::content(status),
                },
                tid,
                has_gvl: thread.object() as usize == self.holder,
                waiting: off_gvl.filter(|_| !has_let_go).map(|it| Waiting {
                    ns: it.ns,
                    or_longer: it.or_longer,
                }),
                profile_thread: known.as_ref().map(|it| it.number),
                labels: known.map(|it| it.labels).unwrap_or_default(),
                stack,
            });
        }
        Ok(())
    }
}

/// When other threads are to run.
struct Turns {
    began: Instant,
    /// The present turn.
    turn: Instant,
    /// How long it may be.
    limit: Duration,
}

impl Turns {
    /// The first turn begins.
    fn begin() -> Self {
        let now = Instant::now();
        Turns {
            began: now,
            turn: now,
            limit: STRETCH,
        }
    }

    /// What is left of the turn.
    fn rest(&self) -> Duration {
        self.limit.saturating_sub(self.turn.elapsed())
    }

    /// Lets those run that wait for the GVL, and those that have waited for something else and haven't
    /// got a CPU since: where the port's thread is at work beside this one, there may be none left for
    /// them. Then the next turn begins.
    fn let_all_run(&mut self, gvl: &mut Gvl<'_>) -> Result<(), Error> {
        if try_without_gvl(thread::yield_now).is_err() {
            let_others_run(gvl)?;
        }
        self.turn = Instant::now();
        self.limit = (self.began.elapsed() / PART).clamp(STRETCH, LONGEST);
        Ok(())
    }
}
