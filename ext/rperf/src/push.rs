//! `Rperf::NativePush`: where `Rperf.push` sends profiles to, and what it sends; its
//! `NativePushSender` says when, and what follows from an answer. On Ruby threads, with the GVL;
//! lib/rperf/live/push.rb is the thread that sends.

use crate::interrupts::without_gvl_if_possible;
use crate::profile::errors;
use crate::text;
use magnus::{Error, RArray, RModule, RString, Ruby, TypedData, function, method, prelude::*};
use rperf_format::pprof;
use rperf_model::ASKED_FREQUENCIES;
use rperf_model::label_keys::{PID, PROCESS};
use rperf_push::{Answer, Destination, Kind, Names, Next, Owner, Sender, Wish};
use std::cell::RefCell;
use std::time::Duration;

/// How messages begin.
const NAMES: [Names<'static>; 2] = [names("to"), names("otlp")];

const fn names(url: &'static str) -> Names<'static> {
    Names {
        url,
        label: "labels",
        header: "headers",
    }
}

/// What the Ruby object holds.
#[magnus::wrap(class = "Rperf::NativePush", free_immediately)]
struct Push(Destination);

/// Defines `Rperf::NativePush`.
pub fn init(ruby: &Ruby, rperf: RModule) -> Result<(), Error> {
    let class = rperf.define_class("NativePush", ruby.class_object())?;
    class.undef_default_alloc_func();
    // Looked for now, not at first use: an interrupt could come then.
    let _ = Push::class(ruby);
    class.define_singleton_method("to", function!(to, 5))?;
    class.const_set("MOST_FREQUENT", *ASKED_FREQUENCIES.end())?;
    class.define_method("shown", method!(Push::shown, 0))?;
    class.define_method("url", method!(Push::url, 0))?;
    class.define_method("headers", method!(Push::headers, 0))?;
    class.define_method("body", method!(Push::body, 3))?;
    class.define_method("sender", method!(Push::sender, 0))?;
    let class = rperf.define_class("NativePushSender", ruby.class_object())?;
    class.undef_default_alloc_func();
    let _ = PushSender::class(ruby);
    class.define_method("add", method!(PushSender::add, 1))?;
    class.define_method("step", method!(PushSender::step, 2))?;
    class.define_method("once", method!(PushSender::once, 1))
}

/// `NativePush.to(otlp, url, service, labels, headers)`; labels and headers are Arrays of
/// `NAME=VALUE` and `NAME: VALUE`.
fn to(
    ruby: &Ruby,
    otlp: bool,
    url: String,
    service: Option<String>,
    labels: Vec<String>,
    headers: Vec<String>,
) -> Result<Push, Error> {
    let wish = Wish {
        kind: if otlp { Kind::Otlp } else { Kind::Pyroscope },
        names: NAMES[usize::from(otlp)],
        url: &url,
        service: service.as_deref(),
        labels: &labels,
        headers: &headers,
    };
    let destination = Destination::of(&wish);
    let destination = destination.map_err(|it| errors::argument(ruby, it.to_string()))?;
    Ok(Push(destination))
}

impl Push {
    fn shown(&self) -> String {
        self.0.shown.clone()
    }

    fn url(&self) -> String {
        self.0.url.clone()
    }

    fn headers(&self) -> Vec<(String, String)> {
        self.0.headers.clone()
    }

    /// `body(file, pid, program)`: what is sent for this pprof file of the process.
    fn body(
        ruby: &Ruby,
        rb_self: &Self,
        file: RString,
        pid: i32,
        program: RString,
    ) -> Result<RString, Error> {
        let (file, program) = (text::bytes(file), text::content(program));
        let body = without_gvl_if_possible(|| {
            let profile = pprof::read(&mut file.as_slice());
            let mut profile = profile.map_err(|error| error.to_string())?;
            profile.label_all(&[(PID, &pid.to_string()), (PROCESS, &program)]);
            rb_self.0.body(&profile).map_err(|error| error.to_string())
        })?;
        let body = body.map_err(|why| errors::rperf(ruby, why))?;
        Ok(ruby.str_from_slice(&body))
    }

    /// What sends to this server. A thread has its own.
    fn sender(&self) -> PushSender {
        PushSender(RefCell::new(Sender::new(&self.0, Owner::Program)))
    }
}

/// What the Ruby object holds that says what is sent when. Whoever borrows it calls no method, so it
/// is never borrowed twice.
#[magnus::wrap(class = "Rperf::NativePushSender", free_immediately)]
struct PushSender(RefCell<Sender>);

impl PushSender {
    /// `add(body)`: one more profile.
    fn add(&self, body: RString) {
        let body = text::bytes(body);
        self.0.borrow_mut().add(body);
    }

    /// `step(now, answer)`: the body that is to be sent now or nil, and the lines to say before. `now`
    /// is in seconds; the answer to the body before is an Array as for [`answer`], or nil.
    fn step(ruby: &Ruby, rb_self: &Self, now: f64, found: Option<Found>) -> Result<RArray, Error> {
        let now = Duration::try_from_secs_f64(now).unwrap_or_default();
        let found = found.map(answer);
        let step = rb_self.0.borrow_mut().step(now, found.as_ref());
        let body = match step.next {
            Next::Send(body) => Some(ruby.str_from_slice(&body)),
            Next::Wait(_) | Next::End => None,
        };
        let result = ruby.ary_new();
        result.push(body)?;
        result.push(ruby.ary_from_vec(step.lines))?;
        Ok(result)
    }

    /// `once(line)`: the line, or nil if it is the one that was said last.
    fn once(&self, line: RString) -> Option<String> {
        let line = text::content(line);
        self.0.borrow_mut().once(line)
    }
}

/// HTTP's status, a line of what was said, all of it, and the seconds after which to come again, or
/// -1: what lib/rperf/web/post.rb returns.
type Found = (u16, RString, RString, f64);

/// What came back from a server.
fn answer(found: Found) -> Answer {
    let (status, said, body, retry_after) = found;
    Answer {
        status,
        said: text::content(said),
        body: text::bytes(body),
        retry_after: Duration::try_from_secs_f64(retry_after).ok(),
    }
}
