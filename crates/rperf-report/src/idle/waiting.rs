//! The methods in which threads wait, and what for. Any thread.

/// What a method waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiting {
    /// The end of a thread or a process.
    ForEnd,
    /// Data of a socket or file.
    ForData,
    /// A time. Threads that work now and then do it between two pieces of work, all others within
    /// their work.
    Sleep,
    /// Something to do: a job, a connection, or whatever somebody else gives.
    ForWork,
    /// Something to do, in a method of a gem that asks somebody else for it.
    Fetch,
}

/// Ruby's own methods.
const OF_RUBY: [(Waiting, &[&str]); 4] = [
    (
        Waiting::ForEnd,
        &[
            "Thread#join",
            "Thread#value",
            "Process.wait",
            "Process.wait2",
            "Process.waitall",
            "Process.waitpid",
            "Process.waitpid2",
            "Process::Status.wait",
        ],
    ),
    (Waiting::ForData, &["IO#wait", "IO#wait_readable"]),
    (Waiting::Sleep, &["Kernel#sleep", "Kernel.sleep"]),
    (
        Waiting::ForWork,
        &[
            "IO.select",
            "IO::Event::Selector::EPoll#select",
            "IO::Event::Selector::KQueue#select",
            "IO::Event::Selector::Select#select",
            "IO::Event::Selector::URing#select",
            "Kernel#select",
            "Kernel.select",
            "Monitor#wait_for_cond",
            "MonitorMixin::ConditionVariable#wait",
            "MonitorMixin::ConditionVariable#wait_until",
            "MonitorMixin::ConditionVariable#wait_while",
            "Ractor.receive",
            "Ractor::Port#receive",
            "Socket#accept",
            "Socket.accept_loop",
            "TCPServer#accept",
            "Thread.stop",
            "Thread::ConditionVariable#wait",
            "Thread::Mutex#sleep",
            "Thread::Queue#pop",
            "Thread::SizedQueue#pop",
            "UNIXServer#accept",
        ],
    ),
];

/// Methods of gems that stand for one of Ruby's.
const STANDS_FOR: [&str; 1] = ["NIO::Selector#select"];

/// Methods of gems that ask a database or a queue for the next job, or wait until they do so again.
const FETCH: [&str; 5] = [
    "Shoryuken::Fetcher#fetch",
    "Sidekiq::BasicFetch#retrieve_work",
    "Sidekiq::Pro::SuperFetch#retrieve_work",
    "Sidekiq::Scheduled::Poller#initial_wait",
    "Sidekiq::Scheduled::Poller#wait",
];

impl Waiting {
    /// Whether a frame that waits so is as one of Ruby's own.
    pub(super) fn is_rubys(self) -> bool {
        self != Waiting::Fetch
    }

    /// The kind of wait of `method`, if it waits; `is_rubys`: it is Ruby's, and no gem's.
    pub(super) fn of(method: &str, is_rubys: bool) -> Option<Self> {
        if STANDS_FOR.contains(&method) {
            return Some(Waiting::ForWork);
        }
        if !is_rubys {
            return FETCH.contains(&method).then_some(Waiting::Fetch);
        }
        let mut kinds = OF_RUBY.iter();
        let found = kinds.find(|(_, methods)| methods.contains(&method));
        found.map(|(kind, _)| *kind)
    }
}
