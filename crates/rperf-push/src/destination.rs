//! Where profiles are pushed to, and what is sent there. For the command, and for programs that push
//! their own. Any thread.

use rperf_format::{FormatError, otlp, pprof::pyroscope};
use rperf_model::Profile;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::net::Ipv6Addr;

/// Has the value of the Authorization header.
pub const AUTHORIZATION: &str = "RPERF_PUSH_AUTHORIZATION";

/// What the service is called if nobody says.
const SERVICE: [&str; 2] = ["OTEL_SERVICE_NAME", "ruby"];

/// Where Linux has the name of the host.
const HOST: &str = "/proc/sys/kernel/hostname";

/// Who takes profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pyroscope's push API.
    Pyroscope,
    /// Collectors of OpenTelemetry, by OTLP over HTTP.
    Otlp,
}

/// How messages begin about each of these.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The URL.
    pub url: &'a str,
    /// A label.
    pub label: &'a str,
    /// A header.
    pub header: &'a str,
}

/// What users say of it.
pub struct Wish<'a> {
    /// Who is there.
    pub kind: Kind,
    /// How messages begin about what is wrong.
    pub names: Names<'a>,
    /// The server's URL.
    pub url: &'a str,
    /// What the service is called.
    pub service: Option<&'a str>,
    /// Further labels, as `NAME=VALUE`.
    pub labels: &'a [String],
    /// Further headers, as `NAME: VALUE`.
    pub headers: &'a [String],
}

/// Why nothing can be sent there, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidDestination(String);

/// A server, checked.
#[derive(Debug)]
pub struct Destination {
    /// Who is there.
    pub kind: Kind,
    /// With the path of the API.
    pub url: String,
    /// The URL without the path of the API and without secrets.
    pub shown: String,
    /// The headers of all requests.
    pub headers: Vec<(String, String)>,
    /// What the user has said has a password, in the URL or in a header.
    pub shows_password: bool,
    labels: Vec<(String, String)>,
}

impl Kind {
    fn path(self) -> &'static str {
        match self {
            Kind::Pyroscope => pyroscope::PATH,
            Kind::Otlp => otlp::PATH,
        }
    }

    fn service_label(self) -> &'static str {
        match self {
            Kind::Pyroscope => "service_name",
            Kind::Otlp => "service.name",
        }
    }

    fn label_form(self) -> Form {
        Form {
            form: "NAME=VALUE",
            between: '=',
            name: match self {
                Kind::Pyroscope => {
                    "a name that Pyroscope takes: letters, digits and _, and no digit at its beginning"
                }
                Kind::Otlp => "a name without control characters",
            },
        }
    }

    fn is_label(self, name: &str) -> bool {
        match self {
            Kind::Pyroscope => pyroscope::is_name(name),
            Kind::Otlp => !name.is_empty() && !name.chars().any(char::is_control),
        }
    }

    fn headers(self) -> Vec<(String, String)> {
        let texts: &[(&str, &str)] = match self {
            Kind::Pyroscope => &[("Content-Type", pyroscope::CONTENT_TYPE)],
            Kind::Otlp => &[
                ("Content-Type", otlp::CONTENT_TYPE),
                ("Content-Encoding", otlp::CONTENT_ENCODING),
                ("User-Agent", USER_AGENT),
            ],
        };
        let pairs = texts
            .iter()
            .map(|&(name, value)| (name.into(), value.into()));
        pairs.collect()
    }
}

/// OTLP's profiles are alpha: who looks for what is wrong must see which they are.
const USER_AGENT: &str = concat!(
    "rperf/",
    env!("CARGO_PKG_VERSION"),
    " opentelemetry-proto/1.10"
);

impl Destination {
    /// The server that the user has asked for, checked.
    pub fn of(wish: &Wish<'_>) -> Result<Self, InvalidDestination> {
        let kind = wish.kind;
        let (url, shown, has_user) = url(wish)?;
        let mut shows_password = has_user;
        let mut headers = kind.headers();
        let value = authorization(std::env::var_os(AUTHORIZATION))?;
        headers.extend(value.map(|value| ("Authorization".into(), value)));
        for header in wish.headers {
            let header = pair(wish.names.header, HEADER, header, is_header_name)?;
            if has_user && header.0.eq_ignore_ascii_case("Authorization") {
                let (url, header) = (wish.names.url, wish.names.header);
                let message = format!("{url} has a user, so {header} can't be Authorization");
                return Err(InvalidDestination(message));
            }
            shows_password |= header.0.eq_ignore_ascii_case("Authorization");
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&header.0));
            headers.push(header);
        }
        let service = wish.service.map(String::from);
        let service = service.or_else(|| std::env::var(SERVICE[0]).ok());
        let service = service.filter(|it| !it.is_empty());
        let service = service.unwrap_or_else(|| SERVICE[1].into());
        let mut labels = vec![(kind.service_label().to_string(), service)];
        for label in wish.labels {
            let is_name = |it: &str| kind.is_label(it);
            let label = pair(wish.names.label, kind.label_form(), label, is_name)?;
            if label.0 == "__name__" || labels.iter().any(|(name, _)| *name == label.0) {
                let message = format!("{}: '{}' is there already", wish.names.label, label.0);
                return Err(InvalidDestination(message));
            }
            labels.push(label);
        }
        if kind == Kind::Otlp && labels.iter().all(|(name, _)| name != "host.name") {
            #[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
            let host = fs::read_to_string(HOST).unwrap_or_default();
            let host = Some(host.trim()).filter(|host| !host.is_empty());
            labels.extend(host.map(|host| ("host.name".into(), host.into())));
        }
        Ok(Destination {
            kind,
            url,
            shown,
            headers,
            shows_password,
            labels,
        })
    }

    /// What is sent for a profile.
    pub fn body(&self, profile: &Profile) -> Result<Vec<u8>, FormatError> {
        match self.kind {
            Kind::Pyroscope => pyroscope::request(profile, &self.labels, &uuid(random()?)),
            Kind::Otlp => {
                let first = random()?;
                let mut count = 0;
                // No two alike, and one look at the random numbers is enough.
                let id = || {
                    count += 1;
                    (u128::from_ne_bytes(first).wrapping_add(count)).to_ne_bytes()
                };
                otlp::request(profile, &self.labels, id)
            }
        }
    }
}

/// The URL with the path of the API behind it; the URL without what must not be shown; and whether it
/// has a user. Messages don't show it either: it may have a password.
fn url(wish: &Wish<'_>) -> Result<(String, String, bool), InvalidDestination> {
    let text = wish.url;
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let (authority, path) = rest
        .map(|it| it.split_once('/').unwrap_or((it, "")))
        .unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let wrong = if [user, path].iter().any(|it| !is_encoded(it)) {
        "must have %XX for a character that URLs don't have there, such as %2F for / in a password"
    } else if !is_host(host) {
        "must be a URL such as https://user:password@profiles.example"
    } else {
        let api = wish.kind.path();
        let base = text.trim_end_matches('/');
        let base = base.strip_suffix(api).unwrap_or(base);
        let shown = base.replacen(authority, host, 1);
        return Ok((format!("{base}{api}"), shown, !user.is_empty()));
    };
    Err(InvalidDestination(format!("{} {wrong}", wish.names.url)))
}

/// Whether all is as RFC 3986 has it for users and paths, but for an `@`, which would make one out of
/// the other.
fn is_encoded(text: &str) -> bool {
    let mut pieces = text.split('%');
    let is_plain = |text: &str| {
        text.bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:/".contains(&it))
    };
    let is_escape = |text: &str| {
        let digits = text.get(..2);
        digits.is_some_and(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))
    };
    pieces.next().is_some_and(is_plain)
        && pieces.all(|piece| is_escape(piece) && is_plain(&piece[2..]))
}

/// With a port or without.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((host, rest)) if host.parse::<Ipv6Addr>().is_ok() => ("v6", rest),
        Some(_) => return false,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_port = |it: &str| {
        it.bytes().all(|it| it.is_ascii_digit()) && it.parse::<u16>().is_ok_and(|it| it > 0)
    };
    !host.is_empty()
        && host.bytes().all(is_name)
        && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// What the variable says, if it says anything.
fn authorization(value: Option<OsString>) -> Result<Option<String>, InvalidDestination> {
    let value = value.map(OsString::into_string).transpose();
    let value = value.map(|it| it.map(|it| it.trim().to_string()));
    match value {
        Ok(value) if !value.iter().any(|it| it.contains(char::is_control)) => {
            Ok(value.filter(|it| !it.is_empty()))
        }
        // It is a secret.
        _ => Err(InvalidDestination(format!(
            "{AUTHORIZATION} must be one line of text"
        ))),
    }
}

/// A name and a value in one text.
struct Form {
    /// The whole, for messages.
    form: &'static str,
    between: char,
    /// What a name must be.
    name: &'static str,
}

const HEADER: Form = Form {
    form: "NAME: VALUE",
    between: ':',
    name: "a name of letters, digits, - and _",
};

/// The parts of `text`. Messages don't show it: it may be a secret.
fn pair(
    flag: &str,
    form: Form,
    text: &str,
    is_name: impl Fn(&str) -> bool,
) -> Result<(String, String), InvalidDestination> {
    let (name, value) = text.split_once(form.between).unwrap_or_default();
    let (name, value) = (name.trim(), value.trim());
    let wanted = if name.is_empty() {
        format!("be {}", form.form)
    } else if !is_name(name) {
        format!("have {}", form.name)
    } else if value.is_empty() || value.chars().any(char::is_control) {
        "have a value, without control characters".into()
    } else {
        return Ok((name.into(), value.into()));
    };
    Err(InvalidDestination(format!("{flag} must {wanted}")))
}

fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

#[expect(clippy::disallowed_methods, reason = "a device of the system's")]
fn random() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Version 4, as RFC 9562 has it.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(kind: Kind, url: &str) -> Wish<'_> {
        Wish {
            kind,
            names: Names {
                url: "--to",
                label: "--label",
                header: "--header",
            },
            url,
            service: Some("shop"),
            labels: &[],
            headers: &[],
        }
    }

    #[test]
    fn an_address_has_the_path_behind_it_once_and_keeps_its_password_to_itself() {
        let (pyroscope, otlp) = (Kind::Pyroscope, Kind::Otlp);
        for (kind, text, whole, shown) in [
            (
                pyroscope,
                "http://a:4040",
                "http://a:4040/push.v1.PusherService/Push",
                "http://a:4040",
            ),
            (
                pyroscope,
                "https://u:p@b/x/",
                "https://u:p@b/x/push.v1.PusherService/Push",
                "https://b/x",
            ),
            (
                otlp,
                "http://a:4318",
                "http://a:4318/v1development/profiles",
                "http://a:4318",
            ),
            (
                otlp,
                "http://a/v1development/profiles",
                "http://a/v1development/profiles",
                "http://a",
            ),
            (
                pyroscope,
                "http://u%5B:p%40@[::1]:4040/a_b%20c",
                "http://u%5B:p%40@[::1]:4040/a_b%20c/push.v1.PusherService/Push",
                "http://[::1]:4040/a_b%20c",
            ),
        ] {
            let found = url(&wish(kind, text)).expect("one");
            let has_user = text.contains("//u");
            assert_eq!(found, (whole.into(), shown.into(), has_user));
        }
        let headers = ["authorization: Bearer x".to_string()];
        let mut both = wish(pyroscope, "http://u:p@b");
        both.headers = &headers;
        let refusal = Destination::of(&both).map(|_| ()).expect_err("none");
        assert!(refusal.0.contains("can't be Authorization"));
        for odd in [
            "",
            "a:4040",
            "ftp://a",
            "http://",
            "http:///x",
            "http://a?b",
            "http://a b",
            "http://a:70000",
            "http://a:",
            "http://[::x]",
            "http://u:sec/ret@a",
            "http://u:sec[ret@a",
            "http://u:sec%ret@a",
            "http://u:sec@ret@a",
            "http://u:sec\u{e4}ret@a",
            "http://a/b|c",
        ] {
            let refusal = url(&wish(pyroscope, odd)).expect_err("none");
            assert!(!refusal.0.contains("sec"), "{odd}");
        }
    }

    #[test]
    fn the_variable_of_authorization_is_one_line() {
        let of = |text: &str| authorization(Some(text.into()));
        assert_eq!(of(" Bearer x\n").expect("one"), Some("Bearer x".into()));
        assert_eq!(of(" \n").expect("none"), None);
        assert_eq!(authorization(None).expect("none"), None);
        let refusal = of("Bearer x\nsecret").expect_err("two lines");
        assert_eq!(
            refusal.0,
            "RPERF_PUSH_AUTHORIZATION must be one line of text"
        );
    }

    #[test]
    fn a_header_of_the_users_is_there_in_place_of_ours() {
        let headers = ["user-agent: mine".to_string()];
        let wish = Wish {
            headers: &headers,
            ..wish(Kind::Otlp, "http://a")
        };
        let found = Destination::of(&wish).expect("one").headers;
        let agents = found.iter();
        let agents = agents.filter(|(name, _)| name.eq_ignore_ascii_case("user-agent"));
        let agents: Vec<_> = agents.map(|(_, value)| value.as_str()).collect();
        assert_eq!(agents, ["mine"]);
        assert!(USER_AGENT.ends_with(otlp::SCHEMA));
    }

    #[test]
    fn labels_are_called_as_the_server_has_them() {
        let labels = ["deployment.environment.name=test".to_string()];
        let of = |kind| {
            let wish = Wish {
                labels: &labels,
                ..wish(kind, "http://a")
            };
            Destination::of(&wish).map(|it| it.labels)
        };
        let found = of(Kind::Otlp).expect("labels");
        assert_eq!(found[0], ("service.name".into(), "shop".into()));
        assert_eq!(found[1].0, "deployment.environment.name");
        let refusal = of(Kind::Pyroscope).expect_err("its names have no dots");
        assert!(
            refusal
                .0
                .starts_with("--label must have a name that Pyroscope takes: ")
        );
    }

    #[test]
    fn ids_are_uuids_and_no_two_alike() {
        let [one, other] = [(); 2].map(|()| uuid(random().expect("random bytes")));
        assert_ne!(one, other);
        assert_eq!(
            (one.len(), &one[14..15], one.matches('-').count()),
            (36, "4", 4)
        );
    }
}
