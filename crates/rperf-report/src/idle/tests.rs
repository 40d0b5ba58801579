//! Which waits are idle: by example, and for any profile.

use super::*;
use rperf_model::test_support::{self, TestFrame};
use rperf_model::{Thread, WeightTable, Weights};

const POP: TestFrame<'_> = ("Thread::Queue#pop", "<internal:thread_sync>", 0, 0);
const WAIT: TestFrame<'_> = ("Thread::ConditionVariable#wait", "<C method>", 0, 0);
const MUTEX: TestFrame<'_> = ("Thread::Mutex#sleep", "<C method>", 0, 0);
const SLEEP: TestFrame<'_> = ("Kernel#sleep", "<C method>", 0, 0);
const SELECT: TestFrame<'_> = ("IO.select", "<C method>", 0, 0);
const JOIN: TestFrame<'_> = ("Thread#join", "<C method>", 0, 0);
const READ: TestFrame<'_> = ("IO#wait_readable", "<C method>", 0, 0);
const LOOP: TestFrame<'_> = ("Kernel#loop", "<internal:kernel>", 0, 0);
const SYNC: TestFrame<'_> = ("Thread::Mutex#synchronize", "<C method>", 0, 0);
const PROGRAM: TestFrame<'_> = ("<main>", "app.rb", 1, 0);
const OWN_BLOCK: TestFrame<'_> = ("block in Pool#start", "lib/pool.rb", 5, 0);
const INNER_BLOCK: TestFrame<'_> = ("block (2 levels) in Pool#start", "lib/pool.rb", 6, 0);
const OWN_METHOD: TestFrame<'_> = ("Pool#run", "lib/pool.rb", 9, 0);
const PUMA_POOL: TestFrame<'_> = (
    "block in Puma::ThreadPool#spawn_thread",
    "/gems/puma-6.4.2/lib/puma/thread_pool.rb",
    1,
    0,
);
const PUMA_MAIN: TestFrame<'_> = (
    "Puma::Single#run",
    "/usr/lib/ruby/vendor_ruby/puma/single.rb",
    1,
    0,
);
const OTHER_GEM: TestFrame<'_> = ("Pool#checkout", "/gems/activerecord-8.0.1/lib/p.rb", 1, 0);
const TIMEOUT: TestFrame<'_> = (
    "block in Timeout.create_timeout_thread",
    "/usr/lib/ruby/3.4.0/timeout.rb",
    1,
    0,
);
const FETCH: TestFrame<'_> = (
    "Sidekiq::BasicFetch#retrieve_work",
    "/gems/sidekiq-7.3.0/lib/sidekiq/fetch.rb",
    1,
    0,
);
const MIDDLEWARE_CALL: TestFrame<'_> = (
    "Rperf::RackMiddleware#call",
    "/gems/rperf-1.0/lib/r.rb",
    1,
    0,
);

/// A stack, a thread, its state and labels.
type Row<'a> = (&'a [TestFrame<'a>], u32, State, &'a [(&'a str, &'a str)]);

/// A profile with such rows of 10 each, and as much of work.
fn profile_of(rows: &[Row<'_>]) -> Profile {
    let mut profile = Profile::new(test_support::wall_schema());
    let mut table = WeightTable::new(profile.schema.len());
    let work: &[TestFrame<'_>] = &[PROGRAM, ("work", "app.rb", 2, 2)];
    let rows = rows.iter().copied();
    let all: Vec<_> = rows.chain([(work, 1, State::Running, &[][..])]).collect();
    for (frames, thread, state, labels) in all {
        let pairs = labels.iter().map(|(key, value)| {
            let key = profile.strings.intern(key);
            (key, profile.strings.intern(value))
        });
        let pairs = pairs.collect();
        let key = WeightKey {
            node: test_support::node(&mut profile, frames),
            thread,
            labels: profile.label_sets.intern(pairs),
            state,
        };
        table.add(key, &[1, 10, 0]);
        if !profile.threads.iter().any(|it| it.seq == thread) {
            let name = StringId::default();
            profile.threads.push(Thread { seq: thread, name });
        }
    }
    profile.threads.sort_by_key(|it| it.seq);
    profile.weights = table.into_weights();
    profile
}

/// Whether a blocked thread with this stack is idle.
fn is_idle(thread: u32, frames: &[TestFrame<'_>]) -> bool {
    is_idle_under(&[], thread, frames)
}

fn is_idle_under(labels: &[(&str, &str)], thread: u32, frames: &[TestFrame<'_>]) -> bool {
    let profile = profile_of(&[(frames, thread, State::GvlBlocked, labels)]);
    Idle::of(&profile).value() == 10
}

#[test]
fn threads_of_gems_and_of_ruby_are_idle_where_they_wait_themselves() {
    assert!(is_idle(2, &[TIMEOUT, WAIT, MUTEX]));
    assert!(is_idle(2, &[PUMA_POOL, SYNC, WAIT, MUTEX]));
    assert!(is_idle(2, &[PUMA_POOL, SELECT]));
    let nio = (
        "NIO::Selector#select",
        "/gems/nio4r-2.7.4/lib/nio/s.rb",
        1,
        1,
    );
    let nio_block = (
        "block in NIO::Selector#select",
        "/gems/nio4r-2.7.4/lib/nio/s.rb",
        1,
        1,
    );
    assert!(is_idle(
        2,
        &[
            PUMA_POOL,
            nio,
            SYNC,
            nio_block,
            ("Kernel.select", "<C method>", 0, 0)
        ]
    ));
    assert!(!is_idle(2, &[PUMA_POOL, nio, OTHER_GEM, SELECT]));
    assert!(
        !is_idle(2, &[PUMA_POOL, OTHER_GEM, WAIT]),
        "for a connection"
    );
    assert!(
        !is_idle(2, &[PUMA_POOL, OWN_METHOD, POP]),
        "in the program's code"
    );
    assert!(!is_idle(2, &[PUMA_POOL, OWN_METHOD, OTHER_GEM, POP]));
    assert!(!is_idle(2, &[TIMEOUT, JOIN]), "for somebody's end");
    assert!(
        !is_idle(2, &[("Gem.run", "/gems/x-1/x.rb", 1, 1), READ]),
        "for data"
    );
    assert!(!is_idle(2, &[]), "nothing is known");
}

#[test]
fn threads_of_the_program_are_idle_in_their_outermost_method_only() {
    assert!(is_idle(2, &[OWN_BLOCK, POP]));
    assert!(is_idle(2, &[OWN_BLOCK, LOOP, INNER_BLOCK, POP]));
    assert!(
        is_idle(2, &[OWN_METHOD, SYNC, WAIT, MUTEX]),
        "Thread.new(&method(:run))"
    );
    assert!(!is_idle(2, &[OWN_BLOCK, OWN_METHOD, POP]));
    assert!(!is_idle(2, &[OWN_BLOCK, OTHER_GEM, POP]));
    assert!(!is_idle(
        2,
        &[
            OWN_BLOCK,
            ("Open3.x", "/lib/ruby/3.4.0/open3.rb", 1, 1),
            POP
        ]
    ));
    assert!(!is_idle(2, &[OWN_BLOCK, SLEEP]), "it may be what it does");
    assert!(
        is_idle(2, &[OWN_BLOCK, LOOP, INNER_BLOCK, SLEEP]),
        "now and then"
    );
    assert!(!is_idle(2, &[OWN_BLOCK, JOIN]));
}

#[test]
fn a_main_thread_is_idle_in_a_servers_code_only() {
    for wait in [POP, WAIT, SLEEP, SELECT, JOIN, READ] {
        assert!(!is_idle(1, &[PROGRAM, wait]), "{wait:?}");
        assert!(!is_idle(1, &[PROGRAM, OTHER_GEM, wait]), "{wait:?}");
        assert!(is_idle(1, &[PROGRAM, PUMA_MAIN, wait]), "{wait:?}");
        assert!(!is_idle(1, &[PROGRAM, PUMA_MAIN, OWN_METHOD, wait]));
        assert!(!is_idle(1, &[PROGRAM, PUMA_MAIN, OTHER_GEM, wait]));
    }
    let mut profile = profile_of(&[(&[OWN_BLOCK, POP], 7, State::GvlBlocked, &[])]);
    assert_eq!(Idle::of(&profile).value(), 10);
    let main = profile.strings.intern("main");
    profile.threads.last_mut().expect("thread 7").name = main;
    assert_eq!(Idle::of(&profile).value(), 0, "as it ends it runs blocks");
}

#[test]
fn a_stack_that_a_thread_has_waited_for_is_not_its_own() {
    let mut profile = profile_of(&[(&[OWN_BLOCK, POP], 7, State::GvlBlocked, &[])]);
    let before = profile.schema.len();
    profile.schema = profile.schema.with([OwnColumn::GvlWaitedFor]);
    let rows = std::mem::replace(&mut profile.weights, Weights::new(before + 1));
    for row in rows.iter() {
        profile.weights.push(row.key, &[row.values, &[0]].concat());
    }
    let key = WeightKey {
        node: test_support::node(&mut profile, &[PROGRAM]),
        thread: 7,
        labels: LabelSetId(0),
        state: State::Running,
    };
    let mut values = vec![0; before];
    values.push(5);
    profile.weights.push(key, &values);
    assert_eq!(Idle::of(&profile).value(), 10);
    // Where it is a thread's own, that is the main thread.
    profile.weights.push(
        key,
        &vec![1; before].into_iter().chain([0]).collect::<Vec<_>>(),
    );
    assert_eq!(Idle::of(&profile).value(), 0);
}

#[test]
fn a_thread_that_asks_for_jobs_is_idle() {
    let processor = ("Sidekiq::Processor#run", "/gems/sidekiq-7.3.0/p.rb", 1, 0);
    let redis = ("RedisClient#call", "/gems/redis-client-0.2/r.rb", 1, 0);
    assert!(is_idle(2, &[processor, FETCH, redis, READ]));
    assert!(!is_idle(2, &[processor, redis, READ]));
    assert!(!is_idle(2, &[processor, FETCH, OWN_METHOD, READ]));
}

#[test]
fn nothing_is_idle_within_what_the_program_labels() {
    let stack = [PUMA_POOL, WAIT];
    for labels in [("endpoint", "GET /"), ("job", "Mail"), ("tenant", "7")] {
        assert!(!is_idle_under(&[labels], 2, &stack), "{labels:?}");
    }
    assert!(is_idle_under(&[("%ractor", "2")], 2, &stack));
    assert!(!is_idle(2, &[PUMA_POOL, MIDDLEWARE_CALL, PUMA_POOL, WAIT]));
    let mut profile = profile_of(&[(&stack, 2, State::GvlBlocked, &[])]);
    profile.label_all(&[("release", "1.2")]);
    assert_eq!(Idle::of(&profile).value(), 10, "a label of all samples");
    profile.label_all(&[("endpoint", "GET /")]);
    assert_eq!(Idle::of(&profile).value(), 0, "all is one request");
}

#[test]
fn only_blocked_time_is_idle_and_only_on_the_clock() {
    let stack: &[TestFrame<'_>] = &[PUMA_POOL, WAIT];
    for state in State::ALL {
        let profile = profile_of(&[(stack, 2, state, &[])]);
        let expected = if state == State::GvlBlocked { 10 } else { 0 };
        assert_eq!(Idle::of(&profile).value(), expected, "{state:?}");
    }
    let mut profile = profile_of(&[(stack, 2, State::GvlBlocked, &[])]);
    crate::choose_values(&mut profile, "cpu").expect("it has CPU time");
    assert_eq!(Idle::of(&profile).value(), 0);
}

#[test]
fn if_all_is_idle_nothing_is() {
    let mut profile = profile_of(&[(&[PUMA_POOL, WAIT], 2, State::GvlBlocked, &[])]);
    let mut idle_only = WeightTable::new(profile.schema.len());
    let rows = profile.weights.iter();
    for row in rows.filter(|row| row.key.state == State::GvlBlocked) {
        idle_only.add(row.key, row.values);
    }
    profile.weights = idle_only.into_weights();
    let idle = Idle::of(&profile);
    assert_eq!((idle.value(), idle.rows()), (0, &[false][..]));
}
