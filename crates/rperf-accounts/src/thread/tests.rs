//! Tests of a thread's accounts: by hand, and at random against sums that are taken piece by piece.

use super::*;

const MAIN: FiberWord = FiberWord(8);
const OTHER: FiberWord = FiberWord(16);

fn at(now_ns: u64) -> Moment {
    Moment {
        now_ns,
        objects: now_ns / 10,
        waits_ns: Some(2 * now_ns),
    }
}

#[test]
fn an_account_has_each_state() {
    let mut thread = ThreadAccounts::default();
    let opened = thread.open(MAIN, false, at(1_000));
    thread.collected(30);
    thread.suspended(at(1_100));
    thread.resumed(at(1_600), Some(1_400));
    let figures = thread.close(&opened, MAIN, at(1_650)).expect("it was open");
    let sums = Sums {
        running_ns: 70 + 50,
        gvl_wait_ns: 200,
        blocked_ns: 300,
        gc_ns: 30,
        gvl_blame_ns: 2 * 150,
        hand_overs: 1,
        allocated_objects: 10 + 5,
    };
    let expected = Figures {
        wall_ns: 650,
        sums,
        suspended_ns: 0,
        cpu_ns: None,
        is_alone: true,
    };
    assert_eq!(figures, expected);
    assert!(thread.is_done());
}

#[test]
fn what_other_fibers_do_is_time_in_which_it_is_suspended() {
    let mut thread = ThreadAccounts::default();
    let outer = thread.open(MAIN, false, at(0));
    thread.switched(OTHER, at(100));
    let inner = thread.open(OTHER, false, at(100));
    thread.suspended(at(150));
    thread.resumed(at(250), None);
    assert_eq!(
        thread
            .so_far(&outer, at(260), None)
            .map(|it| it.suspended_ns),
        Some(160)
    );
    thread.switched(MAIN, at(300));
    let outer = thread.close(&outer, MAIN, at(310)).expect("it was open");
    assert_eq!((outer.wall_ns, outer.suspended_ns), (310, 200));
    assert_eq!((outer.sums.running_ns, outer.sums.hand_overs), (110, 0));
    thread.switched(OTHER, at(400));
    let inner = thread.close(&inner, OTHER, at(410)).expect("it was open");
    assert_eq!((inner.wall_ns, inner.suspended_ns), (310, 100));
    assert_eq!((inner.sums.running_ns, inner.sums.blocked_ns), (110, 100));
}

#[test]
fn an_account_that_ends_in_another_fiber_says_nothing() {
    let mut thread = ThreadAccounts::default();
    let opened = thread.open(MAIN, false, at(0));
    assert_eq!(thread.close(&opened, OTHER, at(10)), None);
    assert!(thread.is_done());
    assert_eq!(thread.close(&opened, MAIN, at(10)), None, "it is closed");
}

#[test]
fn an_account_that_is_given_up_is_forgotten_and_no_other_one_of_such_a_fiber() {
    let mut thread = ThreadAccounts::default();
    let given_up = thread.open(OTHER, false, at(0));
    let other = thread.open(OTHER, false, at(10));
    thread.forget(&given_up);
    thread.forget(&given_up);
    assert_eq!(thread.close(&given_up, OTHER, at(15)), None);
    let figures = thread.close(&other, OTHER, at(20));
    assert_eq!(figures.map(|it| it.wall_ns), Some(10));
    assert!(thread.is_done());
}

#[test]
fn an_open_account_is_asked_from_another_thread() {
    let mut thread = ThreadAccounts::default();
    let opened = thread.open(MAIN, false, at(0));
    thread.suspended(at(10));
    let waits = thread
        .so_far(&opened, at(50), Some(30))
        .expect("it is open");
    assert_eq!((waits.sums.blocked_ns, waits.sums.gvl_wait_ns), (20, 20));
    let sleeps = thread.so_far(&opened, at(50), None).expect("it is open");
    assert_eq!((sleeps.sums.blocked_ns, sleeps.wall_ns), (40, 50));
}

#[test]
fn times_that_go_back_and_sums_that_cant_be_read_do_no_harm() {
    let mut thread = ThreadAccounts::default();
    let opened = thread.open(MAIN, false, at(100));
    thread.collected(1_000);
    let unread = Moment {
        waits_ns: None,
        ..at(150)
    };
    thread.switched(MAIN, unread);
    thread.suspended(at(120));
    thread.resumed(at(140), Some(90));
    thread.resumed(at(141), Some(90));
    let figures = thread.close(&opened, MAIN, at(160)).expect("it was open");
    assert_eq!(figures.wall_ns, 60);
    assert_eq!(figures.sums.wall_ns(), 60);
    assert_eq!(figures.sums.gc_ns, 50, "no more than has passed");
}

/// What a thread did in a stretch of time, and in which fiber.
struct Piece {
    fiber: FiberWord,
    sums: Sums,
}

/// The pieces since the first account was opened, from which accounts are summed up one by one.
struct Truth {
    pieces: Vec<Piece>,
    open: Vec<(Opened, usize, u64)>,
}

#[test]
fn states_add_up_in_a_million_random_requests() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    // xorshift64 (Marsaglia, 2003).
    let mut pick = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut checked = 0;
    while checked < 1_000_000 {
        let mut now = 1 + pick(1_000_000);
        let mut thread = ThreadAccounts::default();
        let mut fiber = MAIN;
        let mut truth = Truth {
            pieces: Vec::new(),
            open: Vec::new(),
        };
        for _ in 0..40 {
            let length = pick(1_000);
            match pick(8) {
                0 | 1 => {
                    truth
                        .open
                        .push((thread.open(fiber, false, at(now)), truth.pieces.len(), now))
                }
                2 | 3 => {
                    // A fiber ends its own accounts, the last one first.
                    let last = truth.open.iter().rposition(|it| it.0.fiber() == fiber);
                    if let Some(last) = last {
                        let (opened, from, since) = truth.open.remove(last);
                        let figures = thread.close(&opened, fiber, at(now)).expect("it is open");
                        check(&figures, &truth.pieces[from..], fiber, now - since);
                        checked += 1;
                    }
                }
                4 => {
                    fiber = FiberWord(8 * (1 + pick(4) as usize));
                    thread.switched(fiber, at(now));
                }
                5 => {
                    let gc = pick(length + 1);
                    thread.collected(gc);
                    let before = now;
                    now += length;
                    thread.switched(fiber, at(now));
                    truth.pieces.push(Piece {
                        fiber,
                        sums: Sums {
                            running_ns: length - gc,
                            gc_ns: gc,
                            ..held(before, now)
                        },
                    });
                }
                6 => {
                    thread.suspended(at(now));
                    let blocked = pick(length + 1);
                    let ready = now + blocked;
                    now += length;
                    thread.resumed(at(now), Some(ready));
                    truth.pieces.push(Piece {
                        fiber,
                        sums: Sums {
                            blocked_ns: blocked,
                            gvl_wait_ns: length - blocked,
                            hand_overs: 1,
                            ..Sums::default()
                        },
                    });
                }
                _ => {
                    let before = now;
                    now += length;
                    truth.pieces.push(Piece {
                        fiber,
                        sums: Sums {
                            running_ns: length,
                            ..held(before, now)
                        },
                    });
                    thread.switched(fiber, at(now));
                }
            }
        }
    }
}

/// What passes with the GVL, beside time.
fn held(from: u64, to: u64) -> Sums {
    Sums {
        gvl_blame_ns: 2 * (to - from),
        allocated_objects: at(to).objects - at(from).objects,
        ..Sums::default()
    }
}

fn check(figures: &Figures, pieces: &[Piece], fiber: FiberWord, wall_ns: u64) {
    let mut expected = Figures {
        wall_ns,
        is_alone: true,
        ..Figures::default()
    };
    for piece in pieces {
        if piece.fiber == fiber {
            expected.sums = expected.sums.plus(&piece.sums);
        } else {
            expected.suspended_ns += piece.sums.wall_ns();
        }
    }
    assert_eq!(figures, &expected);
    assert_eq!(figures.sums.wall_ns() + figures.suspended_ns, wall_ns);
}

#[test]
fn ops_belong_to_all_open_accounts_of_their_fiber_that_tell_of_them() {
    let mut thread = ThreadAccounts::default();
    let [query, read] = ["query", "read"].map(Arc::<str>::from);
    let time = |wall_ns| OpTime {
        wall_ns,
        own_ns: wall_ns,
    };
    let outer = thread.open(MAIN, true, at(0));
    thread.switched(MAIN, at(5));
    let silent = thread.open(MAIN, false, at(0));
    thread.add_op(MAIN, &query, time(5));
    let inner = thread.open(MAIN, true, at(10));
    thread.switched(MAIN, at(12));
    thread.add_op(MAIN, &query, time(7));
    thread.add_op(MAIN, &read, time(1));
    thread.add_op(OTHER, &read, time(100));
    let told = |thread: &ThreadAccounts, opened| {
        let ops = thread.ops(opened).map(AccountOps::sorted)?;
        Some(
            ops.into_iter()
                .map(|it| (it.name, it.calls, it.time))
                .collect::<Vec<_>>(),
        )
    };
    let (query, read) = (
        |calls, ns| (query.clone(), calls, time(ns)),
        (read, 1, time(1)),
    );
    assert_eq!(told(&thread, &inner), Some(vec![query(1, 2), read.clone()]));
    assert_eq!(told(&thread, &silent), None);
    thread.close(&inner, MAIN, at(20));
    assert_eq!(told(&thread, &inner), None);
    assert_eq!(told(&thread, &outer), Some(vec![query(2, 12), read]));
    assert_eq!(thread.take_ops(&outer).map(|it| it.sorted().len()), Some(2));
    assert!(thread.take_ops(&outer).is_none() && thread.ops(&outer).is_none());
}
