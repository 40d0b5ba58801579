//! The address that a browser is begun with. Other users see it in the command line, so it leads to
//! the page for a minute, once, and only for this user's own processes, as far as the system tells
//! whose a connection is. Called by `server`, on the threads of its requests.

use nix::unistd::geteuid;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a browser may take to begin.
const OPEN: Duration = Duration::from_secs(60);

/// The connections of this machine, with the users that they belong to. Only Linux has them.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// What a table has in front of an IPv4 address, if it is one of IPv6.
const MAPPED: [u8; 4] = [0, 0, 0xff, 0xff];

/// The state of a connection that both ends have open, as the tables write it.
const ESTABLISHED: &str = "01";

/// The superuser, who sees everything anyway: under WSL a process of his connects for the browser.
const ROOT: u32 = 0;

/// An address that leads in once.
pub struct Entrance {
    path: String,
    until: Instant,
    is_used: bool,
}

impl Entrance {
    /// From now on.
    pub fn open(path: String) -> Self {
        Self {
            path,
            until: Instant::now() + OPEN,
            is_used: false,
        }
    }

    /// Whether this is its path.
    pub fn is_at(&self, path: &str) -> bool {
        path == self.path
    }

    /// Lets in who asks by this connection, if it is open for him, and is closed then.
    pub fn admit(&mut self, stream: &TcpStream) -> bool {
        let is_open = !self.is_used && Instant::now() < self.until && is_own(stream);
        self.is_used |= is_open;
        is_open
    }
}

/// Whether the other end belongs to this user; true if the system doesn't tell.
#[expect(clippy::disallowed_methods, reason = "files of the kernel's")]
fn is_own(stream: &TcpStream) -> bool {
    let has_tables = TABLES.iter().any(|it| File::open(it).is_ok());
    !has_tables || user(stream).is_some_and(is_trusted)
}

/// Whether the other end is known to belong to another user. A table that changes while it is read
/// can lack a connection.
pub fn is_of_other(stream: &TcpStream) -> bool {
    user(stream).is_some_and(|user| !is_trusted(user))
}

fn is_trusted(user: u32) -> bool {
    [geteuid().as_raw(), ROOT].contains(&user)
}

/// Whose the other end is, if the system tells.
#[expect(clippy::disallowed_methods, reason = "files of the kernel's")]
fn user(stream: &TcpStream) -> Option<u32> {
    let (near, far) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    let mut tables = TABLES.iter().filter_map(|it| File::open(it).ok());
    tables.find_map(|table| {
        let lines = BufReader::new(table).lines().map_while(Result::ok);
        owner(lines, far, near)
    })
}

/// The user whose end of a connection is `far`, if the table has it.
fn owner(table: impl Iterator<Item = String>, far: SocketAddr, near: SocketAddr) -> Option<u32> {
    let (far, near) = (forms(far)?, forms(near)?);
    let mut users = table.filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (its_near, its_far, state) = (words.next()?, words.next()?, words.next()?);
        let is_it = far
            .iter()
            .zip(&near)
            .any(|it| it == (&its_near.into(), &its_far.into()));
        // One whose other end has been closed belongs to nobody, and so to number 0. Queues, timer and
        // retransmissions are in between.
        (is_it && state == ESTABLISHED).then(|| words.nth(3)?.parse().ok())?
    });
    users.next()
}

/// An address as the tables write it: numbers of 32 bits as they are in memory, and the port.
fn forms(address: SocketAddr) -> Option<[String; 2]> {
    let SocketAddr::V4(address) = address else {
        return None;
    };
    let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
    let short = format!("{}:{:04X}", word(address.ip().octets()), address.port());
    let none = word(Ipv4Addr::UNSPECIFIED.octets());
    Some([format!("{none}{none}{}{short}", word(MAPPED)), short])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener};

    #[test]
    fn a_connection_s_other_end_has_an_owner() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("one")).expect("a server");
        let (stream, _) = listener.accept().expect("a client");
        assert!(is_own(&stream) && !is_of_other(&stream));
        let mut entrance = Entrance::open("/x/".into());
        assert!(entrance.is_at("/x/") && !entrance.is_at("/y/"));
        assert!(entrance.admit(&stream) && !entrance.admit(&stream));
        let mut over = Entrance {
            until: Instant::now(),
            ..Entrance::open("/x/".into())
        };
        assert!(!over.admit(&stream));
        // Closing it isn't enough while a process that another test has just forked holds a copy.
        client.shutdown(Shutdown::Both).expect("a connection");
        assert!(!cfg!(target_os = "linux") || !is_own(&stream));
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_tables_tell_whose_it_is() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                    uid  timeout inode";
        let line_in = |state: &str, near: &str, far: &str, user: u32| {
            let rest = "00000000:00000000 00:00000000 00000000";
            format!("   7: {near} {far} {state} {rest} {user:5} 0 1 1 0")
        };
        let line = |near: &str, far: &str, user: u32| line_in("01", near, far, user);
        let far = "127.0.0.1:50000".parse().expect("an address");
        let near = "127.0.0.1:8000".parse().expect("an address");
        let of = |lines: &[String]| {
            let head = std::iter::once(head.to_string());
            owner(head.chain(lines.iter().cloned()), far, near)
        };
        // The server's own end isn't it, nor is another connection from there, nor one that was closed.
        let others = [
            line("0100007F:1F40", "0100007F:C350", 1),
            line("0100007F:C350", "0100007F:1F41", 2),
            line_in("04", "0100007F:C350", "0100007F:1F40", 0),
        ];
        assert_eq!(of(&others), None);
        let it = line("0100007F:C350", "0100007F:1F40", 1000);
        assert_eq!(of(&[&others[..], &[it]].concat()), Some(1000));
        let prefix = "0000000000000000FFFF0000";
        let it = line(
            &format!("{prefix}0100007F:C350"),
            &format!("{prefix}0100007F:1F40"),
            1001,
        );
        assert_eq!(of(&[it]), Some(1001));
        assert_eq!(
            of(&["".into(), "7: 0100007F:C350 0100007F:1F40 01".into()]),
            None
        );
    }
}
