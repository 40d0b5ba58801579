//! Test of more requests than there can be, on a made-up clock, beside one that takes all the time.

use super::*;

const SHORT: RequestName<'_> = RequestName {
    key: "endpoint",
    name: "GET /short",
};

const LONG: RequestName<'_> = RequestName {
    name: "GET /long",
    ..SHORT
};

/// A minute.
const LONG_NS: u64 = 60_000 * MS;

/// 10,000 of them in a second.
const SHORT_NS: u64 = MS / 10;

/// Bytes that the endpoints hold, with their windows.
fn memory(judged: &JudgedRequests) -> usize {
    let endpoints = judged.endpoints.values().flat_map(FxHashMap::values);
    endpoints
        .map(|it| {
            it.requests.memory()
                + it.judge
                    .windows
                    .each_ref()
                    .map(Quantiles::memory)
                    .iter()
                    .sum::<usize>()
        })
        .sum()
}

/// A minute of short requests; the long one begins with it, and ends after it at the endpoint `long`.
fn minute(long: RequestName<'_>) -> (JudgedRequests, [usize; 6], LatencyClass) {
    let (mut judged, mut draw) = (JudgedRequests::default(), Draw(11));
    let mut classes = [0; 6];
    for number in 1..=LONG_NS / SHORT_NS {
        // A tenth longer at most.
        let wall = SHORT_NS + draw.next(SHORT_NS / 10);
        let now = number * SHORT_NS;
        let (class, _) = judged.add(SHORT, id(number), &figures(wall), now, now);
        classes[class as usize] += 1;
        if number % 1_000 == 0 {
            assert!(memory(&judged) < 8 << 10, "{number}: {}", memory(&judged));
        }
    }
    let (class, place) = judged.add(long, id(0), &figures(LONG_NS), LONG_NS, LONG_NS);
    assert!(place.is_one);
    (judged, classes, class)
}

#[test]
fn as_many_requests_as_there_can_be_are_all_judged_in_little_memory() {
    let (mut judged, classes, class) = minute(LONG);
    let count = (LONG_NS / SHORT_NS) as usize;
    assert_eq!(
        class,
        LatencyClass::First,
        "nothing is known of its endpoint"
    );
    assert_eq!((classes.iter().sum::<usize>(), classes[5]), (count, 0));
    assert_eq!(classes[LatencyClass::First as usize] as u64, KNOWN);
    assert!(
        classes[LatencyClass::Typical as usize] * 2 >= count,
        "{classes:?}"
    );
    assert!(
        classes[LatencyClass::Tail as usize] * 50 < count,
        "{classes:?}"
    );
    let told = judged.told(true);
    let [long, short] = &told[..] else {
        panic!("{} endpoints", told.len());
    };
    assert_eq!((long.count(), short.count()), (1, count as u64));
    let told = short.classes.map(|it| it.count as usize);
    assert_eq!(told[..], classes[..LatencyClass::ENDED]);
    let walls: u64 = short.classes.iter().map(|it| it.sums.wall).sum();
    assert_eq!(walls, short.walls.sum());
    assert!((LONG_NS..LONG_NS / 10 * 11).contains(&walls));
    assert_eq!(short.slowest.len(), Requests::SLOWEST);
    assert!(short.walls.max() < SHORT_NS / 10 * 11);
}

#[test]
fn one_that_takes_a_minute_among_them_is_the_tail() {
    let (mut judged, classes, class) = minute(SHORT);
    assert_eq!(class, LatencyClass::Tail);
    let told = judged.told(false);
    let [short] = &told[..] else {
        panic!("{} endpoints", told.len());
    };
    let tail = short.class(LatencyClass::Tail);
    assert_eq!(
        tail.count as usize,
        classes[LatencyClass::Tail as usize] + 1
    );
    assert_eq!((short.walls.max(), short.slowest[0].id), (LONG_NS, id(0)));
    // It changes nothing for those that follow.
    let next = judged
        .add(SHORT, id(1), &figures(SHORT_NS), LONG_NS + MS, 0)
        .0;
    assert!(matches!(next, LatencyClass::Typical | LatencyClass::Fast));
    assert!(memory(&judged) < 8 << 10, "{}", memory(&judged));
}
