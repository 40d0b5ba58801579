//! The ops of one account: how often each was called in it, and how long that took. Under the GVL.

use rperf_model::Ops;
use rperf_model::Order;
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
    /// What they took, with the ops inside of them. A call inside of another one of the same op takes
    /// part of that one's time.
    pub wall_ns: u64,
}

impl AccountOps {
    /// A call has ended that took so long.
    pub fn add(&mut self, name: &Arc<str>, wall_ns: u64) {
        let known = self.rows.iter().position(|it| it.name == *name);
        if let Some(row) = known {
            return self.rows[row].add(wall_ns);
        }
        let name = match self.rows.len() + 1 < MOST {
            true => Arc::clone(name),
            false if self.rows.len() < MOST => Arc::from(Ops::OTHER),
            false => return self.rows[MOST - 1].add(wall_ns),
        };
        let mut new = AccountOp {
            name,
            calls: 0,
            wall_ns: 0,
        };
        new.add(wall_ns);
        self.rows.push(new);
    }

    /// All, those with the most time first.
    pub fn sorted(&self) -> Vec<AccountOp> {
        let mut rows = self.rows.clone();
        rows.order_by(|a, b| b.wall_ns.cmp(&a.wall_ns).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}

impl AccountOp {
    fn add(&mut self, wall_ns: u64) {
        self.calls += 1;
        self.wall_ns = self.wall_ns.saturating_add(wall_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up_by_name_and_those_beyond_are_one_row() {
        let mut ops = AccountOps::default();
        for call in 0..3 * MOST as u64 {
            let name: Arc<str> = format!("op {}", call % 100).into();
            ops.add(&name, call);
        }
        let rows = ops.sorted();
        assert_eq!(rows.len(), MOST);
        let other = &rows[0];
        assert_eq!((&*other.name, other.calls), (Ops::OTHER, 192 - 63 - 63));
        assert_eq!(rows.iter().map(|it| it.calls).sum::<u64>(), 192);
        assert_eq!(
            rows.iter().map(|it| it.wall_ns).sum::<u64>(),
            (0..192).sum()
        );
        assert_eq!(
            rows[1],
            AccountOp {
                name: "op 62".into(),
                calls: 2,
                wall_ns: 62 + 162
            }
        );
    }
}
