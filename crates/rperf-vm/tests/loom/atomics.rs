//! Loom's atomics, as the files that models include need them.
//!
//! - They can be made in statics and by `const fn`: the real one is made when it is used first. That
//!   must be before a model begins threads that share it.
//! - Loom knows the one order of all accesses that are SeqCst only between a load and stores of that
//!   kind. So the first value is stored so, too.
//! - Their orders can be weaker than the code asks for: to show that a model finds such a fault.

use loom::sync::atomic as modelled;
use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

pub use loom::thread::yield_now;
/// Whoever waits for another thread has to let it run.
pub use loom::thread::yield_now as spin_loop;
pub use std::sync::atomic::Ordering;

/// To sleep is to let others run.
pub fn sleep(_: std::time::Duration) {
    yield_now();
}

/// What is made of the orders that the code asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orders {
    /// Nothing else.
    AsWritten,
    /// What is SeqCst acquires and releases only.
    WithoutTotalOrder,
    /// All are relaxed.
    AllRelaxed,
    /// All but fences, which do nothing.
    WithoutFences,
}

thread_local!(static ORDERS: Cell<Orders> = const { Cell::new(Orders::AsWritten) });

/// Sets those of the models that the calling thread runs from here on.
fn set_orders(orders: Orders) {
    ORDERS.set(orders);
}

/// `seq_cst` is what takes the place of SeqCst.
fn weakened(order: Ordering, seq_cst: Ordering) -> Ordering {
    match (ORDERS.get(), order) {
        (Orders::AllRelaxed, _) => Relaxed,
        (Orders::WithoutTotalOrder, SeqCst) => seq_cst,
        _ => order,
    }
}

/// A fence that is relaxed orders nothing.
pub fn fence(order: Ordering) {
    match (ORDERS.get(), weakened(order, AcqRel)) {
        (Orders::WithoutFences, _) | (_, Relaxed) => {}
        (_, order) => modelled::fence(order),
    }
}

macro_rules! atomic {
    ($name:ident$(<$kind:ident>)?, $value:ty) => {
        pub struct $name$(<$kind>)? {
            first: std::sync::atomic::$name$(<$kind>)?,
            made: OnceLock<Box<modelled::$name$(<$kind>)?>>,
        }

        impl$(<$kind>)? $name$(<$kind>)? {
            pub const fn new(first: $value) -> Self {
                Self {
                    first: std::sync::atomic::$name::new(first),
                    made: OnceLock::new(),
                }
            }

            fn made(&self) -> &modelled::$name$(<$kind>)? {
                self.made.get_or_init(|| {
                    let first = self.first.load(Relaxed);
                    let made = modelled::$name::new(first);
                    made.store(first, SeqCst);
                    Box::new(made)
                })
            }

            pub fn load(&self, order: Ordering) -> $value {
                self.made().load(weakened(order, Acquire))
            }

            pub fn store(&self, value: $value, order: Ordering) {
                self.made().store(value, weakened(order, Release));
            }

            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.made().swap(value, weakened(order, AcqRel))
            }

            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let (success, failure) = (weakened(success, AcqRel), weakened(failure, Acquire));
                self.made().compare_exchange(current, new, success, failure)
            }

            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }
        }

        impl$(<$kind>)? fmt::Debug for $name$(<$kind>)? {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(stringify!($name))
            }
        }
    };
}

macro_rules! number {
    ($name:ident, $value:ty) => {
        atomic!($name, $value);

        impl $name {
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.made().fetch_add(value, weakened(order, AcqRel))
            }

            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.made().fetch_sub(value, weakened(order, AcqRel))
            }

            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let (set, fetch) = (weakened(set, AcqRel), weakened(fetch, Acquire));
                self.made().fetch_update(set, fetch, update)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }
    };
}

atomic!(AtomicPtr<T>, *mut T);
atomic!(AtomicBool, bool);

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

number!(AtomicI32, i32);
number!(AtomicU8, u8);
number!(AtomicU32, u32);
number!(AtomicU64, u64);
number!(AtomicUsize, usize);

/// A model, and what orders it must fail with.
pub struct Model {
    pub name: &'static str,
    pub model: fn(),
    /// How often threads are switched where none has to wait: more finds more, and takes longer.
    pub switches: usize,
    /// Where a weaker order does harm that loom sees.
    pub fails_with: Option<Orders>,
}

/// Runs all, and then those that fail with weaker orders. It ends the process with 1 if one of the first
/// fails, or one of the second doesn't.
pub fn run(models: &[Model]) {
    for it in models {
        check(it.model, it.switches);
        eprintln!("loom: {}: ok", it.name);
    }
    std::panic::set_hook(Box::new(|_| {}));
    let mut bad = 0;
    for it in models {
        let Some(orders) = it.fails_with else {
            continue;
        };
        let (name, model, switches) = (it.name, it.model, it.switches);
        let fails = std::thread::spawn(move || {
            set_orders(orders);
            check(model, switches);
        });
        if fails.join().is_err() {
            eprintln!("loom: {name}: fails {orders:?}, as it must");
        } else {
            eprintln!("loom: {name}: doesn't fail {orders:?}");
            bad += 1;
        }
    }
    std::process::exit(i32::from(bad > 0));
}

/// What `make` makes, which may need more of a stack than a thread of a model has. It is to use none of it.
pub fn large<T: Send + 'static>(make: impl FnOnce() -> T + Send + 'static) -> Box<T> {
    let made = std::thread::spawn(|| Box::new(make()));
    made.join().expect("it doesn't panic")
}

fn check(model: fn(), switches: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.max_branches = 10_000;
    builder.check(model);
}
