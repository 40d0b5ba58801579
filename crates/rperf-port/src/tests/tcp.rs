//! The port at a loopback address.

use super::*;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};

struct Tcp {
    opened: Opened,
    number: u16,
    token: String,
}

fn opened_over_tcp() -> Tcp {
    let turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|broken| broken.into_inner());
    let directory = tempfile::tempdir().expect("a directory");
    let path = open(Some(directory.path()), Some(0), program()).expect("opened");
    let told = fs::read_to_string(path.with_extension("token")).expect("told");
    Tcp {
        number: number().expect("a number"),
        token: told.trim_end().into(),
        opened: Opened {
            path,
            _directory: directory,
            _turn: turn,
        },
    }
}

impl Tcp {
    fn connect(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.number)).expect("connected")
    }

    /// All that comes back until the port ends the connection.
    fn talk(&self, headers: &str) -> String {
        let mut stream = self.connect();
        let text = format!("GET /v1/hello HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(text.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn right(&self) -> String {
        format!(
            "Host: localhost\r\nAuthorization: Bearer {}\r\n",
            self.token
        )
    }
}

#[test]
fn who_has_the_token_is_answered_over_tcp() {
    use std::os::unix::fs::PermissionsExt;
    let port = opened_over_tcp();
    let told = port.opened.path.with_extension("token");
    let mode = fs::metadata(&told).expect("told").permissions().mode();
    assert_eq!((mode & 0o777, port.token.len()), (0o600, 32));
    let answer = port.talk(&port.right());
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let number = format!("\"tcp\":{}", port.number);
    assert!(answer.contains(&number), "{answer}");
    for (headers, status) in [
        ("Host: localhost\r\n".to_string(), 401),
        (port.right().replace("localhost", "evil.example"), 403),
        (format!("{}Origin: null\r\n", port.right()), 403),
    ] {
        let answer = port.talk(&headers);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(!answer.contains("3.4.5") && !answer.contains("Access-Control"));
        assert_eq!(answer.contains("WWW-Authenticate"), status == 401);
    }
    close();
    assert!(!told.exists() && !port.opened.path.exists());
    let gone = || TcpStream::connect((Ipv4Addr::LOCALHOST, port.number)).is_err();
    let began = Instant::now();
    while !gone() {
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn those_without_a_token_take_nobodys_place() {
    let port = opened_over_tcp();
    let _silent: Vec<_> = (0..20).map(|_| port.connect()).collect();
    let mut client = Client::connect(&port.opened.path).expect("connected");
    client.hello().expect("an answer");
}

#[test]
fn what_is_open_without_tcp_stays_so() {
    let port = opened();
    let error = open(None, Some(0), program()).expect_err("refused");
    assert!(matches!(error, OpenError::WithoutTcp), "{error}");
    assert_eq!((path(), number()), (Some(port.path.clone()), None));
}

#[test]
fn an_address_that_somebody_has_is_refused_and_nothing_is_left() {
    let others = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    let taken = others.local_addr().expect("an address").port();
    let _turn = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|broken| broken.into_inner());
    let directory = tempfile::tempdir().expect("a directory");
    let error = open(Some(directory.path()), Some(taken), program()).expect_err("refused");
    let expected = format!("can't listen at 127.0.0.1:{taken} (");
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert_eq!(
        fs::read_dir(directory.path()).expect("a directory").count(),
        0
    );
    assert_eq!(path(), None);
}
