//! Test of a program that hardly sends a statement twice: the memory has a bound, and the sums are exact.

use super::*;
use crate::draw::Draw;
use std::collections::BTreeMap;

/// Statements that are sent.
const STATEMENTS: u64 = 100_000;

/// Names of one kind; all further ones are its `(other)`.
const NAMED: usize = 4_063;

/// Names of other tables than these come now and then only.
const COMMON: u64 = 4_000;

/// Entries that a profile has at most.
const ENTRIES: usize = Ops::MOST + 4_096;

/// Calls, their wall time, that in which they were blocked, and objects.
type Expected = [u64; 4];

fn add(sums: &mut Expected, more: Expected) {
    sums.iter_mut().zip(more).for_each(|(sum, it)| *sum += it);
}

fn sums(of: &OpSums) -> Expected {
    let objects = of.objects.expect("known");
    [of.calls, of.wall_ns, of.blocked_ns, objects]
}

/// What all statements must add up to, by names without a bound.
#[derive(Default)]
struct Model {
    /// Whether a name has a number of its own: the first ones have.
    is_named: BTreeMap<String, bool>,
    sums: BTreeMap<String, Expected>,
    /// Calls in requests.
    in_requests: u64,
}

impl Model {
    /// The name by which a statement is told.
    fn told_as(&mut self, name: String) -> String {
        let is_early = self.is_named.len() < NAMED;
        match *self.is_named.entry(name.clone()).or_insert(is_early) {
            true => name,
            false => "[SQL] (other)".into(),
        }
    }
}

/// A statement about a table, with values and a comment of any length, and its name.
fn statement(draw: &mut Draw) -> (String, String) {
    let tables = if draw.next(2) == 0 { COMMON } else { 60_000 };
    let table = draw.next(tables);
    let (id, word) = (draw.next(u64::MAX), draw.next(u64::MAX));
    let comment = "x".repeat(draw.next(1_200) as usize);
    let text =
        |id: &str, word: &str| format!("SELECT a FROM t{table} WHERE id = {id} AND b = {word}");
    let sent = format!(
        "{} /* {comment} */",
        text(&id.to_string(), &format!("'{word}'"))
    );
    (sent, format!("[SQL] {}", text("?", "?")))
}

#[test]
fn a_hundred_thousand_random_statements_have_a_bound_and_exact_sums() {
    let mut draw = Draw(0x5eed);
    let (mut ops, mut model) = <(SessionOps, Model)>::default();
    let endpoints: Vec<String> = (0..300).map(|it| format!("/{it}")).collect();
    let mut request = RequestNumber::NONE;
    for number in 0..STATEMENTS {
        if number % 10 == 0 {
            end(&mut ops, request, &endpoints, &mut draw);
            request = RequestNumber(number as u32 + 1);
            ops.begin_request(request);
        }
        let (sent, name) = statement(&mut draw);
        let op = ops.number("sql", sent.as_bytes());
        let told = model.told_as(name);
        assert_eq!(ops.name(op).as_deref(), Some(&*told));
        let call = call(10 + draw.next(1_000_000), draw.next(10), draw.next(50));
        let Figures { wall_ns, sums, .. } = call.figures;
        let took = [1, wall_ns, sums.blocked_ns, sums.allocated_objects];
        add(model.sums.entry(told).or_default(), took);
        let is_in_request = draw.next(3) > 0;
        model.in_requests += u64::from(is_in_request);
        let of = if is_in_request {
            request
        } else {
            RequestNumber::NONE
        };
        ops.add(op, of, &call);
    }
    end(&mut ops, request, &endpoints, &mut draw);
    assert_eq!(model.sums.len(), NAMED + 1);
    assert!(model.is_named.len() > 5 * NAMED, "{}", model.is_named.len());
    assert_eq!((ops.open.len(), ops.places), (0, 0));
    assert!(ops.names.memory() < 5 << 20, "{}", ops.names.memory());
    assert!(ops.outside.len() <= NAMED + 1);
    assert_eq!(ops.calls.len(), NAMED + 1);
    expect_sums(&ops.told(true), &model);
    assert!(ops.told(true).is_empty());
}

/// Ends a request of any endpoint and class.
fn end(ops: &mut SessionOps, request: RequestNumber, endpoints: &[String], draw: &mut Draw) {
    let name = &endpoints[draw.next(endpoints.len() as u64) as usize];
    let class = LatencyClass::ALL[draw.next(LatencyClass::ENDED as u64) as usize];
    ops.end_request(request, RequestName { name, ..NAME }, Some(class));
}

fn expect_sums(told: &Ops, model: &Model) {
    assert!(
        told.len() > Ops::MOST,
        "the bound is reached: {}",
        told.len()
    );
    assert!(told.len() <= ENTRIES, "{}", told.len());
    let mut found: BTreeMap<String, Expected> = BTreeMap::new();
    let mut in_requests = 0;
    for (key, it) in told.iter() {
        add(found.entry(key.name.clone()).or_default(), sums(it));
        in_requests += it.classes.iter().map(|it| it.calls).sum::<u64>();
        assert_eq!(it.own_ns(), it.wall_ns, "{key:?}");
        assert_eq!(
            (it.blocked.count(), it.blocked.sum()),
            (it.calls, it.blocked_ns)
        );
    }
    assert_eq!(in_requests, model.in_requests);
    assert!(found == model.sums, "the sums of some name are wrong");
    let calls: u64 = found.values().map(|it| it[0]).sum();
    assert_eq!(calls, STATEMENTS);
}
