//! The accounts of one thread: its states as the VM's events tell of them, which of its fibers has
//! control, and what is open in each. All times are CLOCK_MONOTONIC in ns and handed in; each event
//! but READY comes on the thread itself.

use crate::{AccountOps, Figures, OpTime, Sums};
use rperf_vm::FiberWord;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A moment on a thread that has the GVL.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// When it is.
    pub now_ns: u64,
    /// How many objects the process has made.
    pub objects: u64,
    /// The time for which all threads together have waited for the GVL; `None` if it can't be read
    /// at the moment. It wraps.
    pub waits_ns: Option<u64>,
}

/// A thread that has accounts, and has the GVL when one is opened. While none is open, it needs no events.
#[derive(Debug, Default)]
pub struct ThreadAccounts {
    /// What it has done up to `since_ns`.
    sums: Sums,
    since_ns: u64,
    /// `None` while it is off the GVL.
    held: Option<Held>,
    /// The fiber that has control.
    present: FiberWord,
    /// The fibers with open accounts.
    fibers: FxHashMap<FiberWord, FiberAccounts>,
    /// How many accounts were opened so far.
    opened: u64,
}

/// What is noted while the thread has the GVL.
#[derive(Debug)]
struct Held {
    objects: u64,
    waits_ns: Option<u64>,
    /// Garbage collection that isn't in the sums yet.
    gc_ns: u64,
}

impl Held {
    fn since(at: Moment) -> Self {
        Self {
            objects: at.objects,
            waits_ns: at.waits_ns,
            gc_ns: 0,
        }
    }
}

/// A fiber with open accounts.
#[derive(Debug, Default)]
struct FiberAccounts {
    open: Vec<OpenAccount>,
    /// What the thread did while other fibers had control.
    away: Sums,
    /// The thread's sums when this fiber lost control; `None` while it has it.
    left: Option<Sums>,
}

/// An account of a fiber that is open.
#[derive(Debug)]
struct OpenAccount {
    number: u64,
    at_ns: u64,
    /// The calls of ops, if it is to tell of them.
    ops: Option<AccountOps>,
}

impl FiberAccounts {
    fn find(&self, opened: &Opened) -> Option<&OpenAccount> {
        self.open.iter().find(|it| it.number == opened.number)
    }

    /// What the thread did without this fiber, when its sums are these.
    fn away(&self, sums: &Sums) -> Sums {
        let left = self.left.as_ref();
        left.map_or(self.away, |left| self.away.plus(&sums.since(left)))
    }
}

/// An open account: how all stood at its beginning.
#[derive(Debug, Clone, Copy)]
pub struct Opened {
    /// Another fiber can come to have the same word, but no other account of the thread this number.
    number: u64,
    fiber: FiberWord,
    at_ns: u64,
    sums: Sums,
    away: Sums,
}

impl Opened {
    /// The fiber that it belongs to.
    pub fn fiber(&self) -> FiberWord {
        self.fiber
    }
}

impl ThreadAccounts {
    /// Opens an account of `fiber`, which has control; `with_ops`: it tells of the calls of ops, too.
    pub fn open(&mut self, fiber: FiberWord, with_ops: bool, at: Moment) -> Opened {
        if self.is_done() {
            self.since_ns = at.now_ns;
            self.held = Some(Held::since(at));
            self.present = fiber;
        }
        self.switched(fiber, at);
        self.opened += 1;
        let accounts = self.fibers.entry(fiber).or_default();
        accounts.open.push(OpenAccount {
            number: self.opened,
            at_ns: self.since_ns,
            ops: with_ops.then(AccountOps::default),
        });
        Opened {
            number: self.opened,
            fiber,
            at_ns: self.since_ns,
            sums: self.sums,
            away: accounts.away,
        }
    }

    /// Closes an account in `fiber`, which has control; nothing if that is another one than it
    /// was opened in.
    pub fn close(&mut self, opened: &Opened, fiber: FiberWord, at: Moment) -> Option<Figures> {
        self.switched(fiber, at);
        let accounts = self.fibers.get(&opened.fiber)?;
        accounts.find(opened)?;
        let figures = of_opened(opened, accounts, &self.sums, self.since_ns);
        self.forget(opened);
        (opened.fiber == fiber).then_some(figures)
    }

    /// An account is open no more, if it was: nobody will ask for it again.
    pub fn forget(&mut self, opened: &Opened) {
        if let Some(accounts) = self.fibers.get_mut(&opened.fiber) {
            accounts.open.retain(|it| it.number != opened.number);
            if accounts.open.is_empty() {
                self.fibers.remove(&opened.fiber);
            }
        }
    }

    /// What an open account says up to `at`. If the thread is off the GVL, it has been ready
    /// since `ready_ns`, if at all.
    pub fn so_far(&self, opened: &Opened, at: Moment, ready_ns: Option<u64>) -> Option<Figures> {
        let accounts = self.fibers.get(&opened.fiber)?;
        let now_ns = at.now_ns.max(self.since_ns);
        Some(of_opened(
            opened,
            accounts,
            &self.sums_at(at, ready_ns),
            now_ns,
        ))
    }

    /// A call of an op has ended in `fiber` just now, which took so long: all its open accounts tell of it
    /// that tell of ops, and of no more time than they are open.
    pub fn add_op(&mut self, fiber: FiberWord, name: &Arc<str>, time: OpTime) {
        let accounts = self.fibers.get_mut(&fiber);
        let open = accounts.into_iter().flat_map(|it| &mut it.open);
        for account in open {
            let most_ns = self.since_ns - account.at_ns;
            if let Some(ops) = &mut account.ops {
                ops.add(name, time.up_to(most_ns));
            }
        }
    }

    /// The ops of an account that is about to be closed; nothing if it doesn't tell of them.
    pub fn take_ops(&mut self, opened: &Opened) -> Option<AccountOps> {
        let accounts = self.fibers.get_mut(&opened.fiber)?;
        let mut open = accounts.open.iter_mut();
        open.find(|it| it.number == opened.number)?.ops.take()
    }

    /// The ops of an open account; nothing if it doesn't tell of them.
    pub fn ops(&self, opened: &Opened) -> Option<&AccountOps> {
        let accounts = self.fibers.get(&opened.fiber)?;
        accounts.find(opened)?.ops.as_ref()
    }

    /// Whether no account is open.
    pub fn is_done(&self) -> bool {
        self.fibers.is_empty()
    }

    /// The thread has got the GVL, for which it was ready since `ready_ns`, if that is known.
    pub fn resumed(&mut self, at: Moment, ready_ns: Option<u64>) {
        if self.held.is_none() {
            self.advance(at, ready_ns);
            self.sums.hand_overs += 1;
            self.held = Some(Held::since(at));
        }
    }

    /// The thread is about to give the GVL up.
    pub fn suspended(&mut self, at: Moment) {
        self.advance(at, None);
        self.held = None;
    }

    /// A piece of garbage collection has ended on the thread, which took so long.
    pub fn collected(&mut self, ns: u64) {
        if let Some(held) = &mut self.held {
            held.gc_ns += ns;
        }
    }

    /// `fiber` has control from here on.
    pub fn switched(&mut self, fiber: FiberWord, at: Moment) {
        self.advance(at, None);
        if fiber == self.present {
            return;
        }
        if let Some(left) = self.fibers.get_mut(&self.present) {
            left.left = Some(self.sums);
        }
        if let Some(back) = self.fibers.get_mut(&fiber) {
            back.away = back.away(&self.sums);
            back.left = None;
        }
        self.present = fiber;
    }

    /// Adds the time up to `at`.
    fn advance(&mut self, at: Moment, ready_ns: Option<u64>) {
        self.sums = self.sums_at(at, ready_ns);
        self.since_ns = at.now_ns.max(self.since_ns);
        if let Some(held) = &mut self.held {
            *held = Held {
                waits_ns: at.waits_ns.or(held.waits_ns),
                ..Held::since(at)
            };
        }
    }

    /// The sums up to `at`.
    fn sums_at(&self, at: Moment, ready_ns: Option<u64>) -> Sums {
        let now_ns = at.now_ns.max(self.since_ns);
        let length = now_ns - self.since_ns;
        let mut sums = self.sums;
        match &self.held {
            Some(held) => {
                let gc = held.gc_ns.min(length);
                sums.gc_ns += gc;
                sums.running_ns += length - gc;
                sums.allocated_objects += at.objects.saturating_sub(held.objects);
                if let (Some(now), Some(before)) = (at.waits_ns, held.waits_ns) {
                    // A thread that became ready meanwhile can make it less than before.
                    let passed = now.wrapping_sub(before).cast_signed().max(0);
                    sums.gvl_blame_ns += passed.unsigned_abs();
                }
            }
            None => {
                let ready_ns = ready_ns.map_or(now_ns, |it| it.clamp(self.since_ns, now_ns));
                sums.blocked_ns += ready_ns - self.since_ns;
                sums.gvl_wait_ns += now_ns - ready_ns;
            }
        }
        sums
    }
}

/// The figures of an account of a fiber, when the thread's sums are these, and it is `now_ns`.
fn of_opened(opened: &Opened, fiber: &FiberAccounts, sums: &Sums, now_ns: u64) -> Figures {
    let away = fiber.away(sums).since(&opened.away);
    Figures {
        wall_ns: now_ns - opened.at_ns,
        sums: sums.since(&opened.sums).since(&away),
        suspended_ns: away.wall_ns(),
        cpu_ns: None,
        is_alone: true,
    }
}

#[cfg(test)]
mod tests;
