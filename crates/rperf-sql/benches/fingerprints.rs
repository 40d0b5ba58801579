//! What it costs to take the values out of a statement. `cargo bench -p rperf-sql`.

use divan::{Bencher, black_box};
use rperf_sql::normalise;

fn main() {
    divan::main();
}

const SHORT: &str = "SELECT \"users\".* FROM \"users\" WHERE \"users\".\"id\" = $1 LIMIT $2";

/// A statement of 781 bytes.
fn long() -> String {
    let columns = [
        "id",
        "state",
        "total_cents",
        "currency",
        "created_at",
        "updated_at",
        "shipped_at",
    ];
    let columns = columns
        .map(|it| format!("\"orders\".\"{it}\" AS order_{it}"))
        .join(", ");
    let text = format!(
        "SELECT {columns} FROM \"orders\" INNER JOIN \"customers\" ON \"customers\".\"id\" = \
         \"orders\".\"customer_id\" WHERE \"customers\".\"country\" = 'DE' AND \"orders\".\"created_at\" \
         BETWEEN '2024-01-01' AND '2024-12-31' AND \"orders\".\"id\" IN ("
    );
    let end = ") ORDER BY \"orders\".\"id\" DESC LIMIT 100";
    let ids = "4711, ".repeat(100);
    format!("{text}{}{end}", &ids[..781 - text.len() - end.len()])
}

#[divan::bench]
fn normalise_62(bencher: Bencher) {
    let mut out = String::new();
    bencher.bench_local(|| normalise(black_box(SHORT.as_bytes()), &mut out));
}

#[divan::bench]
fn normalise_781(bencher: Bencher) {
    let (text, mut out) = (long(), String::new());
    assert_eq!(text.len(), 781);
    bencher.bench_local(|| normalise(black_box(text.as_bytes()), &mut out));
}
