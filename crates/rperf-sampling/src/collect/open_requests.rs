//! The samples of requests that go on: they wait until it is known how long theirs took among its like,
//! and get that class then. On the worker's thread.

use super::packed_labels::{CLASS_BITS, with_class};
use super::sample::{RequestNews, Sample};
use rperf_model::LatencyClass;
use rperf_vm::RequestNumber;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Samples that wait at most: 17 MB. Beyond them those of the oldest request go on as open.
const MOST: usize = 1 << 18;

/// Requests that have ended whose class is known, for remainders that come later: 256 KB.
const REMEMBERED: usize = 1 << 16;

/// So many of the last samples of a request are looked at for the stack that it has waited for.
const LAST: usize = 64;

/// Samples that wait, by request.
#[derive(Debug, Default)]
pub struct OpenRequests {
    waiting: BTreeMap<RequestNumber, Vec<Sample>>,
    samples: usize,
    /// By the lower half of the number: the upper half and the class.
    ended: Vec<u32>,
    /// Numbers of requests that have ended and are told apart from all others: their samples keep it.
    kept: FxHashSet<RequestNumber>,
}

impl OpenRequests {
    /// Takes a sample, or news; `put` gets the samples that wait for nothing more, and all news but of
    /// requests.
    #[inline]
    pub fn take(&mut self, sample: &Sample, put: &mut impl FnMut(&Sample)) {
        match sample.request_news() {
            Some(RequestNews::Ended { class, is_kept }) => {
                if is_kept {
                    self.kept.insert(sample.request);
                }
                self.end(sample.request, class, put);
            }
            Some(RequestNews::LetGo) => self.forget(sample.request),
            // What it has waited for comes next.
            Some(RequestNews::Waited { .. }) => {}
            None if sample.request == RequestNumber::NONE => put(sample),
            None => self.wait(sample, put),
        }
    }

    /// The samples of `request` are told apart no more.
    pub fn forget(&mut self, request: RequestNumber) {
        self.kept.remove(&request);
    }

    /// No request is told apart any more: what is collected begins anew.
    pub fn forget_all(&mut self) {
        self.kept.clear();
    }

    /// Hands all samples that wait to `put`, as open: what they lead to goes. Those that follow wait.
    pub fn let_go(&mut self, mut put: impl FnMut(&Sample)) {
        self.samples = 0;
        for samples in std::mem::take(&mut self.waiting).into_values() {
            put_all(&samples, LatencyClass::Open, RequestNumber::NONE, &mut put);
        }
    }

    /// Hands copies of them to `put`, as open; they go on waiting.
    pub fn each(&self, mut put: impl FnMut(&Sample)) {
        for samples in self.waiting.values() {
            put_all(samples, LatencyClass::Open, RequestNumber::NONE, &mut put);
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        // What is allotted is at most twice as much, and mostly less.
        self.samples * size_of::<Sample>()
            + self.waiting.len() * size_of::<(RequestNumber, Vec<Sample>)>()
            + self.ended.capacity() * size_of::<u32>()
            + self.kept.capacity() * (size_of::<RequestNumber>() + 1)
    }

    fn wait(&mut self, sample: &Sample, put: &mut impl FnMut(&Sample)) {
        if let Some(class) = self.class_of(sample.request) {
            put_all(&[*sample], class, self.told_apart(sample.request), put);
            return;
        }
        let waiting = self.waiting.entry(sample.request).or_default();
        if add_to_wait(waiting, sample) {
            return;
        }
        if self.samples >= MOST
            && let Some((_, samples)) = self.waiting.pop_first()
        {
            self.samples -= samples.len();
            put_all(&samples, LatencyClass::Open, RequestNumber::NONE, put);
        }
        self.samples += 1;
        let waiting = self.waiting.entry(sample.request).or_default();
        waiting.push(*sample);
    }

    fn end(&mut self, request: RequestNumber, class: LatencyClass, put: &mut impl FnMut(&Sample)) {
        if self.ended.is_empty() {
            self.ended.resize(REMEMBERED, 0);
        }
        let (place, known) = remembered(request, class);
        self.ended[place] = known;
        if let Some(samples) = self.waiting.remove(&request) {
            self.samples -= samples.len();
            put_all(&samples, class, self.told_apart(request), put);
        }
    }

    /// The number by which samples of `request` are told apart, if they are.
    fn told_apart(&self, request: RequestNumber) -> RequestNumber {
        match self.kept.contains(&request) {
            true => request,
            false => RequestNumber::NONE,
        }
    }

    /// The class of a request that has ended not long ago.
    fn class_of(&self, request: RequestNumber) -> Option<LatencyClass> {
        let known = *self.ended.get(remembered(request, LatencyClass::First).0)?;
        let mut classes = LatencyClass::ALL.into_iter();
        classes.find(|class| remembered(request, *class).1 == known)
    }
}

/// If `sample` is what a request has waited for, and one of the last of `waiting` is so at the same stack,
/// it goes there: short waits are many, and for the same few stacks. Returns whether it did.
fn add_to_wait(waiting: &mut [Sample], sample: &Sample) -> bool {
    if sample.times.waited_for_ns == 0 || sample.count > 0 {
        return false;
    }
    let is_same =
        |it: &&mut Sample| it.times.waited_for_ns > 0 && it.count == 0 && it.key() == sample.key();
    let known = waiting.iter_mut().rev().take(LAST).find(is_same);
    match known {
        Some(known) => {
            known.times.add(sample.times);
            true
        }
        None => false,
    }
}

/// Where the class of a request is remembered, and as what: never 0.
fn remembered(request: RequestNumber, class: LatencyClass) -> (usize, u32) {
    let place = request.0 as usize % REMEMBERED;
    let rest = request.0 / REMEMBERED as u32;
    (place, rest << CLASS_BITS | (class as u32 + 1))
}

fn put_all(
    samples: &[Sample],
    class: LatencyClass,
    request: RequestNumber,
    put: &mut impl FnMut(&Sample),
) {
    for sample in samples {
        put(&Sample {
            labels: with_class(sample.labels, class),
            request,
            ..*sample
        });
    }
}

#[cfg(test)]
mod tests;
