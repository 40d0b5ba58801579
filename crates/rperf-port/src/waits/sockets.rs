//! What the descriptors of this process are, for people: the other end of a socket, where it
//! listens, or what a file is called. On the port's thread; nothing where there is no /proc.

use nix::sys::socket::sockopt::AcceptConn;
use nix::sys::socket::{
    SockaddrIn, SockaddrIn6, SockaddrLike, UnixAddr, getpeername, getsockname, getsockopt,
};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{BorrowedFd, RawFd};

/// The kernel's lists of TCP sockets, of which no more is read than some thousand lines.
const TCP: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
const MOST: u64 = 1 << 20;

/// What the kernel calls a connection whose peer hasn't answered.
const CONNECTING: &str = "02";

/// Describes descriptors in a row: the kernel's lists are read once, and only if they are needed.
#[derive(Default)]
pub struct Sockets {
    /// The peers of those that are being connected, by their inodes.
    peers: OnceCell<HashMap<u64, SocketAddr>>,
}

impl Sockets {
    /// What the descriptor is; empty if there is none.
    pub fn describe(&self, number: RawFd) -> String {
        let Ok(link) = fs::read_link(format!("/proc/self/fd/{number}")) else {
            return String::new();
        };
        let name = link.to_string_lossy();
        let Some(inode) = name.strip_prefix("socket:[") else {
            return name.into_owned();
        };
        let inode = inode.trim_end_matches(']').parse().ok();
        inode
            .and_then(|inode| self.socket(number, inode))
            .unwrap_or_else(|| "socket".into())
    }

    fn socket(&self, number: RawFd, inode: u64) -> Option<String> {
        if let Some(peer) = name(
            getpeername::<SockaddrIn>(number),
            getpeername::<SockaddrIn6>(number),
            getpeername::<UnixAddr>(number),
        ) {
            return Some(peer);
        }
        let own = name(
            getsockname::<SockaddrIn>(number),
            getsockname::<SockaddrIn6>(number),
            getsockname::<UnixAddr>(number),
        )?;
        // SAFETY: the kernel is asked once, and says no if the program has closed it.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        if getsockopt(&socket, AcceptConn) == Ok(true) {
            return Some(format!("listens at {own}"));
        }
        let peers = self.peers.get_or_init(peers);
        Some(peers.get(&inode).map_or_else(
            || format!("socket at {own}"),
            |peer| format!("connects to {peer}"),
        ))
    }
}

/// The address that there is, if it says anything.
fn name(
    four: nix::Result<SockaddrIn>,
    six: nix::Result<SockaddrIn6>,
    unix: nix::Result<UnixAddr>,
) -> Option<String> {
    let of_port = |port: u16, address: &dyn Display| (port > 0).then(|| address.to_string());
    match (four, six, unix) {
        (Ok(it), ..) => of_port(it.port(), &it),
        (_, Ok(it), _) => of_port(it.port(), &it),
        (.., Ok(it)) if it.len() as usize > size_of::<libc::sa_family_t>() => Some(it.to_string()),
        _ => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "files of the kernel's")]
fn peers() -> HashMap<u64, SocketAddr> {
    let mut found = HashMap::new();
    for path in TCP {
        let mut lines = String::new();
        let file = File::open(path);
        let _ = file.and_then(|file| file.take(MOST).read_to_string(&mut lines));
        found.extend(lines.lines().filter_map(peer));
    }
    found
}

/// The inode and the peer in a line, if the socket is connecting. A line has a number, own address,
/// peer, state, three other words, who owns it, another, inode.
fn peer(line: &str) -> Option<(u64, SocketAddr)> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let (address, state) = (words.next()?, words.next()?);
    if state != CONNECTING {
        return None;
    }
    let inode = words.nth(5)?.parse().ok()?;
    let (address, port) = address.split_once(':')?;
    let parts = address.as_bytes().chunks(8).map(|part| {
        let number = u32::from_str_radix(str::from_utf8(part).ok()?, 16).ok()?;
        Some(number.to_ne_bytes())
    });
    let bytes = parts.collect::<Option<Vec<_>>>()?.concat();
    let address: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
    };
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((inode, SocketAddr::new(address.to_canonical(), port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn described(io: &impl AsRawFd) -> String {
        Sockets::default().describe(io.as_raw_fd())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn sockets_are_called_by_what_people_know_of_them() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                continue;
            };
            let address = listener.local_addr().expect("an address");
            assert_eq!(described(&listener), format!("listens at {address}"));
            let client = TcpStream::connect(address).expect("connected");
            assert_eq!(described(&client), address.to_string());
        }
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let own = udp.local_addr().expect("an address");
        assert_eq!(described(&udp), format!("socket at {own}"));
        udp.connect("127.0.0.1:9").expect("a peer");
        assert_eq!(described(&udp), "127.0.0.1:9");

        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("it.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let client = UnixStream::connect(&path).expect("connected");
        let (server, _) = listener.accept().expect("a client");
        let path = path.display();
        assert_eq!(described(&listener), format!("listens at {path}"));
        assert_eq!(described(&client), path.to_string());
        assert_eq!(described(&server), format!("socket at {path}"));
        let (one, _other) = UnixStream::pair().expect("a pair");
        assert_eq!(described(&one), "socket");
        assert_eq!(Sockets::default().describe(-1), "");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn peers_that_have_not_answered_are_in_the_kernels_lists() {
        let line = |peer: &str, state: &str| {
            format!(
                "  1: 0100007F:1F90 {peer} {state} 00000001:00000000 01:00000062 00000000 0 0 77 2 0"
            )
        };
        let found = |peer_text: &str| peer(&line(peer_text, CONNECTING));
        let four = "10.0.0.5:5432".parse().expect("an address");
        assert_eq!(found("0500000A:1538"), Some((77, four)));
        let six = "[2001:db8::1]:80".parse().expect("an address");
        assert_eq!(
            found("B80D0120000000000000000001000000:0050"),
            Some((77, six))
        );
        assert_eq!(peer(&line("0500000A:1538", "01")), None);
        assert_eq!(found("0500000A"), None);
        assert_eq!(found("\u{e4}500000A:1538"), None);
        assert_eq!(peer("  sl  local_address rem_address   st tx_queue"), None);
    }
}
