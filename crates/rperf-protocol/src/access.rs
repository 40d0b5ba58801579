//! Who may ask over TCP. Every local user can connect to a loopback address, and so can the pages of
//! any site in a browser: so a request must have the token, and no sign of a page. Any thread.

use crate::message::Request;
use crate::refusal::{Code, Refusal};
use nix::fcntl::OFlag;
use nix::unistd::Uid;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The variable that has the token.
pub const VARIABLE: &str = "RPERF_LISTEN_TOKEN";

/// The variable that has the path of a file with the token. Programs that are started inherit the
/// path, and not the token.
pub const FILE_VARIABLE: &str = "RPERF_LISTEN_TOKEN_FILE";

/// Rights of others at a file with a token.
const OF_OTHERS: u32 = 0o077;

/// Bytes of a token that is made: nobody can guess it.
const RANDOM_BYTES: usize = 16;

/// Characters of a token that the user has chosen.
const LEAST: usize = 16;
const MOST: usize = 256;

/// Names of this machine.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The user's can't be one.
    #[error("{VARIABLE} must have {LEAST} to {MOST} letters, digits, '-', '_' or '.'")]
    Unfit,
    /// Both variables are set.
    #[error("{VARIABLE} and {FILE_VARIABLE} can't both be set")]
    Both,
    /// The file can't be read.
    #[error("{FILE_VARIABLE}: can't read {} ({error})", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Others have a hand in the file.
    #[error("{FILE_VARIABLE}: {} must be a file of yours with mode 600", .0.display())]
    NotPrivate(PathBuf),
    /// There is no token in it.
    #[error("{FILE_VARIABLE}: {} must have {LEAST} to {MOST} letters, digits, '-', '_' or '.'", .0.display())]
    UnfitFile(PathBuf),
    /// The system gives no random bytes.
    #[error("can't make a token ({0})")]
    Io(#[from] io::Error),
}

/// What a request over TCP has to have.
#[derive(Clone)]
pub struct Token {
    text: String,
    is_made: bool,
}

impl Token {
    /// The one in the environment, or in the file that it names, or a new one.
    pub fn of_environment() -> Result<Self, TokenError> {
        let variable = |name| std::env::var_os(name).filter(|text| !text.is_empty());
        match (variable(VARIABLE), variable(FILE_VARIABLE)) {
            (Some(_), Some(_)) => Err(TokenError::Both),
            (Some(text), None) => Self::given(text.to_str().unwrap_or_default()),
            (None, Some(path)) => Self::in_file(path),
            (None, None) => Ok(Self::make()?),
        }
    }

    fn in_file(path: OsString) -> Result<Self, TokenError> {
        let path = PathBuf::from(path);
        let content = private_content(&path).map_err(|error| TokenError::Unreadable {
            path: path.clone(),
            error,
        })?;
        let Some(content) = content else {
            return Err(TokenError::NotPrivate(path));
        };
        let text = String::from_utf8(content).unwrap_or_default();
        Self::given(text.trim_end()).map_err(|_| TokenError::UnfitFile(path))
    }

    fn given(text: &str) -> Result<Self, TokenError> {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match (LEAST..=MOST).contains(&text.len()) && text.bytes().all(is_fit) {
            true => Ok(Token {
                text: text.into(),
                is_made: false,
            }),
            false => Err(TokenError::Unfit),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a device of the system's")]
    fn make() -> io::Result<Self> {
        let mut bytes = [0; RANDOM_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Token {
            text: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            is_made: true,
        })
    }

    /// The token as it is written to a file; `None` if the user has given it and so knows it.
    pub fn to_tell(&self) -> Option<String> {
        self.is_made.then(|| format!("{}\n", self.text))
    }

    /// Why the request is not to be answered, if it isn't.
    pub fn refusal(&self, request: &Request) -> Option<Refusal> {
        if !request.host.as_deref().is_some_and(is_loopback) {
            let hint = "ask for http://127.0.0.1, or make a tunnel with ssh -L";
            let error = "the Host of this request is no name of this machine";
            return Some(Refusal::new(Code::Forbidden, error, hint));
        }
        if request.has_origin {
            let hint = "ask with curl, with Go's tools or with rperf";
            let error = "pages of web sites get nothing here";
            return Some(Refusal::new(Code::Forbidden, error, hint));
        }
        let is_right = request.authorization.as_deref().and_then(password);
        if is_right.is_some_and(|found| is_same(&found, self.text.as_bytes())) {
            return None;
        }
        let hint = "send 'Authorization: Bearer TOKEN', with curl as -H @FILE: lists of processes show URLs";
        Some(Refusal::new(Code::NeedsToken, "this needs the token", hint))
    }
}

/// What is in the file, as far as a token can have it, if it is this user's or root's, and nobody else
/// has rights at it. What was opened is looked at, and not waited for if it is a pipe.
fn private_content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    let found = file.metadata()?;
    let is_own = [0, Uid::effective().as_raw()].contains(&found.uid());
    if !found.is_file() || !is_own || found.mode() & OF_OTHERS != 0 {
        return Ok(None);
    }
    let mut content = Vec::new();
    file.take(2 * MOST as u64).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Error messages and logs don't get it.
impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

/// Whether the value of Host names this machine. Its port may be another one, if it is forwarded.
pub fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let mut names = LOOPBACK.iter();
    names.any(|it| it.eq_ignore_ascii_case(name))
}

/// What is to be the token in the value of Authorization: for Basic, the password.
fn password(value: &str) -> Option<Vec<u8>> {
    let (scheme, rest) = value.trim().split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.into());
    }
    let pair = decoded(rest).filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let colon = pair.iter().position(|&byte| byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

/// Base64.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').bytes().map(|byte| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    });
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    let bytes = digits.chunks(4).flat_map(|some| {
        let bits = |place: usize| u32::from(some.get(place).copied().unwrap_or(0));
        let whole = bits(0) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3);
        let bytes = whole.to_be_bytes();
        bytes.into_iter().skip(1).take(some.len() - 1)
    });
    Some(bytes.collect())
}

/// Takes as long for one that is nearly right as for any other of that length.
fn is_same(found: &[u8], right: &[u8]) -> bool {
    if found.len() != right.len() {
        return false;
    }
    let pairs = found.iter().zip(right);
    let difference = pairs.fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::parse_request;

    const TOKEN: &str = "0123456789abcdef";

    fn status(headers: &str) -> Option<u16> {
        let text = format!("GET / HTTP/1.1\r\n{headers}\r\n");
        let (request, _) = parse_request(text.as_bytes()).expect("one").expect("whole");
        let token = Token::given(TOKEN).expect("a token");
        token.refusal(&request).map(|it| it.code.status())
    }

    #[test]
    fn only_who_has_the_token_is_answered_and_no_page() {
        let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
        // rperf:0123456789abcdef and :0123456789abcdef
        let basic = "Authorization: Basic cnBlcmY6MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
        let nobody = "authorization: basic OjAxMjM0NTY3ODlhYmNkZWY=\r\n";
        for host in [
            "127.0.0.1:6060",
            "localhost",
            "LocalHost:1",
            "[::1]:9",
            "[::1]",
        ] {
            for right in [&*bearer, basic, nobody] {
                assert_eq!(
                    status(&format!("Host: {host}\r\n{right}")),
                    None,
                    "{host} {right}"
                );
            }
        }
        let local = "Host: localhost\r\n";
        for wrong in [
            "",
            "Authorization: Bearer\r\n",
            "Authorization: Bearer 0123456789abcdeF\r\n",
            "Authorization: Bearer 0123456789abcdef0\r\n",
            "Authorization: Basic 0123456789abcdef\r\n",
            "Authorization: Basic ====\r\n",
            "Authorization: Basic !\r\n",
            "Authorization: Basic A\r\n",
            "Authorization: Digest 0123456789abcdef\r\n",
        ] {
            assert_eq!(status(&format!("{local}{wrong}")), Some(401), "{wrong}");
        }
        for odd in [
            "",
            "Host: evil.example\r\n",
            "Host: 127.0.0.1.evil.example\r\n",
            "Host: localhost:x\r\n",
            "Host: localhost\r\nOrigin: http://localhost\r\n",
            "Host: localhost\r\nOrigin: null\r\n",
        ] {
            assert_eq!(status(&format!("{odd}{bearer}")), Some(403), "{odd}");
        }
    }

    #[test]
    fn a_token_is_in_a_private_file() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        let token = |content: &str, mode: u32| {
            std::fs::write(&path, content).expect("written");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("permissions");
            Token::in_file(path.clone().into())
        };
        let found = token(&format!("{TOKEN}\n"), 0o600).expect("a token");
        assert_eq!((&*found.text, found.to_tell()), (TOKEN, None));
        for mode in [0o604, 0o640, 0o620, 0o666] {
            assert!(
                matches!(token(TOKEN, mode), Err(TokenError::NotPrivate(_))),
                "{mode:o}"
            );
        }
        for odd in ["", "short", &"x".repeat(100_000)] {
            assert!(matches!(token(odd, 0o600), Err(TokenError::UnfitFile(_))));
        }
        let at = |path: &Path| Token::in_file(path.into());
        assert!(matches!(
            at(directory.path()),
            Err(TokenError::NotPrivate(_))
        ));
        assert!(matches!(
            at(Path::new("/no/token")),
            Err(TokenError::Unreadable { .. })
        ));
    }

    #[test]
    fn base64_is_read() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
            ("Pz8/Pj4+", "???>>>"),
        ] {
            assert_eq!(decoded(text).expect("read"), bytes.as_bytes(), "{text}");
        }
    }

    #[test]
    fn tokens_are_long_enough_and_unlike() {
        let [one, other] = [(); 2].map(|()| Token::make().expect("made"));
        assert_eq!(one.text.len(), 2 * RANDOM_BYTES);
        assert_ne!(one.text, other.text);
        assert_eq!(one.to_tell(), Some(format!("{}\n", one.text)));
        assert_eq!(Token::given(TOKEN).expect("a token").to_tell(), None);
        assert!(!format!("{one:?}").contains(&one.text));
        for odd in [
            "short",
            "with a blank in it",
            "with:colon0123456",
            &"x".repeat(257),
            "größer-als-ascii0",
        ] {
            assert!(Token::given(odd).is_err(), "{odd}");
        }
    }
}
