//! Which process has the number of a loopback port that can't be had, as far as Linux tells. On the
//! Ruby thread that opens the port.

use rperf_session::process_id::parent;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// The sockets of this network namespace, with the users that they belong to.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// The state of a socket that listens, as the tables write it.
const LISTENS: &str = "0A";

/// More generations than anybody has.
const GENERATIONS: usize = 64;

/// A socket that listens.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    /// The user that it belongs to.
    pub uid: u32,
    inode: u64,
}

impl Holder {
    /// The socket that listens at the loopback port `number`, if Linux tells.
    #[expect(clippy::disallowed_methods, reason = "files of the kernel's")]
    pub fn of(number: u16) -> Option<Self> {
        let mut tables = TABLES.iter().filter_map(|it| fs::read_to_string(it).ok());
        tables.find_map(|table| in_table(&table, number))
    }

    /// Whether a process has it that has started this one, or the one that did: then the address was
    /// meant for that one, and this one has inherited it.
    pub fn is_of_ancestor(&self) -> bool {
        let own = std::process::id() as i32;
        let ancestors = std::iter::successors(parent(own), |pid| parent(*pid));
        let name = format!("socket:[{}]", self.inode);
        ancestors.take(GENERATIONS).any(|pid| {
            let files = fs::read_dir(format!("/proc/{pid}/fd"));
            let mut files = files.into_iter().flatten().flatten();
            files.any(|file| fs::read_link(file.path()).is_ok_and(|it| it == Path::new(&name)))
        })
    }
}

/// A holder of the loopback address, or of all addresses.
fn in_table(table: &str, number: u16) -> Option<Holder> {
    let mut lines = table.lines().skip(1).map(|line| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let (address, port) = words.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(port, 16).ok()? == number && is_here(address);
        (is_it && words.get(3) == Some(&LISTENS)).then_some(())?;
        Some(Holder {
            uid: words.get(7)?.parse().ok()?,
            inode: words.get(9)?.parse().ok()?,
        })
    });
    lines.find_map(|holder| holder)
}

fn is_here(address: &str) -> bool {
    let loopback = u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets());
    address.ends_with(&format!("{loopback:08X}")) || address.bytes().all(|it| it == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::Uid;
    use std::net::TcpListener;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_socket_that_listens_has_a_holder() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let number = listener.local_addr().expect("one").port();
        let holder = Holder::of(number).expect("known");
        assert_eq!(holder.uid, Uid::effective().as_raw());
        assert!(!holder.is_of_ancestor());
        drop(listener);
        assert_eq!(Holder::of(number), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_tables_have_other_sockets_too() {
        let line = |address: &str, state: &str| {
            let rest = "00000000:00000000 00:00000000 00000000  1000        0 4321 1 0";
            format!("head\n   0: {address} 00000000:0000 {state} {rest}\n")
        };
        let expected = Holder {
            uid: 1000,
            inode: 4321,
        };
        for (address, state, is_it) in [
            ("0100007F:17AC", "0A", true),
            ("00000000:17AC", "0A", true),
            ("0000000000000000FFFF00000100007F:17AC", "0A", true),
            ("0200007F:17AC", "0A", false),
            ("0100007F:17AD", "0A", false),
            ("0100007F:17AC", "01", false),
        ] {
            let found = in_table(&line(address, state), 6060);
            assert_eq!(
                found.as_ref() == Some(&expected),
                is_it,
                "{address} {state}"
            );
        }
        assert_eq!(in_table("head\nodd\n", 6060), None);
    }
}
