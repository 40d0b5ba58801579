//! What the sampling side and the worker say to each other. Sent with the GVL; replies are waited
//! for without it.

use crate::collect::profile_builder::ProfileBuilder;
use crate::collect::sample::{Sample, SampleSums};
use crate::collect::shared::News;
use crossbeam_channel::{Receiver, Sender};
use rperf_vm::{CapturedNode, ResolvedFrame};
use std::sync::Arc;
use std::thread::JoinHandle;

/// What is sent to the worker. All of it comes in the order in which it was sent: what follows a
/// request is in no reply to it.
#[derive(Debug)]
pub enum Message {
    /// A full buffer.
    Samples(Vec<Sample>),
    /// Sums that the sampling side has made itself.
    Sums(Box<SampleSums>),
    /// Somebody wants what there is.
    Ask(Request),
    /// The epoch is over, with these last samples. Its frames are being given names.
    EpochOver(Vec<Sample>),
    /// The frames of the epoch have names: the epoch goes into the profile.
    EpochNamed(Box<NamedEpoch>),
    /// Somebody watches, and this is new.
    News(Box<News>),
    /// Nobody watches any more.
    Unwatched,
}

/// A request, with the samples not handed over yet.
#[derive(Debug)]
pub struct Request {
    pub samples: Vec<Sample>,
    pub reply: Sender<Reply>,
    pub kind: RequestKind,
}

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// What there is; collecting goes on.
    Report,
    /// What there is, of which the worker keeps nothing.
    TakeAll,
    /// What there is, and the end of the worker.
    Stop,
}

/// What the worker has collected.
#[derive(Debug, Default)]
pub struct Reply {
    /// In the present epoch.
    pub collected: SampleSums,
    /// In those before it.
    pub earlier: ProfileBuilder,
}

/// A reply on its way.
#[derive(Debug)]
pub struct AwaitedReply {
    replies: Receiver<Reply>,
    /// If it ends with this reply.
    worker: Option<JoinHandle<()>>,
}

impl AwaitedReply {
    /// The one that comes through `replies`.
    pub fn new(replies: Receiver<Reply>) -> Self {
        Self {
            replies,
            worker: None,
        }
    }

    /// The worker ends with it.
    pub fn with_end_of(self, worker: Option<JoinHandle<()>>) -> Self {
        Self {
            replies: self.replies,
            worker,
        }
    }

    /// Waits for it. Without the GVL, as the worker may have a lot to copy.
    pub fn wait(self) -> Result<Reply, WorkerEnded> {
        let reply = self.replies.recv();
        if let Some(worker) = self.worker {
            worker.join().map_err(|_| WorkerEnded)?;
        }
        reply.map_err(|_| WorkerEnded)
    }
}

/// What an epoch held: the call tree, and its frames' names.
#[derive(Debug)]
pub struct NamedEpoch {
    /// The nodes.
    pub nodes: Vec<CapturedNode>,
    /// The names, in the order of the tree's frames.
    pub names: Vec<Arc<ResolvedFrame>>,
}

/// The worker is gone, by a panic whose message has been printed; what it had
/// collected is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the profile is lost: rperf's worker thread ended by an internal error")]
pub struct WorkerEnded;
