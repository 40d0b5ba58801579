//! What the ops of an endpoint took in typical requests and in slow ones. A template has the queries inside of it, so
//! ops come by what they took without others.

use super::means::{Means, mean};
use crate::requests::ops::Lines;
use crate::stack::groups::Function;
use rperf_model::{LatencyClass, OpKey, OpSums, Order, Profile, Requests};
use std::cmp::Reverse;

/// An op of an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct OpShare {
    /// Its name.
    pub name: String,
    /// Calls in a typical request and in one of the tail, in thousandths.
    pub calls: Means,
    /// Their time, with the ops inside of them, in ns.
    pub wall: Means,
    /// How many in a hundred requests repeat it, if the endpoint does.
    pub repeated_percent: Option<f64>,
    /// The application's function and line that most of its samples lead to.
    pub app: Option<(Function, u32)>,
}

/// The ops of these requests.
pub(super) fn ops_of(profile: &Profile, requests: &Requests) -> Vec<OpShare> {
    let is_theirs = |key: &OpKey| key.key == requests.key && key.endpoint == requests.name;
    let mut theirs = profile.ops.iter().filter(|it| is_theirs(it.0)).peekable();
    if theirs.peek().is_none() {
        return Vec::new();
    }
    let lines = Lines::of(profile);
    let [typical, tail] = [LatencyClass::Typical, LatencyClass::Tail];
    let means = |value: &dyn Fn(LatencyClass) -> u64| Means {
        typical: mean(value(typical), requests.class(typical).count),
        tail: mean(value(tail), requests.class(tail).count),
    };
    let of = |(key, sums): (&OpKey, &OpSums)| {
        let class = |class| {
            let calls = sums.classes.get(class as usize).copied();
            calls.unwrap_or_default()
        };
        let is_repeated = sums.is_repeated(requests.count());
        OpShare {
            name: key.name.clone(),
            calls: means(&|it| class(it).calls.saturating_mul(1_000)),
            wall: means(&|it| class(it).wall_ns),
            repeated_percent: is_repeated
                .then(|| rperf_model::numbers::percent(sums.repeated, requests.count())),
            app: lines.of_op(&key.name, Some(key)),
        }
    };
    let mut ops: Vec<_> = theirs
        .map(|it| (of(it), it.1))
        .map(|(op, sums)| (own_time(&op.wall, sums), op))
        .collect();
    ops.order_by_key(|it| Reverse(it.0));
    ops.into_iter().map(|it| it.1).collect()
}

/// What a request's calls took without the ops inside of them, by their part in all calls: of one class only the
/// whole time is counted. Then that of all calls, for endpoints none of whose requests has a class.
fn own_time(wall: &Means, sums: &OpSums) -> (i64, u64) {
    let part = sums.own_ns() as f64 / sums.wall_ns.max(1) as f64;
    let most = wall.tail.max(wall.typical) as f64;
    ((most * part.min(1.0)) as i64, sums.own_ns())
}
