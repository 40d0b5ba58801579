//! The methods of `Rperf::Native` that tell the running session of tests and factories
//! (lib/rperf/suite.rb).

use super::accounts::open_into;
use super::gvl;
use crate::accounts::object::{AccountObject, Further};
use crate::labels::scope::{self, LeftOps};
use crate::running::derived_labels::Begins;
use crate::running::sampling::{SamplingSession, sampling};
use crate::text;
use magnus::{Error, RArray, RHash, RModule, RString, Ruby, Value, function, prelude::*};
use rperf_accounts::{FactoryRun, Figures, SuiteAccounts};
use rperf_model::Suite;
use rperf_vm::Gvl;
use std::hint::black_box;

/// Defines the methods.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("samples", function!(samples, 0))?;
    native.define_singleton_method("begin_test", function!(begin, 4))?;
    native.define_singleton_method("end_test", function!(end, 3))?;
    native.define_singleton_method("end_factory", function!(end_factory, 6))
}

/// `Native.samples`: the number of the running session, if it samples.
fn samples(ruby: &Ruby) -> Option<u64> {
    sampling(&gvl(ruby)).map(|session| session.id.0)
}

/// `Native.begin_test(opened, undo, group, name)`: opens an account, if the session samples, and
/// puts labels on what follows. Notes both in the Arrays, which `end_test` takes. `group` is the
/// file, and `name` the example, or nil for what runs beside examples; both are frozen.
fn begin(
    ruby: &Ruby,
    opened: RArray,
    undo: RArray,
    group: RString,
    name: Option<RString>,
) -> Result<(), Error> {
    let id = samples(ruby);
    if let Some(id) = id {
        let with = Further {
            cpu: true,
            ops: false,
        };
        open_into(ruby, &mut gvl(ruby), opened, with)?;
        opened.push(id)?;
        opened.push(group)?;
    }
    let label = match name {
        None => {
            with_suite(&gvl(ruby), id, SuiteAccounts::begin_group);
            ruby.str_new(Suite::HOOKS)
        }
        Some(name) => {
            let has_room = with_suite(&gvl(ruby), id, SuiteAccounts::begin_example);
            let has_room = has_room.unwrap_or(true);
            opened.push(if has_room { name } else { ruby.str_new("") })?;
            if has_room { name } else { group }
        }
    };
    label.freeze();
    let labels = ruby.hash_new();
    labels.aset(ruby.to_symbol("example"), label)?;
    labels.aset(ruby.to_symbol("group"), group)?;
    put(ruby, undo, labels)
}

/// Without Ruby code that could fail, if the texts are Strings that stay as they are.
fn put(ruby: &Ruby, undo: RArray, labels: RHash) -> Result<(), Error> {
    scope::enter(
        ruby,
        &mut gvl(ruby),
        undo,
        Some(labels),
        false,
        Begins::Block,
    )?;
    black_box(labels);
    Ok(())
}

/// `Native.end_test(opened, undo, title)`: closes what `begin_test` has opened, keeps it in the
/// session that it began in, and empties `opened`. `title` is what people call it, if it is a
/// String.
fn end(ruby: &Ruby, opened: RArray, undo: RArray, title: Value) -> Result<(), Error> {
    if opened.len() > 1 {
        let account: &AccountObject = opened.entry(0)?;
        account.close(&gvl(ruby));
        if opened.len() > 2 {
            keep(ruby, opened, title, account)?;
        }
        // So it's seen to have ended.
        opened.clear()?;
    }
    scope::leave(&mut gvl(ruby), undo, LeftOps::End)
}

fn keep(ruby: &Ruby, opened: RArray, title: Value, account: &AccountObject) -> Result<(), Error> {
    let (id, group): (u64, RString) = (opened.entry(1)?, opened.entry(2)?);
    let name: Option<RString> = opened.entry(3)?;
    let (group, name) = (text::content(group), name.map(text::content));
    let title = text::of_string(title).unwrap_or_default();
    let gvl = gvl(ruby);
    let Some(figures) = account.figures(&gvl) else {
        return Ok(());
    };
    with_suite(&gvl, Some(id), |suite| match name {
        Some(name) => suite.add_example(&group, &name, &title, &figures),
        None => suite.add_hooks(&group, &figures),
    });
    Ok(())
}

/// `Native.end_factory(opened, session, name, nested_ns, top_level, within)`: closes the account of
/// a run of the factory `name`, and keeps it in the session of this number. Returns its wall time,
/// if it is known.
fn end_factory(
    ruby: &Ruby,
    opened: RArray,
    session: u64,
    name: RString,
    nested_ns: u64,
    is_top_level: bool,
    is_within_itself: bool,
) -> Result<Option<u64>, Error> {
    let account: &AccountObject = opened.entry(0)?;
    let gvl = gvl(ruby);
    account.close(&gvl);
    let run = FactoryRun {
        nested_ns,
        is_top_level,
        is_within_itself,
    };
    let name = text::content(name);
    let figures: Option<Figures> = account.figures(&gvl);
    if let Some(figures) = &figures {
        with_suite(&gvl, Some(session), |suite| {
            suite.add_factory(&name, run, figures)
        });
    }
    Ok(figures.map(|it| it.wall_ns))
}

/// Does `work` with the tests of the running session, if it is that of this number.
fn with_suite<T>(
    gvl: &Gvl<'_>,
    id: Option<u64>,
    work: impl FnOnce(&mut SuiteAccounts) -> T,
) -> Option<T> {
    let is_that = |session: &&SamplingSession| Some(session.id.0) == id;
    let session = sampling(gvl).filter(is_that)?;
    let mut suite = session.sums.suite.borrow(gvl)?;
    Some(work(&mut suite))
}
