//! The ops of one account: how often each was called in it, and how long that took. Under the GVL.

use rperf_model::Ops;
use rperf_model::Order;
use std::cmp::Reverse;
use std::sync::Arc;

/// Ops that are told apart. The calls of others are one row.
const MOST: usize = 64;

/// The calls of ops that have ended while an account was open, in its fiber.
#[derive(Debug, Clone, Default)]
pub struct AccountOps {
    rows: Vec<AccountOp>,
}

/// The calls of one op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountOp {
    /// The op's name.
    pub name: Arc<str>,
    /// How many there were.
    pub calls: u64,
    /// What they took.
    pub time: OpTime,
}

/// The time of calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpTime {
    /// With the ops inside of them. A call inside of another one of the same op takes part of that one's time.
    pub wall_ns: u64,
    /// Without these.
    pub own_ns: u64,
}

impl OpTime {
    /// No more than so much.
    pub(crate) fn up_to(self, most_ns: u64) -> Self {
        Self {
            wall_ns: self.wall_ns.min(most_ns),
            own_ns: self.own_ns.min(most_ns),
        }
    }
}

impl AccountOps {
    /// A call has ended that took so long.
    pub fn add(&mut self, name: &Arc<str>, time: OpTime) {
        let known = self.rows.iter().position(|it| it.name == *name);
        if let Some(row) = known {
            return self.rows[row].add(time);
        }
        let name = match self.rows.len() + 1 < MOST {
            true => Arc::clone(name),
            false if self.rows.len() < MOST => Arc::from(Ops::OTHER),
            false => return self.rows[MOST - 1].add(time),
        };
        let mut new = AccountOp {
            name,
            calls: 0,
            time: OpTime::default(),
        };
        new.add(time);
        self.rows.push(new);
    }

    /// All, those first that took most without the ops inside of them.
    pub fn sorted(&self) -> Vec<AccountOp> {
        let mut rows = self.rows.clone();
        rows.order_by_key(|it| (Reverse(it.time.own_ns), it.name.clone()));
        rows
    }
}

impl AccountOp {
    fn add(&mut self, time: OpTime) {
        self.calls += 1;
        let sum = &mut self.time;
        sum.wall_ns = sum.wall_ns.saturating_add(time.wall_ns);
        sum.own_ns = sum.own_ns.saturating_add(time.own_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(wall_ns: u64, own_ns: u64) -> OpTime {
        OpTime { wall_ns, own_ns }
    }

    #[test]
    fn those_come_first_that_took_most_without_others() {
        let mut ops = AccountOps::default();
        for (name, wall_ns, own_ns) in [("page", 100, 10), ("query", 40, 40), ("query", 50, 50)] {
            ops.add(&name.into(), time(wall_ns, own_ns));
        }
        let rows = ops.sorted();
        let rows = rows.iter().map(|it| (&*it.name, it.calls, it.time));
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [("query", 2, time(90, 90)), ("page", 1, time(100, 10))]
        );
    }

    #[test]
    fn calls_add_up_by_name_and_those_beyond_are_one_row() {
        let mut ops = AccountOps::default();
        for call in 0..3 * MOST as u64 {
            let name: Arc<str> = format!("op {}", call % 100).into();
            ops.add(&name, time(call, call));
        }
        let rows = ops.sorted();
        assert_eq!(rows.len(), MOST);
        let other = &rows[0];
        assert_eq!((&*other.name, other.calls), (Ops::OTHER, 192 - 63 - 63));
        assert_eq!(rows.iter().map(|it| it.calls).sum::<u64>(), 192);
        assert_eq!(
            rows.iter().map(|it| it.time.wall_ns).sum::<u64>(),
            (0..192).sum()
        );
        assert_eq!(
            rows[1],
            AccountOp {
                name: "op 62".into(),
                calls: 2,
                time: time(62 + 162, 62 + 162)
            }
        );
    }
}
