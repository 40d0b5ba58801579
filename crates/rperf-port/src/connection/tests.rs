//! How long clients may take for their answers, and what answers count for meanwhile.

use super::*;
use crate::session::check_room;
use std::os::unix::net::UnixStream;

/// More than the system keeps for a socket.
const LARGE: usize = 8 * 1024 * 1024;

/// A client that is being answered, and its end of the connection.
fn answered(profile: Vec<u8>) -> (Connection, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let socket = Socket::Unix(ours);
    socket.prepare().expect("prepared");
    let mut client = Connection::new(1, Guarded::new(socket), false);
    client.answer_profile(profile);
    (client, theirs)
}

#[test]
fn reading_on_does_not_put_off_the_end_of_an_answer() {
    let (mut client, theirs) = answered(vec![0; LARGE]);
    let due = client.answer.due;
    assert!(due >= Instant::now() + Duration::from_secs(100));
    for _ in 0..3 {
        assert!(client.write() == Fate::Stays);
        (&theirs).read_exact(&mut [0; 65_536]).expect("read");
    }
    assert!(client.write() == Fate::Stays);
    assert_eq!(client.answer.due, due);
    client.since = due;
    assert_eq!(client.deadline(), Some(due));
}

#[test]
fn who_has_not_shown_the_token_has_no_more_time_after_the_first_byte() {
    for needs_token in [true, false] {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let socket = Socket::Unix(ours);
        socket.prepare().expect("prepared");
        let mut client = Connection::new(1, Guarded::new(socket), needs_token);
        let connected = client.since;
        (&theirs).write_all(b"G").expect("sent");
        assert!(client.read() == Fate::Stays);
        let is_as_before = client.deadline() == Some(connected + HEAD);
        assert_eq!(is_as_before, needs_token);
    }
}

#[test]
fn who_takes_in_nothing_has_a_few_seconds() {
    let (mut client, _theirs) = answered(vec![0; LARGE]);
    while !client.answer.has_begun() {
        assert!(client.write() == Fate::Stays);
    }
    assert_eq!(client.deadline(), Some(client.since + STALLED));
}

#[test]
fn profiles_that_nobody_takes_in_count_as_under_way() {
    let (clients, ends): (Vec<_>, Vec<_>) = (0..4).map(|_| answered(vec![0; LARGE])).unzip();
    assert!(check_room(&clients).is_err());
    assert!(check_room(&clients[1..]).is_ok());
    drop(ends);
}

#[test]
fn a_profile_counts_until_it_is_out() {
    let (mut client, _theirs) = answered(vec![0; 100]);
    assert!(client.holds_profile());
    assert!(client.write() == Fate::Stays);
    assert!(!client.holds_profile());
}
