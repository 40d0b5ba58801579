//! Profiles that wait to be sent: a few, as the newest matter most. One thread brings them, another
//! one sends them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Profiles that wait; the oldest is dropped for one more.
const MOST: usize = 4;

/// The profiles.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    dropped: u64,
    is_closed: bool,
}

/// What there is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// This.
    Body(Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub fn add(&self, body: Vec<u8>) {
        let mut state = self.state();
        if state.waiting.len() == MOST {
            state.waiting.pop_front();
            state.dropped += 1;
        }
        state.waiting.push_back(body);
        self.changed.notify_all();
    }

    /// It couldn't be sent, and is older than all that wait.
    pub fn put_back(&self, body: Vec<u8>) {
        let mut state = self.state();
        if state.waiting.len() == MOST {
            state.dropped += 1;
        } else {
            state.waiting.push_front(body);
        }
    }

    /// There will be no more.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    /// Whether there will be no more.
    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// The oldest one; waits for it for a moment.
    pub fn next(&self, patience: Duration) -> Next {
        let is_empty = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let waited = self
            .changed
            .wait_timeout_while(self.state(), patience, is_empty);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.waiting.pop_front() {
            Some(body) => Next::Body(body),
            None if state.is_closed => Next::End,
            None => Next::Nothing,
        }
    }

    /// All that wait are given up.
    pub fn drop_all(&self) {
        let mut state = self.state();
        state.dropped += state.waiting.len() as u64;
        state.waiting.clear();
    }

    /// How many were dropped.
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(queue: &Queue) -> Next {
        queue.next(Duration::ZERO)
    }

    #[test]
    fn the_oldest_are_dropped_and_counted() {
        let queue = Queue::default();
        assert_eq!(next(&queue), Next::Nothing);
        (0..6).for_each(|number| queue.add(vec![number]));
        assert_eq!(queue.dropped(), 2);
        assert_eq!(next(&queue), Next::Body(vec![2]));
        queue.put_back(vec![2]);
        assert_eq!(next(&queue), Next::Body(vec![2]));
        queue.add(vec![6]);
        queue.put_back(vec![2]);
        assert_eq!(queue.dropped(), 3);
        assert_eq!(next(&queue), Next::Body(vec![3]));
        queue.close();
        (4..7).for_each(|number| assert_eq!(next(&queue), Next::Body(vec![number])));
        assert_eq!(next(&queue), Next::End);
    }

    #[test]
    fn what_is_given_up_counts_as_dropped() {
        let queue = Queue::default();
        (0..3).for_each(|number| queue.add(vec![number]));
        queue.drop_all();
        assert_eq!((queue.dropped(), next(&queue)), (3, Next::Nothing));
    }
}
