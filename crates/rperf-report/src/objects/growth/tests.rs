//! Tests of growth, with simulated programs of known truth.

use super::*;

const MINUTE: u64 = 60_000_000_000;

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// With mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// What is seen in so many looks, one a minute: the function has minutes, and the noise of the look.
fn seen(looks: u64, seed: u64, amount: impl Fn(f64, f64) -> f64) -> Vec<Seen> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
    let look = |it: u64| Seen {
        time_ns: 7 + it * MINUTE,
        amount: amount(it as f64, random.normal()),
    };
    (0..looks).map(look).collect()
}

fn measure(sample: f64, least: f64) -> Measure {
    Measure {
        sample,
        grain: 0.0,
        least,
    }
}

/// How many of 20 programs are said to grow.
fn growing(looks: u64, one: f64, amount: impl Fn(f64, f64) -> f64) -> usize {
    let of = |seed| Growth::of(&seen(looks, seed, &amount), measure(one, 1000.0));
    (0..20)
        .filter(|seed| of(*seed).verdict == Verdict::Grows)
        .count()
}

#[test]
fn a_leak_is_found_with_its_slope() {
    for looks in [11, 30, 120] {
        for seed in 0..20 {
            let seen = seen(looks, seed, |minute, noise| {
                5e6 + 1e5 * minute + 3e4 * noise
            });
            let growth = Growth::of(&seen, measure(0.0, 1000.0));
            assert_eq!(growth.verdict, Verdict::Grows, "{looks} {seed} {growth:?}");
            let off = growth.per_hour / 6e6 - 1.0;
            assert!(off.abs() < 0.15, "{looks} {seed} {growth:?}");
        }
    }
}

#[test]
fn few_looks_are_enough_for_what_grows_evenly() {
    let growth = |looks| {
        let seen = seen(looks, 1, |minute, _| 1e6 * minute);
        Growth::of(&seen, measure(0.0, 1.0))
    };
    assert_eq!(growth(2).verdict, Verdict::Unknown);
    assert_eq!(growth(3).verdict, Verdict::Grows);
    assert!((growth(3).per_hour - 6e7).abs() < 1.0);
}

#[test]
fn noise_is_no_leak() {
    for looks in [3, 5, 11, 40] {
        let count = growing(looks, 0.0, |_, noise| 5e7 + 1e6 * noise);
        assert!(count <= 1, "{looks}: {count}");
    }
}

#[test]
fn a_cache_that_turns_over_is_no_leak() {
    for looks in [11, 30, 120] {
        for period in [2.3, 3.7, 7.1] {
            let count = growing(looks, 0.0, |minute, noise| {
                5e6 + 1e6 * (minute / period).fract() + 2e4 * noise
            });
            assert!(count <= 1, "{looks} {period}: {count}");
        }
    }
}

#[test]
fn what_grows_while_a_program_warms_up_is_no_leak() {
    for looks in [11, 30, 120] {
        for part in [0.1, 0.3, 0.5, 0.7] {
            let count = growing(looks, 0.0, |minute, noise| {
                let warm = minute / (part * (looks - 1) as f64);
                1e6 + 1e7 * warm.min(1.0) + 1e5 * noise
            });
            assert!(count <= 1, "{looks} {part}: {count}");
        }
        let count = growing(looks, 0.0, |minute, noise| {
            let late = minute * 4.0 / (looks - 1) as f64;
            1e6 + 1e7 * (1.0 - (-late).exp()) + 1e5 * noise
        });
        assert!(count <= 1, "{looks}: {count}");
    }
}

#[test]
fn a_few_samples_more_are_chance() {
    // One sample came, then another one, each of which stands for 64 KB.
    let few = seen(11, 1, |minute, _| (minute / 5.0).floor() * 65_536.0);
    assert_ne!(
        Growth::of(&few, measure(65_536.0, 1.0)).verdict,
        Verdict::Grows
    );
    let many = seen(11, 1, |minute, _| (minute * 5.0).floor() * 65_536.0);
    let growth = Growth::of(&many, measure(65_536.0, 1.0));
    assert_eq!(growth.verdict, Verdict::Grows);
    // 50 samples: a seventh is the least error.
    assert!(growth.error / growth.per_hour > 0.13, "{growth:?}");
}

#[test]
fn growth_below_the_least_is_none() {
    let little = seen(11, 1, |minute, _| 40.0 * minute);
    assert_eq!(
        Growth::of(&little, measure(0.0, 1000.0)).verdict,
        Verdict::Steady
    );
    assert_eq!(
        Growth::of(&little, measure(0.0, 100.0)).verdict,
        Verdict::Grows
    );
    assert_eq!(Growth::of(&[], measure(0.0, 0.0)).verdict, Verdict::Unknown);
}

/// What is seen of an amount whose noise at a look is like that at the look before, by `rho`.
fn alike(looks: u64, seed: u64, rho: f64, per_look: f64) -> Vec<Seen> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
    let mut noise = random.normal();
    let look = |it: u64| {
        let amount = 5e7 + 1e6 * noise + per_look * it as f64;
        noise = rho * noise + (1.0 - rho * rho).sqrt() * random.normal();
        Seen {
            time_ns: 7 + it * MINUTE,
            amount,
        }
    };
    (0..looks).map(look).collect()
}

fn of_rows(rows: &[Vec<Seen>]) -> Vec<Growth> {
    Growth::of_all(rows.iter().map(|it| (&**it, measure(0.0, 1000.0))))
}

/// Rows of a program in which nothing grows.
fn still(looks: u64, run: u64, rho: f64, rows: u64) -> Vec<Vec<Seen>> {
    let row = |row| alike(looks, run * 1000 + row, rho, 0.0);
    (0..rows).map(row).collect()
}

#[test]
fn noise_of_many_rows_is_no_leak() {
    for rho in [0.0, 0.5, 0.7] {
        for looks in [3, 5, 11] {
            let count = |verdict| {
                let has = |run: &u64| {
                    let all = of_rows(&still(looks, *run, rho, 30));
                    all.iter().any(|it| it.verdict == verdict)
                };
                (0..20).filter(has).count()
            };
            let counts = [Verdict::Grows, Verdict::GrewOnce].map(count);
            assert!(
                counts.iter().all(|it| *it <= 1),
                "{rho} {looks}: {counts:?}"
            );
        }
    }
}

#[test]
fn the_error_holds_for_looks_that_are_alike() {
    for rho in [0.0, 0.5, 0.7] {
        for looks in [5, 11, 31] {
            let growths: Vec<Growth> = (0..10)
                .flat_map(|run| of_rows(&still(looks, run, rho, 30)))
                .collect();
            let is_within = |it: &&Growth| it.per_hour.abs() <= 2.0 * it.error;
            let share = growths.iter().filter(is_within).count() as f64 / 300.0;
            assert!(share >= 0.9, "{rho} {looks}: {share}");
        }
    }
}

/// The verdict about the first of many rows, if it is this one.
fn among(rows: u64, first: Vec<Seen>) -> Verdict {
    let mut all = still(first.len() as u64, 3, 0.5, rows);
    all[0] = first;
    of_rows(&all)[0].verdict
}

#[test]
fn a_leak_is_found_among_many_rows() {
    for (looks, noise) in [(5, 1e4), (7, 5e4), (11, 1e5), (31, 4e5)] {
        for seed in 0..10 {
            let leak = seen(looks, seed, |minute, random| 1e6 * minute + noise * random);
            assert_eq!(among(200, leak), Verdict::Grows, "{looks} {seed}");
        }
    }
    // Three looks have to be on a line to tell anything of one of many.
    let leak = |noise: f64| seen(3, 2, |minute, random| 1e6 * minute + noise * random);
    assert_eq!(among(30, leak(0.0)), Verdict::Grows);
    assert_eq!(among(30, leak(1e5)), Verdict::Steady);
}

#[test]
fn a_jump_and_a_late_leak_have_grown() {
    for rows in [1, 30] {
        for at in 0..10 {
            let jump = seen(11, 5, |minute, noise| {
                let jumped = if minute > f64::from(at) { 5e8 } else { 0.0 };
                jumped + 1e6 * noise
            });
            assert_eq!(among(rows, jump), Verdict::GrewOnce, "{rows} {at}");
        }
        for begin in [4.0, 5.0, 6.0, 7.0] {
            let late = seen(11, 5, |minute, noise| {
                1e8 * (minute - begin).max(0.0) + 1e6 * noise
            });
            assert_eq!(among(rows, late), Verdict::GrewOnce, "{rows} {begin}");
        }
    }
    for end in [3.0, 5.0, 7.0] {
        let early = seen(11, 5, |minute, noise| 1e8 * minute.min(end) + 1e6 * noise);
        assert_eq!(among(30, early), Verdict::GrewOnce, "{end}");
    }
    let back = seen(11, 5, |minute, noise| {
        let is_there = (4.0..7.0).contains(&minute);
        1e6 * noise + if is_there { 5e8 } else { 0.0 }
    });
    assert_eq!(among(30, back), Verdict::Steady);
}

#[test]
fn whole_things_are_no_line() {
    let few = seen(3, 1, |minute, _| 640.0 * minute);
    let with = |grain| {
        let measure = Measure {
            grain,
            ..measure(0.0, 1000.0)
        };
        Growth::of(&few, measure).verdict
    };
    assert_eq!([with(640.0), with(1.0)], [Verdict::Steady, Verdict::Grows]);
}
