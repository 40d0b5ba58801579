//! `rperf push`: sends the profile of running programs to Pyroscope, again and again. Called by
//! `run`, on Ruby's main thread, which also sends: by Ruby's HTTP and TLS. Another thread profiles.

use super::profile::of_all;
use super::programs::Programs;
use super::queue::{Next, Queue};
use crate::args::PushArgs;
use crate::attach::recording::Wanted;
use crate::signals::Actions;
use crate::{FAILURE, Refusal, say};
use nix::sys::signal::{SigHandler, Signal};
use rperf_format::pprof::pyroscope;
use rperf_session::settings::quoted;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// How soon a signal is heeded.
const POLL: Duration = Duration::from_millis(50);

/// How long is waited after a failure: twice as long after each more.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Between two tries to profile anything, if there was nothing to profile.
const IDLE: Duration = Duration::from_secs(1);

/// Has the value of the Authorization header.
const AUTHORIZATION: &str = "RPERF_PUSH_AUTHORIZATION";

/// What the service is called if nobody says.
const SERVICE: [&str; 2] = ["OTEL_SERVICE_NAME", "ruby"];

/// Signals that end it.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// One of them has come.
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ENDED.store(true, SeqCst);
}

fn has_ended() -> bool {
    ENDED.load(SeqCst)
}

/// What is sent: where to, the headers, and the body.
pub struct Parcel<'a> {
    /// With http or https.
    pub url: &'a str,
    /// Names and values.
    pub headers: &'a [(String, String)],
    /// What it is.
    pub body: &'a [u8],
}

/// Sends it; HTTP's status, or 0 if nothing came back, and what was said.
pub type Post<'a> = &'a dyn Fn(&Parcel<'_>) -> (u16, String);

/// What has been checked.
struct Plan {
    url: String,
    /// The same without secrets.
    shown: String,
    headers: Vec<(String, String)>,
    labels: Vec<(String, String)>,
    every: Duration,
    mode: String,
    frequency: u32,
    count: u64,
    programs: Programs,
}

/// Sends until a signal comes, or `-n` profiles are made. Returns the exit status.
pub fn run(args: &PushArgs, post: Post<'_>) -> Result<i32, Refusal> {
    let plan = Plan::of(args)?;
    ENDED.store(false, SeqCst);
    let _signals = Actions::set(&ENDS, SigHandler::Handler(end));
    say(&format!(
        "sending a profile to {} every {} s (Ctrl-C ends it)",
        plan.shown,
        plan.every.as_secs_f64()
    ));
    let queue = Queue::default();
    let mut sender = Sender {
        plan: &plan,
        queue: &queue,
        post,
        failures: 0,
        sent: 0,
        refused: 0,
        last_said: String::new(),
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            collect(&plan, &queue);
            queue.close();
        });
        sender.run();
    });
    let (sent, lost) = (sender.sent, sender.refused + queue.dropped());
    let lost_text = if lost > 0 {
        format!(", {lost} lost")
    } else {
        String::new()
    };
    say(&format!("{} sent{lost_text}", counted(sent)));
    Ok(if sent > 0 && lost == 0 { 0 } else { FAILURE })
}

fn counted(count: u64) -> String {
    match count {
        1 => "1 profile".into(),
        count => format!("{count} profiles"),
    }
}

impl Plan {
    fn of(args: &PushArgs) -> Result<Self, Refusal> {
        let every = args.every.strip_suffix('s').unwrap_or(&args.every);
        let every = every.parse::<f64>().ok();
        let every = every.filter(|it| (1.0..=3600.0).contains(it));
        let every = every.ok_or_else(|| {
            let text = quoted(args.every.as_ref());
            Refusal::usage(format!(
                "--every must be seconds from 1 to 3600, not {text}"
            ))
        })?;
        let (url, shown) = url(&args.to)?;
        let mut headers = vec![("Content-Type".into(), pyroscope::CONTENT_TYPE.into())];
        if let Ok(value) = std::env::var(AUTHORIZATION) {
            headers.push(("Authorization".into(), value));
        }
        for header in &args.headers {
            headers.push(pair(
                "--header",
                "NAME: VALUE",
                header,
                ':',
                is_header_name,
            )?);
        }
        let service = args
            .service
            .clone()
            .or_else(|| std::env::var(SERVICE[0]).ok());
        let service = service.filter(|it| !it.is_empty());
        let service = service.unwrap_or_else(|| SERVICE[1].into());
        let mut labels = vec![("service_name".to_string(), service)];
        for label in &args.labels {
            let label = pair("--label", "NAME=VALUE", label, '=', pyroscope::is_name)?;
            if label.0 == "__name__" || labels.iter().any(|(name, _)| *name == label.0) {
                let name = quoted(label.0.as_ref());
                return Err(Refusal::usage(format!("--label: {name} is there already")));
            }
            labels.push(label);
        }
        Ok(Plan {
            url,
            shown,
            headers,
            labels,
            every: Duration::from_secs_f64(every),
            mode: args.mode.clone(),
            frequency: args.frequency,
            count: args.count.unwrap_or(u64::MAX),
            programs: Programs::matching(args.matching.as_deref())?,
        })
    }
}

/// With the path of the API behind it; and without what must not be shown.
fn url(text: &str) -> Result<(String, String), Refusal> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    let has_odd =
        |it: &str| it.contains(['?', '#']) || it.chars().any(|it| it.is_control() || it == ' ');
    let Some(host) = host.filter(|host| !host.is_empty() && !has_odd(text)) else {
        // It may have a password.
        let message = "--to must be a URL such as https://user:password@pyroscope.example";
        return Err(Refusal::usage(message));
    };
    let base = text.trim_end_matches('/');
    let public = host.rsplit('@').next().unwrap_or_default();
    let shown = base.replacen(host, public, 1);
    Ok((format!("{base}{}", pyroscope::PATH), shown))
}

fn pair(
    flag: &str,
    form: &str,
    text: &str,
    between: char,
    is_name: impl Fn(&str) -> bool,
) -> Result<(String, String), Refusal> {
    let (name, value) = text.split_once(between).unwrap_or_default();
    let (name, value) = (name.trim(), value.trim());
    let is_fit = is_name(name) && !value.is_empty() && !value.chars().any(char::is_control);
    match is_fit {
        true => Ok((name.into(), value.into())),
        // It may be a secret.
        false => Err(Refusal::usage(format!("{flag} must be {form}"))),
    }
}

fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Profiles the programs, one stretch of time after the other.
fn collect(plan: &Plan, queue: &Queue) {
    let wanted = Wanted {
        time: plan.every,
        mode: &plan.mode,
        frequency: plan.frequency,
    };
    let mut said = HashSet::new();
    let mut count = 0;
    while count < plan.count && !has_ended() {
        let present = plan.programs.now();
        let mut taken = of_all(present, wanted, &has_ended);
        if taken.profile.is_none() && taken.notes.is_empty() {
            taken.notes.push("no such program with a port runs".into());
        }
        let notes: HashSet<_> = taken.notes.into_iter().collect();
        notes.difference(&said).for_each(|note| say(note));
        said = notes;
        let Some(profile) = taken.profile else {
            wait(IDLE);
            continue;
        };
        let id = uuid().unwrap_or_default();
        match pyroscope::request(&profile, &plan.labels, &id) {
            Ok(body) => queue.add(body),
            Err(error) => say(&format!("a profile is lost: {error}")),
        }
        count += 1;
    }
}

fn wait(time: Duration) {
    let until = Instant::now() + time;
    while !has_ended() && Instant::now() < until {
        thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
    }
}

fn uuid() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // Version 4, as RFC 9562 has it.
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
    Ok(parts.join("-"))
}

struct Sender<'a> {
    plan: &'a Plan,
    queue: &'a Queue,
    post: Post<'a>,
    failures: u32,
    sent: u64,
    refused: u64,
    last_said: String,
}

impl Sender<'_> {
    fn run(&mut self) {
        loop {
            match self.queue.next(POLL) {
                Next::Body(body) => self.send(body),
                Next::Nothing => {}
                Next::End => return,
            }
        }
    }

    fn send(&mut self, body: Vec<u8>) {
        let parcel = Parcel {
            url: &self.plan.url,
            headers: &self.plan.headers,
            body: &body,
        };
        let (status, said) = (self.post)(&parcel);
        let why = match status {
            0 => said,
            status => format!("HTTP {status} {said}"),
        };
        match status {
            200..=299 => {
                self.sent += 1;
                if self.failures > 0 {
                    self.say("it takes profiles again");
                }
                (self.failures, self.last_said) = (0, String::new());
            }
            // It will not take this one later either.
            300..=407 | 409..=428 | 430..=499 => {
                self.refused += 1;
                self.say(&format!("it refuses a profile: {why}"));
            }
            _ => {
                self.failures += 1;
                self.say(&format!("it takes no profile: {why}; trying again"));
                self.queue.put_back(body);
                if has_ended() {
                    self.queue.drop_all();
                } else {
                    wait(pause(
                        self.failures,
                        RandomState::new().hash_one(self.failures),
                    ));
                }
            }
        }
    }

    /// Once, until there is something else to say.
    fn say(&mut self, what: &str) {
        if self.last_said != what {
            say(&format!("{}: {what}", self.plan.shown));
            self.last_said = what.into();
        }
    }
}

/// Not all clients of a server that comes back are to come at once.
fn pause(failures: u32, random: u64) -> Duration {
    let doubled = FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1).min(10));
    let part = (random % 1000) as f64 / 1000.0;
    doubled.min(LONGEST_PAUSE).mul_f64(0.5 + part / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_up_to_a_minute_and_differs() {
        for (failures, seconds) in [(1, 1), (2, 2), (3, 4), (7, 60), (1000, 60)] {
            let longest = Duration::from_secs(seconds);
            assert_eq!(pause(failures, 0), longest / 2);
            assert!((longest * 9 / 10..=longest).contains(&pause(failures, 999)));
        }
    }

    #[test]
    fn an_address_has_the_path_behind_it_and_keeps_its_password_to_itself() {
        for (text, whole, shown) in [
            (
                "http://a:4040",
                "http://a:4040/push.v1.PusherService/Push",
                "http://a:4040",
            ),
            (
                "https://u:p@b/x/",
                "https://u:p@b/x/push.v1.PusherService/Push",
                "https://b/x",
            ),
        ] {
            assert_eq!(url(text).expect("one"), (whole.into(), shown.into()));
        }
        for odd in [
            "",
            "a:4040",
            "ftp://a",
            "http://",
            "http:///x",
            "http://a?b",
            "http://a b",
        ] {
            assert_eq!(url(odd).expect_err("none").status, 2, "{odd}");
        }
    }

    #[test]
    fn ids_are_uuids_and_no_two_alike() {
        let [one, other] = [(); 2].map(|()| uuid().expect("random bytes"));
        assert_ne!(one, other);
        assert_eq!(
            (one.len(), &one[14..15], one.matches('-').count()),
            (36, "4", 4)
        );
    }
}
