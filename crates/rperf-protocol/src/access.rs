//! Who may ask over TCP. Every local user can connect to a loopback address, and so can the pages of
//! any site in a browser: so a request must have the token, and no sign of a page. Any thread.

use crate::message::Request;
use crate::refusal::{Code, Refusal};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};

/// The variable that has the token.
pub const VARIABLE: &str = "RPERF_LISTEN_TOKEN";

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
    /// The one in the environment, or a new one.
    pub fn of_environment() -> Result<Self, TokenError> {
        let given = std::env::var_os(VARIABLE).filter(|text| !text.is_empty());
        match given {
            Some(text) => Self::given(text.to_str().unwrap_or_default()),
            None => Ok(Self::make()?),
        }
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
        let hint = "send 'Authorization: Bearer TOKEN', or ask for http://rperf:TOKEN@127.0.0.1";
        Some(Refusal::new(Code::NeedsToken, "this needs the token", hint))
    }
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
