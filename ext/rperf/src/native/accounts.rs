//! `Rperf::Account`, and the methods of `Rperf::Native` that open, close and keep accounts.

use super::gvl;
use crate::accounts::object::{self, AccountObject, Further};
use crate::accounts::{hooks, process};
use crate::ruby::{counters, ractor};
use crate::running::sampling::measures_ops;
use crate::text;
use magnus::typed_data::Obj;
use magnus::{Error, RArray, RHash, RModule, RString, Ruby, Value, function, method, prelude::*};
use rperf_accounts::Summary;
use rperf_vm::Gvl;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether requests and jobs get accounts: children that are forked have them, too.
static ARE_ON: AtomicBool = AtomicBool::new(false);

/// Whether the program is told of each account that ends.
static ARE_TOLD: AtomicBool = AtomicBool::new(false);

/// Defines `Rperf::Account`, and the methods of `Native` that open and close accounts. On the main
/// thread, once.
pub fn init(ruby: &Ruby, rperf: RModule, native: RModule) -> Result<(), Error> {
    counters::init_objects(ruby);
    let class = object::init(ruby, rperf)?;
    class.define_private_method("figures", method!(figures, 0))?;
    class.define_private_method("op_rows", method!(op_rows, 0))?;
    class.define_method("name", method!(AccountObject::name, 0))?;
    class.define_private_method("take_name", method!(take_name, 1))?;
    class.define_method("known?", method!(is_known, 0))?;
    class.define_method("open?", method!(is_open, 0))?;
    native.define_singleton_method("open_account", function!(open, 1))?;
    native.define_singleton_method("close_account", function!(close, 1))?;
    native.define_singleton_method("keep_account", function!(keep, 1))?;
    native.define_singleton_method("tell_accounts", function!(tell, 0))?;
    native.define_singleton_method("kept_accounts", function!(kept, 0))?;
    native.define_singleton_method("begin_accounts", function!(begin, 0))?;
    native.define_singleton_method("end_accounts", function!(end, 0))
}

/// `Native.open_account(array)`: opens an account of the present fiber, and pushes it. An interrupt can
/// come as this returns; then the caller finds it there.
pub fn open(ruby: &Ruby, array: RArray) -> Result<(), Error> {
    let mut gvl = gvl(ruby);
    let with = Further {
        cpu: true,
        ops: measures_ops(&gvl),
    };
    open_into(ruby, &mut gvl, array, with)
}

/// Opens an account of the present fiber, and pushes it.
pub fn open_into(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    array: RArray,
    with: Further,
) -> Result<(), Error> {
    look_for_ractors(ruby, gvl)?;
    let account = object::new(ruby, gvl);
    array.push(account)?;
    account.open(gvl, with);
    Ok(())
}

/// Notes whether there are other Ractors, if that isn't known: what they make and wait for can't be told
/// from ours. The hooks tell of those that come later.
pub fn look_for_ractors(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(), Error> {
    let is_known = hooks::are_there() && !process::begun(gvl).other_ractors.load(Relaxed);
    if !is_known {
        let are_there = ractor::are_there_others(ruby, gvl)?;
        process::begun(gvl).other_ractors.store(are_there, Relaxed);
    }
    Ok(())
}

/// `Native.close_account(array)`: closes the last account of the array, if there is one, and it is open.
fn close(ruby: &Ruby, array: RArray) -> Result<(), Error> {
    if array.is_empty() {
        return Ok(());
    }
    let account: &AccountObject = array.entry(-1)?;
    account.close(&gvl(ruby));
    Ok(())
}

/// `Native.keep_account(account)`: adds an account that is closed to the quantiles of its name, if it has one.
fn keep(ruby: &Ruby, account: &AccountObject) {
    keep_known(&gvl(ruby), account);
}

/// Closes the account, and keeps it if requests get accounts. Returns whether its values are known.
pub fn close_and_keep(ruby: &Ruby, account: &AccountObject) -> bool {
    let gvl = gvl(ruby);
    account.close(&gvl);
    match are_on() {
        true => keep_known(&gvl, account),
        false => account.figures(&gvl).is_some(),
    }
}

/// Keeps the account, if its values are known, which it returns.
fn keep_known(gvl: &Gvl<'_>, account: &AccountObject) -> bool {
    let Some(figures) = account.figures(gvl) else {
        return false;
    };
    if let Some(name) = account.name().and_then(RString::from_value)
        && let Some(process) = process::present(gvl)
        && let Some(mut table) = process.table.borrow(gvl)
    {
        text::with_bytes(name, |name| {
            table.add(&String::from_utf8_lossy(name), &figures)
        });
    }
    true
}

/// Whether the program is told of each account that ends.
pub fn are_told() -> bool {
    ARE_TOLD.load(Relaxed)
}

/// `Native.tell_accounts`: `Native.end_request` returns accounts that the program is to be told of.
fn tell() {
    ARE_TOLD.store(true, Relaxed);
}

/// `Native.kept_accounts`: a Hash of all names, each with a Hash of `:count` and its values.
fn kept(ruby: &Ruby) -> Result<RHash, Error> {
    let all = {
        let gvl = gvl(ruby);
        let table = process::present(&gvl).and_then(|it| it.table.borrow(&gvl));
        table.map(|table| {
            let all = table.all().into_iter();
            let of = |(name, it): (&str, &Summary)| (name.to_owned(), it.count(), it.values());
            all.map(of).collect::<Vec<_>>()
        })
    };
    let hash = ruby.hash_new();
    for (name, count, values) in all.unwrap_or_default() {
        let summary = ruby.hash_new();
        summary.aset(ruby.to_symbol("count"), count)?;
        for value in values {
            let of = ruby.hash_new();
            for (key, number) in [
                ("sum", value.sum),
                ("p50", value.p50),
                ("p90", value.p90),
                ("p99", value.p99),
                ("max", value.max),
            ] {
                of.aset(ruby.to_symbol(key), number)?;
            }
            summary.aset(ruby.to_symbol(value.name), of)?;
        }
        hash.aset(ruby.str_new(&name), summary)?;
    }
    Ok(hash)
}

/// Whether requests and jobs get accounts.
pub fn are_on() -> bool {
    ARE_ON.load(Relaxed)
}

/// `Native.begin_accounts`: the hooks stay until accounts are ended.
fn begin(ruby: &Ruby) {
    let gvl = gvl(ruby);
    let process = process::begun(&gvl);
    process.ends.store(false, Relaxed);
    process.is_on.store(true, Relaxed);
    ARE_ON.store(true, Relaxed);
}

/// `Native.end_accounts`: forgets what is kept. The hooks are removed as soon as no account is open.
fn end(ruby: &Ruby) {
    ARE_ON.store(false, Relaxed);
    hooks::end(&gvl(ruby));
}

/// `Account#figures`: its values, in the order of `Rperf::Account::VALUES`; nil where they can't be told.
fn figures(ruby: &Ruby, account: &AccountObject) -> Result<Option<RArray>, Error> {
    let Some(figures) = account.figures(&gvl(ruby)) else {
        return Ok(None);
    };
    let sums = &figures.sums;
    let values = [
        Some(figures.wall_ns),
        Some(sums.running_ns),
        Some(sums.gvl_wait_ns),
        Some(sums.blocked_ns),
        Some(sums.gc_ns),
        Some(figures.suspended_ns),
        figures.cpu_ns,
        Some(sums.gvl_blame_ns).filter(|_| figures.is_alone),
        Some(sums.allocated_objects).filter(|_| figures.is_alone),
        Some(sums.hand_overs),
    ];
    let array = ruby.ary_new_capa(values.len());
    for value in values {
        array.push(value)?;
    }
    Ok(Some(array))
}

/// `Account#take_name(name)`: takes a String as its name; or nil, and what isn't one: then it has none.
fn take_name(account: Obj<AccountObject>, name: Value) -> Result<(), Error> {
    account.check_frozen()?;
    account.set_name(RString::from_value(name));
    Ok(())
}

/// `Account#op_rows`: an Array of name, calls, wall time and own time for each op; nil if it doesn't tell of them.
fn op_rows(ruby: &Ruby, account: &AccountObject) -> Result<Option<RArray>, Error> {
    let Some(ops) = account.ops(&gvl(ruby)) else {
        return Ok(None);
    };
    let rows = ruby.ary_new_capa(ops.len());
    for op in ops {
        rows.push((&*op.name, op.calls, op.time.wall_ns, op.time.own_ns))?;
    }
    Ok(Some(rows))
}

/// `Account#known?`: whether it can be told.
fn is_known(ruby: &Ruby, account: &AccountObject) -> bool {
    account.figures(&gvl(ruby)).is_some()
}

/// `Account#open?`: whether it goes on.
fn is_open(ruby: &Ruby, account: &AccountObject) -> bool {
    account.is_open(&gvl(ruby))
}
