//! The begin and the end of requests and jobs whose session judges them: `Native.enter_request`,
//! `Native.leave_request` and what goes with it. The middleware calls them, on threads of the main Ractor, with
//! the GVL. In between, the label set of the fiber has the request's number, and so do its samples; and
//! an account of it is open.
//!
//! The account is noted in the Array in which `Native.enter` notes what is to be undone: it stands for
//! the end of the request, which comes first.

use super::accounts::open_into;
use super::ops;
use super::token::gvl;
use crate::accounts::hooks;
use crate::accounts::object::AccountObject;
use crate::accounts::object::Further;
use crate::labels::scope;
use crate::recording::sample;
use crate::ruby::threads::RubyThread;
use crate::running::derived_labels::Begins;
use crate::running::label_set::{self, SetObject};
use crate::running::sampling::{catching, counting_session, sampling};
use crate::running::session_sums::SessionRequests;
use crate::text;
use magnus::{Error, RArray, RHash, Ruby, TryConvert, TypedData, Value, prelude::*};
use rperf_accounts::{Figures, OTHER, RequestName};
use rperf_model::{AmongSlowest, LatencyClass, RequestId};
use rperf_sampling::AtWork;
use rperf_vm::{Gvl, LabelSet, RequestNumber, clock};

/// The number of a request or a job that is about to begin, if the session judges them.
pub fn next(gvl: &Gvl<'_>) -> Option<RequestNumber> {
    requests(gvl).map(SessionRequests::next_number)
}

/// The labels of a request or a job with this number are there; `undo` has what was there before. Its
/// account is opened, unless it is inside another one: that has these labels, too, as with a job that a
/// request runs, or middleware that is there twice.
pub fn begin(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    undo: RArray,
    number: Option<RequestNumber>,
) -> Result<(), Error> {
    let present = label_set::of_thread(gvl, RubyThread::current(gvl)).map(LabelSet::request);
    match number {
        Some(number) if present == Some(number) => {
            open_into(ruby, gvl, undo, Further::default())?;
            ops::begin_request(gvl, number);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Ends the request whose begin was the last thing that was noted in `undo`, if there is one.
pub fn end(ruby: &Ruby, gvl: &Gvl<'_>, undo: RArray) -> Result<(), Error> {
    if undo.is_empty() {
        return Ok(());
    }
    let step: Value = undo.entry(-1)?;
    if !step.is_kind_of(AccountObject::class(ruby)) {
        return Ok(());
    }
    let account: &AccountObject = TryConvert::try_convert(step)?;
    account.close(gvl);
    let figures = account.figures(gvl);
    let ended = end_of_present(ruby, gvl, figures.as_ref());
    let _: Value = undo.pop()?;
    ended
}

/// See [`scope::enter_at_once`]: of a request or a job, which begins with it.
pub fn enter_at_once(ruby: &Ruby, undo: RArray, labels: Option<RHash>) -> Result<bool, Error> {
    let mut gvl = gvl(ruby);
    let number = next(&gvl);
    let is_done = scope::enter_at_once(ruby, &mut gvl, undo, labels, Begins::Work(number))?;
    if is_done {
        begin(ruby, &mut gvl, undo, number)?;
    }
    Ok(is_done)
}

/// See [`scope::leave_at_once`].
pub fn leave_at_once(ruby: &Ruby, undo: RArray) -> Result<bool, Error> {
    let mut gvl = gvl(ruby);
    let ended = end(ruby, &gvl, undo);
    let is_done = scope::leave_at_once(&mut gvl, undo)?;
    ended.map(|()| is_done)
}

/// Ends the request that the present fiber's labels are of. Without `figures`, as in a forked child, it
/// isn't known how long it took.
fn end_of_present(ruby: &Ruby, gvl: &Gvl<'_>, figures: Option<&Figures>) -> Result<(), Error> {
    let Some(object) = label_set::object_of(gvl, RubyThread::current(gvl)) else {
        return Ok(());
    };
    let Some(set) = SetObject::get(&object).filter(|set| set.is_of_request()) else {
        return Ok(());
    };
    let key = set.request_key().map(|key| text::shown(ruby, key));
    let key = key.transpose()?;
    let name = key.and_then(|key| label_of(set, &key));
    let Some(session) = sampling(gvl) else {
        return Ok(());
    };
    let name = name.unwrap_or(RequestName {
        key: OTHER,
        name: OTHER,
    });
    let number = set.set.request();
    let id = RequestId {
        session: session.request_word,
        number: number.0,
    };
    let (name, judged) = match requests(gvl).and_then(|it| it.judged.borrow(gvl)) {
        None => (name, None),
        Some(mut judged) => {
            let (now, ended) = (clock::monotonic_ns(), clock::realtime_ns());
            let of_class = figures.map(|figures| judged.add(name, id, figures, now, ended));
            (judged.told_as(name), of_class)
        }
    };
    let (class, place) = judged.unzip();
    ops::end_request(session, gvl, number, name, class);
    // What ran at the last ticks is of this request.
    let guard = AtWork::begin(gvl);
    if let Some(session) = counting_session(gvl) {
        catching(session, || sample::drain_ticks(gvl, session, &guard));
    }
    if let Some(mut state) = session.state(gvl) {
        let class = class.unwrap_or(LatencyClass::Open);
        let place = place.unwrap_or_else(AmongSlowest::default);
        state.engine.end_request(number, class, place);
    }
    Ok(())
}

/// Whether the running session judges requests.
pub fn are_judged(gvl: &Gvl<'_>) -> bool {
    requests(gvl).is_some()
}

/// A session is over that has judged some: nobody needs accounts of its requests.
pub fn session_over(gvl: &Gvl<'_>) {
    hooks::end_with_session(gvl);
}

/// The requests of the running session, if it judges them.
fn requests<'a>(gvl: &'a Gvl<'_>) -> Option<&'a SessionRequests> {
    sampling(gvl)?.sums.requests.as_ref()
}

/// The label with this key, and the key as the profile has it.
fn label_of<'a>(set: &'a SetObject, key: &str) -> Option<RequestName<'a>> {
    let key = LabelSet::key(key);
    let mut labels = set.set.texts().iter();
    let (key, name) = labels.find(|(known, _)| **known == *key)?;
    Some(RequestName { key, name })
}
