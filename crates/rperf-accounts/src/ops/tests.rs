//! Tests of the ops of a session.

use super::*;

mod many_statements;

fn call(wall_ns: u64, blocked_ns: u64, objects: u64) -> OpCall {
    let sums = Sums {
        running_ns: wall_ns - blocked_ns,
        blocked_ns,
        allocated_objects: objects,
        ..Sums::default()
    };
    OpCall {
        figures: Figures {
            wall_ns,
            sums,
            is_alone: true,
            ..Figures::default()
        },
        nested: Sums::default(),
        nested_suspended_ns: 0,
        is_within_itself: false,
    }
}

const NAME: RequestName<'_> = RequestName {
    key: "endpoint",
    name: "/orders",
};

fn entries(ops: &Ops) -> Vec<(&str, &str, u64, u64)> {
    let all = ops.iter();
    all.map(|(key, sums)| (&*key.endpoint, &*key.name, sums.calls, sums.wall_ns))
        .collect()
}

/// Calls that count as outside of their requests.
fn displaced(ops: &Ops) -> u64 {
    ops.iter().map(|it| it.1.displaced).sum()
}

#[test]
fn calls_are_told_by_the_request_that_they_were_in() {
    let mut ops = SessionOps::default();
    let [query, other] = ["query", "other"].map(|name| ops.number("op", name.as_bytes()));
    let [one, two] = [1, 2].map(RequestNumber);
    for request in [one, two] {
        ops.begin_request(request);
    }
    for _ in 0..5 {
        ops.add(query, one, &call(10, 4, 3));
    }
    ops.add(query, two, &call(1, 1, 0));
    ops.add(other, RequestNumber::NONE, &call(7, 0, 0));
    ops.add(OpNumber::NONE, one, &call(1_000, 0, 0));
    let open = ops.told(false);
    assert_eq!(
        entries(&open),
        [("", "[op] other", 1, 7), ("", "[op] query", 6, 51)]
    );
    ops.end_request(one, NAME, Some(LatencyClass::Tail));
    ops.end_request(two, NAME, None);
    let told = ops.told(false);
    let expected = [("", "[op] other", 1, 7), ("/orders", "[op] query", 6, 51)];
    assert_eq!(entries(&told), expected);
    let (_, sums) = told.iter().last().expect("an entry");
    assert_eq!((sums.requests, sums.repeated), (2, 1));
    assert_eq!((sums.running_ns, sums.blocked_ns), (30, 21));
    assert_eq!((sums.objects, sums.blocked.max()), (Some(15), 4));
    assert_eq!((sums.blocked.count(), sums.blocked.sum()), (6, 21));
    let tail = sums.classes[LatencyClass::Tail as usize];
    assert_eq!((tail.calls, tail.wall_ns), (5, 50));
    let all: u64 = sums.classes.iter().map(|it| it.calls).sum();
    assert_eq!(all, 5);
}

#[test]
fn the_states_are_without_the_ops_inside() {
    let mut ops = SessionOps::default();
    let number = ops.number("op", b"outer");
    let inner = call(6, 5, 2);
    let mut outer = call(10, 7, 3);
    (outer.nested, outer.nested_suspended_ns) = (inner.figures.sums, 9);
    outer.figures.suspended_ns = 11;
    ops.add(number, RequestNumber::NONE, &outer);
    let told = ops.told(true);
    let (_, sums) = told.iter().next().expect("an entry");
    assert_eq!((sums.wall_ns, sums.running_ns, sums.blocked_ns), (10, 2, 2));
    assert_eq!((sums.suspended_ns, sums.objects), (2, Some(1)));
    assert!(ops.told(true).is_empty());
}

#[test]
fn a_call_inside_of_one_of_the_same_op_adds_no_wall_time() {
    let mut ops = SessionOps::default();
    let number = ops.number("op", b"walk");
    let mut inner = call(6, 5, 0);
    inner.is_within_itself = true;
    let mut outer = call(10, 7, 0);
    outer.nested = inner.figures.sums;
    ops.add(number, RequestNumber::NONE, &inner);
    ops.add(number, RequestNumber::NONE, &outer);
    let told = ops.told(true);
    let (_, sums) = told.iter().next().expect("an entry");
    assert_eq!((sums.calls, sums.wall_ns), (2, 10));
    assert_eq!(sums.running_ns + sums.blocked_ns, 10);
}

#[test]
fn objects_beside_other_ractors_are_unknown() {
    let mut ops = SessionOps::default();
    let number = ops.number("op", b"a");
    ops.begin_request(RequestNumber(1));
    let mut beside = call(1, 0, 5);
    beside.figures.is_alone = false;
    for call in [call(1, 0, 5), beside, call(1, 0, 5)] {
        ops.add(number, RequestNumber(1), &call);
    }
    ops.end_request(RequestNumber(1), NAME, None);
    assert_eq!(
        ops.told(true).iter().next().map(|it| it.1.objects),
        Some(None)
    );
}

#[test]
fn what_finds_no_room_in_a_request_counts_as_outside_of_requests() {
    let mut ops = SessionOps::default();
    let request = RequestNumber(1);
    ops.begin_request(request);
    for name in 0..PLACES + 3 {
        let number = ops.number("op", name.to_string().as_bytes());
        ops.add(number, request, &call(1, 0, 0));
    }
    ops.end_request(request, NAME, None);
    let told = ops.told(true);
    let in_request = told.iter().filter(|it| !it.0.endpoint.is_empty());
    assert_eq!(in_request.count(), PLACES);
    let others = told.iter().filter(|it| it.0.endpoint.is_empty());
    assert_eq!(others.map(|it| it.1.calls).sum::<u64>(), 3);
    assert_eq!(displaced(&told), 3);
}

#[test]
fn the_oldest_requests_make_room() {
    let mut ops = SessionOps::default();
    let number = ops.number("op", b"a");
    let last = OPEN as u32 + 4;
    for request in (1..=last).map(RequestNumber) {
        ops.begin_request(request);
        ops.add(number, request, &call(1, 0, 0));
    }
    assert_eq!((ops.open.len(), ops.places), (OPEN, OPEN));
    // The first one counts as outside already, the last one doesn't.
    ops.end_request(RequestNumber(1), NAME, None);
    ops.end_request(RequestNumber(last), NAME, None);
    let told = ops.told(true);
    assert_eq!(
        entries(&told),
        [("", "[op] a", 4, 4), ("/orders", "[op] a", 1, 1)]
    );
    assert_eq!(displaced(&told), 4);
}

#[test]
fn requests_with_many_ops_make_room_too() {
    let mut ops = SessionOps::default();
    let numbers: Vec<_> = (0..PLACES)
        .map(|it| ops.number("op", it.to_string().as_bytes()))
        .collect();
    let last = (OPEN_PLACES / PLACES) as u32 + 1;
    for request in (1..=last).map(RequestNumber) {
        ops.begin_request(request);
        for &number in &numbers {
            (0..5).for_each(|_| ops.add(number, request, &call(1, 0, 0)));
        }
    }
    assert_eq!(ops.places, OPEN_PLACES);
    for request in (1..=last).map(RequestNumber) {
        ops.end_request(request, NAME, None);
    }
    let told = ops.told(true);
    let calls: u64 = told.iter().map(|it| it.1.calls).sum();
    assert_eq!(calls, 5 * u64::from(last) * PLACES as u64);
    // Those of the first request.
    assert_eq!(displaced(&told), 5 * PLACES as u64);
    let (_, sums) = told.iter().last().expect("an entry");
    assert_eq!(sums.repeated, u64::from(last) - 1);
    assert_eq!((ops.places, ops.open.len()), (0, 0));
}

#[test]
fn a_call_that_ends_after_its_request_counts_as_outside_and_takes_no_place() {
    let mut ops = SessionOps::default();
    let number = ops.number("op", b"a");
    let request = RequestNumber(1);
    ops.begin_request(request);
    ops.end_request(request, NAME, None);
    ops.add(number, request, &call(3, 0, 0));
    ops.add(number, RequestNumber::NONE, &call(4, 0, 0));
    assert_eq!((ops.open.len(), ops.places), (0, 0));
    let told = ops.told(true);
    assert_eq!(entries(&told), [("", "[op] a", 2, 7)]);
    assert_eq!(displaced(&told), 1);
}

#[test]
fn calls_are_counted_since_the_session_began_whatever_is_taken_of_it() {
    let mut ops = SessionOps::default();
    let [query, read] = [("sql", "SELECT 1"), ("cache", "read")]
        .map(|(kind, text)| ops.number(kind, text.as_bytes()));
    ops.begin_request(RequestNumber(1));
    for request in [RequestNumber(1), RequestNumber::NONE] {
        ops.add(read, request, &call(10, 4, 3));
    }
    ops.add(OpNumber::NONE, RequestNumber::NONE, &call(10, 4, 3));
    ops.told(true);
    ops.add(query, RequestNumber::NONE, &call(10, 4, 3));
    let counted = |kind| ops.calls(kind).collect::<Vec<_>>();
    let (select, read) = (("[SQL] SELECT ?", 1), ("[cache] read", 2));
    assert_eq!(counted(None), [select, read]);
    assert_eq!(counted(Some("SQL")), [select]);
    assert_eq!(counted(Some("Cache")), [read]);
    assert_eq!(counted(Some("mail")), []);
}
