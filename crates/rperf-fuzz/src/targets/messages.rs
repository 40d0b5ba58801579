//! What goes over a port: requests to it, and what a program answers that is watched.

use rperf_protocol::ask::Sampling;
use rperf_protocol::delta::Delta;
use rperf_protocol::hello::Hello;
use rperf_protocol::json;
use rperf_protocol::message::{parse_reply, parse_request};
use rperf_protocol::refusal::Refusal;
use rperf_protocol::stacks::Stacks;
use rperf_watch::sums::{Extent, Sums};

/// Pages of a table, as a program has them; two in one input follow each other.
pub fn deltas() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../../rperf-protocol/golden/delta.bin").to_vec()]
}

/// Each half of the input is a page, and so is the whole.
pub fn read_deltas(input: &[u8]) {
    let mut sums = Sums::default();
    let process = sums.add_process(1, "program");
    sums.begin(process);
    for piece in [input, input] {
        let Ok(delta) = Delta::from_bytes(piece) else {
            return;
        };
        if sums.take(process, delta).is_err() {
            break;
        }
        sums.end_interval(process, 1, 0);
    }
    for node in sums.children(0).collect::<Vec<_>>() {
        let _ = sums.method(node);
    }
    let profile = sums.profile(Extent::Watched, None);
    if let Some(profile) = profile {
        assert_eq!(profile.check(), Ok(()));
    }
}

pub fn requests() -> Vec<Vec<u8>> {
    [
        "GET /stacks?fibers=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /profile?seconds=5&mode=cpu&frequency=100 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\
         Authorization: Basic cnBlcmY6dG9rZW4=\r\nConnection: close\r\n\r\n",
        "POST /stop HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 3\r\nOrigin: http://a\r\n\r\nabc",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

pub fn read_request(input: &[u8]) {
    match parse_request(input) {
        Ok(Some((request, length))) => {
            assert!(length <= input.len());
            for name in ["seconds", "mode", "frequency"] {
                let _ = request.parameter(name);
            }
            let _ = Sampling::of(&request);
        }
        Ok(None) => {}
        Err(refusal) => assert!(!refusal.response(true).is_empty()),
    }
}

pub fn replies() -> Vec<Vec<u8>> {
    let mut replies = vec![
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            .to_vec(),
    ];
    replies.push(include_bytes!("../../../rperf-protocol/golden/refusal.http").to_vec());
    replies
}

pub fn read_reply(input: &[u8]) {
    let _ = parse_reply(input);
    let _ = Refusal::read(503, input);
}

pub fn answers() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../../rperf-protocol/golden/hello.json").to_vec(),
        include_bytes!("../../../rperf-protocol/golden/least_hello.json").to_vec(),
        include_bytes!("../../../rperf-protocol/golden/stacks.json").to_vec(),
    ]
}

pub fn read_answer(input: &[u8]) {
    let _ = json::read::<Hello>(input);
    let _ = json::read::<Stacks<'static>>(input);
}
