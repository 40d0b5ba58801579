//! The fibers of a traced session, and which of them runs. At events, under the GVL.

use crate::fiber::{Fiber, Open};
use crate::tree::ROOT;
use rustc_hash::FxHashMap;
use std::ops::{Index, IndexMut};

/// All fibers, by their numbers, which stay. The number of the one that runs is a fiber's as soon as
/// a thread has been announced, and so at each event.
#[derive(Debug, Default)]
pub(crate) struct Fibers {
    all: Vec<Fiber>,
    running: usize,
    /// By the VM's objects, which may be new ones at the same place.
    by_object: FxHashMap<usize, usize>,
}

impl Fibers {
    /// The number of a new one.
    #[inline]
    pub(crate) fn add(&mut self) -> usize {
        self.all.push(Fiber::default());
        self.all.len() - 1
    }

    /// From now on this one runs.
    #[inline]
    pub(crate) fn run(&mut self, fiber: usize) {
        self.running = fiber;
    }

    /// The number of the one that runs.
    #[inline]
    pub(crate) fn running_number(&self) -> usize {
        self.running
    }

    /// The one that runs, if there is any.
    #[inline]
    pub(crate) fn get_running(&self) -> Option<&Fiber> {
        self.all.get(self.running)
    }

    /// The one that runs, if there is any.
    #[inline]
    pub(crate) fn get_running_mut(&mut self) -> Option<&mut Fiber> {
        self.all.get_mut(self.running)
    }

    /// The one that runs, at an event.
    #[inline]
    pub(crate) fn running(&self) -> &Fiber {
        &self.all[self.running]
    }

    /// The one that runs, at an event.
    #[inline]
    pub(crate) fn running_mut(&mut self) -> &mut Fiber {
        &mut self.all[self.running]
    }

    /// The one with this number, if there is one.
    pub(crate) fn get(&self, fiber: usize) -> Option<&Fiber> {
        self.all.get(fiber)
    }

    /// The number of the one that has this object, if it is known.
    #[inline]
    pub(crate) fn with_object(&self, object: usize) -> Option<usize> {
        self.by_object.get(&object).copied()
    }

    /// The one with this number has this object.
    #[inline]
    pub(crate) fn name(&mut self, fiber: usize, object: usize) {
        self.by_object.insert(object, fiber);
    }

    /// The node that time goes to.
    #[inline]
    pub(crate) fn charged(&self) -> u32 {
        // Not by Fiber::charged: each event would take three instructions more.
        let top = self.get_running().and_then(Fiber::top);
        top.map_or(ROOT, |top| top.charge)
    }

    /// Bytes held by the stacks.
    pub(crate) fn memory(&self) -> usize {
        let stacks = self.all.iter().map(|it| it.stack.capacity());
        stacks.sum::<usize>() * size_of::<Open>()
    }
}

impl Index<usize> for Fibers {
    type Output = Fiber;

    #[inline]
    fn index(&self, fiber: usize) -> &Fiber {
        &self.all[fiber]
    }
}

impl IndexMut<usize> for Fibers {
    #[inline]
    fn index_mut(&mut self, fiber: usize) -> &mut Fiber {
        &mut self.all[fiber]
    }
}
