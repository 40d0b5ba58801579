//! The stacks of all threads, for the port's clients. On the helper, with the GVL, a little at a time:
//! other threads run in between, so a stack is of the moment at which its turn came.

use crate::interrupts::let_others_run;
use crate::native;
use crate::ruby::frames::RubyVm;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::resolve;
use crate::ruby::threads::RubyThread;
use crate::text;
use crate::vm::state::roots;
use magnus::{Error, RModule, RString, Ruby, Value, prelude::*};
use rperf_engine::trace::TraceVm;
use rperf_engine::{FrameWord, Gvl, JobId};
use rperf_live::port::frames::FrameName;
use rperf_live::port::stacks::{Stacks, ThreadStack};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Frames of a stack; those beyond are left out at its root.
const LIMIT: usize = 1000;

/// For how long the GVL is held at a stretch.
const STRETCH: Duration = Duration::from_micros(200);

/// What Ruby says of a thread: its name, status, native number and, if that is asked for, the line of
/// its topmost frame.
type Facts = (Option<RString>, RString, Option<i32>, Option<i64>);

/// Takes them. `holder` is the object of the thread that had the GVL when the question came.
pub fn take(ruby: &Ruby, helper: RModule, holder: usize) -> Result<Stacks, Error> {
    let gvl = &mut native::gvl(ruby);
    let mut taking = Taking::new(helper, holder);
    let taken = taking.take(ruby, gvl);
    for job in taking.kept {
        roots::take_named(gvl, job);
    }
    taken?;
    Ok(Stacks {
        threads: taking.threads,
        names: taking.names,
        ractors: helper.funcall("other_ractors", ())?,
        fibers: None,
    })
}

struct Taking {
    helper: RModule,
    holder: usize,
    threads: Vec<ThreadStack>,
    /// Each frame once, with its place here.
    frames: Vec<FrameWord>,
    places: HashMap<FrameWord, u32>,
    /// What keeps them alive, and where they are.
    kept: Vec<JobId>,
    names: Vec<FrameName>,
    /// Room for a stack and its lines.
    stack: Vec<FrameWord>,
    lines: Vec<u32>,
}

impl Taking {
    fn new(helper: RModule, holder: usize) -> Self {
        Taking {
            helper,
            holder,
            threads: Vec::new(),
            frames: Vec::new(),
            places: HashMap::new(),
            kept: Vec::new(),
            names: Vec::new(),
            stack: vec![0; LIMIT],
            lines: vec![0; LIMIT],
        }
    }

    fn take(&mut self, ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(), Error> {
        let own = RubyThread::current(gvl).object();
        let live = LiveThreads::list(ruby, gvl)?;
        let mut began = Instant::now();
        for place in 0..live.len() {
            if began.elapsed() >= STRETCH {
                let_others_run(gvl)?;
                began = Instant::now();
            }
            if let Some((thread, object)) = live.at(place)
                && thread.object() != own
            {
                self.take_one(gvl, thread, object)?;
            }
        }
        while resolve::name_frames(gvl, STRETCH, |_, named| {
            self.names.extend(named.map(|(_, found)| FrameName {
                path: (!resolve::is_of_c(&found)).then_some(found.path),
                name: found.name,
            }));
            self.frames.get(self.names.len()).copied()
        }) {
            let_others_run(gvl)?;
        }
        Ok(())
    }

    /// `object` is that of `thread`, and on the stack to the end: `facts` gets it.
    fn take_one(
        &mut self,
        gvl: &Gvl<'_>,
        thread: RubyThread<'_>,
        object: Value,
    ) -> Result<(), Error> {
        let depth = thread.backtrace(&mut self.stack, &mut self.lines);
        let known = self.frames.len();
        let frames = self.stack[..depth].iter().zip(&self.lines);
        let frames: Vec<_> = frames
            .map(|(&frame, &line)| {
                let place = *self.places.entry(frame).or_insert_with(|| {
                    self.frames.push(frame);
                    self.frames.len() as u32 - 1
                });
                (place, line_of(i64::from(line as i32)))
            })
            .collect();
        // Before anything allocates.
        if self.frames.len() > known {
            self.kept
                .extend(roots::keep_words_until_named(gvl, &self.frames[known..]));
        }
        // The VM gives none for a method of C, which needs none, nor in compiled code.
        let vm = RubyVm::new(gvl);
        let lacks_line =
            frames.first().is_some_and(|&(_, line)| line == 0) && !vm.is_c_method(self.stack[0]);
        let facts: Option<Facts> = self.helper.funcall("facts", (object, lacks_line))?;
        if let Some((name, status, tid, line)) = facts {
            let mut frames = frames;
            if let (Some(first), Some(line)) = (frames.first_mut(), line) {
                first.1 = line_of(line);
            }
            self.threads.push(ThreadStack {
                name: name.map(text::content).unwrap_or_default(),
                status: text::content(status),
                tid,
                has_gvl: thread.object() as usize == self.holder,
                frames,
            });
        }
        Ok(())
    }
}

/// Code may be told to be at any line; what is no line of a file has none.
fn line_of(line: i64) -> u32 {
    u32::try_from(line).unwrap_or(0)
}
