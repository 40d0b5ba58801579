//! `Rperf::NativePush`: where `Rperf.push` sends profiles to, what it sends, and what follows from an
//! answer. On Ruby threads, with the GVL; lib/rperf/live/push.rb is the thread that sends.

use crate::interrupts::without_gvl_if_possible;
use crate::profile::errors;
use crate::text;
use magnus::{Error, RArray, RModule, RString, Ruby, TypedData, function, method, prelude::*};
use rperf_cli::{Answer, Destination, Kind, Names, Verdict, Wish};
use rperf_format::pprof;
use rperf_model::label_keys::{PID, PROCESS};
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
    class.define_method("shown", method!(Push::shown, 0))?;
    class.define_method("url", method!(Push::url, 0))?;
    class.define_method("headers", method!(Push::headers, 0))?;
    class.define_method("body", method!(Push::body, 3))?;
    class.define_method("verdict", method!(Push::verdict, 5))
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
    let destination = destination.map_err(|it| errors::argument(ruby, it.message))?;
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

    /// `verdict(status, said, body, retry_after, failures)`: a Symbol, what is to be said or nil, and
    /// the seconds to wait.
    fn verdict(
        ruby: &Ruby,
        rb_self: &Self,
        status: u16,
        said: String,
        body: RString,
        retry_after: f64,
        failures: u32,
    ) -> Result<RArray, Error> {
        let answer = Answer {
            status,
            said,
            body: text::bytes(body),
            retry_after: Duration::try_from_secs_f64(retry_after).ok(),
        };
        let (name, text) = match answer.verdict(rb_self.0.kind) {
            Verdict::Taken => ("taken", None),
            Verdict::TakenInPart(0, why) => (
                "taken",
                Some(format!("it takes a profile, and says: {why}")),
            ),
            Verdict::TakenInPart(count, why) => {
                let text =
                    format!("it refuses a part of a profile ({count} of its profiles): {why}");
                ("taken", Some(text))
            }
            Verdict::Refused(why) => ("refused", Some(format!("it refuses a profile: {why}"))),
            Verdict::Later(why) => ("later", Some(format!("it takes no profile: {why}"))),
        };
        let pause = answer.pause(failures).as_secs_f64();
        let found = ruby.ary_new();
        found.push(ruby.to_symbol(name))?;
        found.push(text)?;
        found.push(pause)?;
        Ok(found)
    }
}
