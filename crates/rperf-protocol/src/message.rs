//! HTTP/1.1 as the port and its client speak it: heads, and nothing chunked. Whatever comes in is
//! treated as hostile: it is bounded, and may be refused but never panics. Any thread.

use crate::json::NotAReply;
use crate::limits::{MAX_REPLY_HEAD, MAX_REQUEST};
use crate::refusal::{Code, Refusal};

/// Headers of a message at most.
const MAX_HEADERS: usize = 64;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// GET and so on.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// What comes behind the question mark; empty without one.
    pub query: String,
    /// Whether the connection ends with the answer.
    pub closes: bool,
    /// What it was sent to; `None` if that isn't said just once.
    pub host: Option<String>,
    /// Whether the page of a web site asks.
    pub has_origin: bool,
    /// Who asks, if that is said.
    pub authorization: Option<String>,
    /// Where the browser says that the request comes from.
    pub fetch_site: Option<String>,
    /// The request has the viewer's own header, which pages of other sites can't send.
    pub is_from_viewer: bool,
}

impl Refusal {
    /// The answer, after which the connection is closed if it `closes`.
    pub fn response(&self, closes: bool) -> Vec<u8> {
        let how = match self.code {
            Code::NeedsToken => "WWW-Authenticate: Bearer, Basic realm=\"rperf\"\r\n",
            _ => "",
        };
        json_response(self.code.status(), how, &self.to_json(), closes)
    }
}

/// The next request in `bytes`, and how many of them are its head; `None` if more must come.
pub fn parse_request(bytes: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_REQUEST => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_REQUEST => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            let hint = format!("a request has {MAX_REQUEST} bytes at most");
            return Err(Refusal::new(
                Code::TooLong,
                "the request's head is too long",
                hint,
            ));
        }
        Err(error) => {
            let error = format!("this is no HTTP request ({error})");
            let hint = "ask with curl, or with rperf";
            return Err(Refusal::new(Code::BadRequest, error, hint));
        }
    };
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let connection = header(parsed.headers, "connection");
    let request = Request {
        method: parsed.method.unwrap_or_default().into(),
        path: path.into(),
        query: query.into(),
        closes: match parsed.version {
            Some(0) => !has_word(connection, "keep-alive"),
            _ => has_word(connection, "close"),
        },
        host: only(parsed.headers, "host"),
        has_origin: header(parsed.headers, "origin").is_some(),
        authorization: only(parsed.headers, "authorization"),
        fetch_site: header(parsed.headers, "sec-fetch-site")
            .map(|site| String::from_utf8_lossy(site).into_owned()),
        is_from_viewer: header(parsed.headers, "x-rperf") == Some(b"1"),
    };
    let mut headers = parsed.headers.iter();
    let has_body = headers.any(|header| {
        header.name.eq_ignore_ascii_case("content-length") && header.value.trim_ascii() != b"0"
    });
    if has_body || header(parsed.headers, "transfer-encoding").is_some() {
        let hint = "leave the body out: all that is asked is in the path";
        return Err(Refusal::new(Code::HasBody, "requests have no body", hint));
    }
    Ok(Some((request, head)))
}

fn header<'a>(headers: &[httparse::Header<'a>], name: &str) -> Option<&'a [u8]> {
    let mut headers = headers.iter();
    let found = headers.find(|header| header.name.eq_ignore_ascii_case(name));
    found.map(|header| header.value)
}

/// The text of a header that is there once.
fn only(headers: &[httparse::Header<'_>], name: &str) -> Option<String> {
    let mut found = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case(name));
    let value = found.next()?.value;
    let text = std::str::from_utf8(value).ok().map(str::trim)?;
    found.next().is_none().then(|| text.into())
}

fn has_word(value: Option<&[u8]>, word: &str) -> bool {
    let mut words = value.unwrap_or_default().split(|&byte| byte == b',');
    words.any(|it| it.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

impl Request {
    /// The value of `name` in the query, if it is there.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// A response with this JSON as body.
pub fn response(body: &str, closes: bool) -> Vec<u8> {
    json_response(200, "", body, closes)
}

fn json_response(status: u16, more: &str, body: &str, closes: bool) -> Vec<u8> {
    let body = format!("{body}\n");
    bytes_response(status, "application/json", more, body.as_bytes(), closes)
}

/// Begins the line of a head that says why a profile ended early.
const ENDED: &str = "Rperf-Ended";

/// The name of the header that says that the VM was woken for the answer.
const WOKEN: &str = "Rperf-Woken";

/// A response with a profile as body; with a reason if it `ended` early.
pub fn profile_response(
    content: &[u8],
    ended: Option<&str>,
    is_woken: bool,
    closes: bool,
) -> Vec<u8> {
    let mut more = ended.map_or_else(String::new, |reason| format!("{ENDED}: {reason}\r\n"));
    if is_woken {
        more += &format!("{WOKEN}: yes\r\n");
    }
    bytes_response(200, "application/octet-stream", &more, content, closes)
}

/// The type of an answer whose length isn't known when it begins.
const STREAM: &[u8] = b"application/octet-stream";

/// The head of an answer whose length isn't known when it begins: it ends with the connection.
pub const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\n";

/// `more`: further lines of the head.
pub fn bytes_response(
    status: u16,
    content_type: &str,
    more: &str,
    body: &[u8],
    closes: bool,
) -> Vec<u8> {
    let connection = if closes { "Connection: close\r\n" } else { "" };
    let (reason, length) = (reason(status), body.len());
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {length}\r\n{more}{connection}\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

/// The head of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyHead {
    /// HTTP's number.
    pub status: u16,
    /// Bytes of the head.
    pub length: usize,
    /// Bytes of the body.
    pub body: usize,
    /// The body is all that comes until the end of the connection.
    pub is_stream: bool,
    /// Why the profile in it ended early, if it did.
    pub ended: Option<String>,
    /// Whether the VM was woken for it.
    pub is_woken: bool,
}

/// The head of the reply in `bytes`; `None` if more must come.
pub fn parse_reply(bytes: &[u8]) -> Result<Option<ReplyHead>, NotAReply> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_REPLY_HEAD => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_REPLY_HEAD => return Ok(None),
        _ => return Err(NotAReply),
    };
    let body = header(parsed.headers, "content-length").map(|number| {
        let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(number).ok().filter(|_| is_number);
        number
            .and_then(|number| number.parse().ok())
            .ok_or(NotAReply)
    });
    let is_stream = body.is_none() && header(parsed.headers, "content-type") == Some(STREAM);
    let body = match body {
        None if is_stream => 0,
        body => body.ok_or(NotAReply)??,
    };
    Ok(Some(ReplyHead {
        status: parsed.code.ok_or(NotAReply)?,
        length,
        body,
        is_stream,
        ended: header(parsed.headers, ENDED).map(|it| String::from_utf8_lossy(it).into_owned()),
        is_woken: header(parsed.headers, WOKEN).is_some(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn parsed(text: &str) -> Result<Option<(Request, usize)>, u16> {
        parse_request(text.as_bytes()).map_err(|refusal| refusal.code.status())
    }

    #[test]
    fn a_request_is_read_up_to_its_end() {
        let text = "GET /v1/stacks?fibers=1 HTTP/1.1\r\nHost: x\r\n\r\n";
        let (request, length) = parsed(text).expect("one").expect("whole");
        assert_eq!((&*request.method, &*request.path), ("GET", "/v1/stacks"));
        assert_eq!((&*request.query, request.closes), ("fibers=1", false));
        assert_eq!(length, text.len());
        let two = format!("{text}{text}");
        assert_eq!(parsed(&two).expect("one").expect("whole").1, text.len());
        for end in 0..text.len() {
            assert_eq!(parsed(&text[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn it_says_whether_the_connection_ends() {
        for (text, closes) in [
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nconnection: x, Close\r\n\r\n", true),
            ("GET / HTTP/1.0\r\n\r\n", true),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false),
        ] {
            assert_eq!(
                parsed(text).expect("one").expect("whole").0.closes,
                closes,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_none_or_too_much_is_refused() {
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(MAX_REQUEST));
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(MAX_HEADERS + 1)
        );
        for (text, status) in [
            ("\u{1}\u{2}", 400),
            ("GET / HTTP/9\r\n\r\n", 400),
            (&*long, 431),
            (&long[..MAX_REQUEST], 431),
            (&*many, 431),
            ("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 413),
            (
                "POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 3\r\n\r\n",
                413,
            ),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        ] {
            assert_eq!(parsed(text), Err(status), "{text}");
        }
        let none = "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
        assert!(parsed(none).expect("one").is_some());
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        let bytes = response(&json!({ "a": "\u{1b}é" }).to_string(), true);
        let head = parse_reply(&bytes).expect("a reply").expect("whole");
        assert_eq!((head.status, head.length + head.body), (200, bytes.len()));
        let body: Value = serde_json::from_slice(&bytes[head.length..]).expect("JSON");
        assert_eq!(body["a"], "\u{1b}é");
        let refusal = Refusal::new(Code::NotFound, "no", "yes").response(false);
        let head = parse_reply(&refusal).expect("a reply").expect("whole");
        let body: Value = serde_json::from_slice(&refusal[head.length..]).expect("JSON");
        assert_eq!(
            (&body["error"], &body["hint"]),
            (&json!("no"), &json!("yes"))
        );
    }

    #[test]
    fn refusals_are_what_other_versions_know() {
        let refusal = Refusal::new(Code::NeedsToken, "no \"}", "\u{1b}é").response(true);
        let golden = include_bytes!("../golden/refusal.http");
        assert_eq!(
            String::from_utf8_lossy(&refusal),
            String::from_utf8_lossy(golden)
        );
    }

    #[test]
    fn replies_of_others_are_none() {
        for text in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        ] {
            assert_eq!(parse_reply(text.as_bytes()), Err(NotAReply), "{text}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\na: {}", "x".repeat(MAX_REPLY_HEAD));
        assert_eq!(parse_reply(endless.as_bytes()), Err(NotAReply));
    }

    /// Bytes that are near to messages.
    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"GET ".to_vec()),
            Just(b"HTTP/1.1".to_vec()),
            Just(b" 200 OK".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"Content-Length: ".to_vec()),
            Just(b"Connection: close".to_vec()),
            Just(b"/v1/hello?a=b".to_vec()),
            Just(vec![b'x'; 5000]),
            proptest::collection::vec(any::<u8>(), 0..20),
        ];
        proptest::collection::vec(part, 0..20).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_of_requests_fail(bytes in hostile()) {
            match parse_request(&bytes) {
                Ok(Some((_, length))) => prop_assert!(length <= bytes.len().min(MAX_REQUEST)),
                Ok(None) => prop_assert!(bytes.len() < MAX_REQUEST),
                Err(refusal) => prop_assert!((400..500).contains(&refusal.code.status())),
            }
        }

        #[test]
        fn no_bytes_make_the_parser_of_replies_fail(bytes in hostile()) {
            match parse_reply(&bytes) {
                Ok(Some(head)) => prop_assert!(head.length <= bytes.len().min(MAX_REPLY_HEAD)),
                Ok(None) => prop_assert!(bytes.len() < MAX_REPLY_HEAD),
                Err(NotAReply) => {}
            }
        }

        #[test]
        fn a_request_comes_through_in_whatever_parts(cut in 0_usize..60, rest in hostile()) {
            let text = b"GET /v1/hello?x=y HTTP/1.1\r\nHost: localhost\r\nA: b\r\n\r\n";
            let cut = cut.min(text.len() - 1);
            prop_assert_eq!(parse_request(&text[..cut]), Ok(None));
            let both = [&text[..], &rest].concat();
            let (request, length) = parse_request(&both).expect("one").expect("whole");
            prop_assert_eq!((&*request.path, length), ("/v1/hello", text.len()));
        }
    }
}
