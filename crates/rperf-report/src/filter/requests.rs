//! The requests that filters by tags leave: those of the classes that still have samples. Called by `filter`;
//! any thread.

use crate::requests::why::{is_in_request, judged_keys};
use rperf_model::label_keys::{JOB, LATENCY, REQUEST};
use rperf_model::{LabelSetId, LatencyClass, Profile, RequestSums, RequestValues, Requests};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// An endpoint, by its place in the profile, and a class, by its number.
type OfEndpoint = (usize, usize);
/// The key and the name of an endpoint, and its class.
type Tags<'a> = [(&'a str, Cow<'a, str>); 2];

/// The endpoints and classes that samples have, each with the values of `%request`: `None` for samples without.
pub(super) struct Sampled(FxHashMap<OfEndpoint, FxHashSet<Option<String>>>);

impl Sampled {
    /// The endpoints and classes of `profile`.
    pub(super) fn of(profile: &Profile) -> Self {
        let mut found: FxHashMap<_, FxHashSet<_>> = FxHashMap::default();
        if profile.requests.is_empty() {
            return Self(found);
        }
        let label = |set: LabelSetId, key: &str| crate::top::label(profile, set, key);
        let keys = judged_keys(profile);
        let all = profile.requests.iter().enumerate();
        let places: FxHashMap<_, _> = all
            .map(|(place, it)| ((&*it.key, &*it.name), place))
            .collect();
        let used: FxHashSet<_> = profile.weights.iter().map(|row| row.key.labels).collect();
        for set in used {
            let class = label(set, LATENCY);
            let mut ended = LatencyClass::ALL[..LatencyClass::ENDED].iter();
            let Some(class) = ended.position(|it| class == Some(it.name())) else {
                continue;
            };
            let keys = keys
                .iter()
                .filter(|key| **key != JOB || !is_in_request(profile, &keys, set));
            for key in keys {
                let place = label(set, key).and_then(|name| places.get(&(*key, name)));
                if let Some(place) = place {
                    let of_class = found.entry((*place, class)).or_default();
                    of_class.insert(label(set, REQUEST).map(str::to_string));
                }
            }
        }
        Self(found)
    }

    /// Takes away from `profile` the requests of the classes that had samples and have none now. Where all samples
    /// that are left are of single requests, these are left. A class that never had a sample is left if its tags pass.
    pub(super) fn leave(&self, profile: &mut Profile, passes: impl Fn(&Tags<'_>) -> bool) {
        let left = Self::of(profile);
        let mut emptied = FxHashSet::default();
        for (place, requests) in profile.requests.iter_mut().enumerate() {
            for class in 0..LatencyClass::ENDED {
                let of_class = (place, class);
                let sums = match (self.0.get(&of_class), left.0.get(&of_class)) {
                    (Some(before), Some(now)) if before != now && !now.contains(&None) => {
                        single(requests, class, now)
                    }
                    (Some(_), Some(_)) => continue,
                    (None, _) if passes(&tags(requests, class)) => continue,
                    _ => RequestSums::default(),
                };
                requests.classes[class] = sums;
                emptied.insert(place);
            }
        }
        let mut place = 0..;
        profile.requests.retain(|it| {
            let is_emptied = place.next().is_some_and(|place| emptied.contains(&place));
            !is_emptied || it.classes.iter().any(|sums| sums.count != 0)
        });
    }
}

/// The tags of all requests of an endpoint's class.
fn tags(requests: &Requests, class: usize) -> Tags<'_> {
    let class = LatencyClass::ALL[class].name();
    [
        (&*requests.key, Cow::Borrowed(&*requests.name)),
        (LATENCY, Cow::Borrowed(class)),
    ]
}

/// The requests that samples name, of a class. What each took is known of the slowest.
fn single(requests: &Requests, class: usize, names: &FxHashSet<Option<String>>) -> RequestSums {
    let of_class = requests.classes[class];
    let are_alone = of_class.alone == of_class.count;
    let count = names.len() as u64;
    let named = requests.slowest.iter();
    let named = named.filter(|it| names.contains(&Some(it.id.to_string())));
    let sums = named.fold(RequestValues::default(), |sums, it| sums.plus(it.values));
    RequestSums {
        count,
        alone: if are_alone { count } else { 0 },
        sums,
    }
}

#[cfg(test)]
mod tests {
    use crate::filter::{Filter, TagFilter};
    use crate::text::pattern::regex;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::{LatencyClass, Profile, RequestId, RequestValues, Requests, Slowest, State};

    const SLOW: [RequestId; 2] = [slow(7), slow(8)];

    const fn slow(number: u32) -> RequestId {
        RequestId { session: 0, number }
    }

    /// 50 typical requests for /orders and 61 of the tail, of which two have samples of their own, and 30 typical ones
    /// for /quick, which no sample has met.
    fn example() -> Profile {
        let mut test = TestProfile::wall();
        let orders = |class| [("endpoint", "/orders"), ("%latency", class)];
        let typical = test.labels(&orders("typical"));
        test.add(&["main", "get"], 1, typical, State::Running, 5);
        let tail = test.labels(&orders("tail"));
        test.add(&["main", "get"], 1, tail, State::Running, 50);
        for slow in SLOW {
            let [endpoint, class] = orders("tail");
            let slow = test.labels(&[endpoint, class, ("%request", &slow.to_string())]);
            test.add(&["main", "query"], 2, slow, State::GvlBlocked, 60);
        }
        let mut orders = Requests::new("endpoint", "/orders");
        for _ in 0..50 {
            orders.add(LatencyClass::Typical, took(1), true);
        }
        for number in 0..61 {
            let id = SLOW.get(number).copied().unwrap_or_default();
            let wall = if number < SLOW.len() { 60 } else { 40 };
            orders.add(LatencyClass::Tail, Slowest { id, ..took(wall) }, true);
        }
        let mut quick = Requests::new("endpoint", "/quick");
        for _ in 0..30 {
            quick.add(LatencyClass::Typical, took(1), true);
        }
        test.profile.requests = vec![orders, quick];
        test.profile
    }

    fn took(wall: u64) -> Slowest {
        Slowest {
            values: RequestValues {
                wall,
                ..RequestValues::default()
            },
            ..Slowest::default()
        }
    }

    /// The endpoints that are left, each with its typical requests, and with the number and the time of those of the
    /// tail.
    fn left(filter: Filter) -> Vec<(String, u64, (u64, u64))> {
        let requests = filter.apply(example()).profile.requests;
        let row = |it: Requests| {
            let tail = it.class(LatencyClass::Tail);
            let typical = it.class(LatencyClass::Typical).count;
            (it.name.clone(), typical, (tail.count, tail.sums.wall))
        };
        requests.into_iter().map(row).collect()
    }

    fn focus(tags: &[&str]) -> Filter {
        let tags = tags.iter().map(|tag| TagFilter::new(tag));
        Filter {
            tag_focus: tags.collect::<Result<_, _>>().expect("filters"),
            ..Filter::default()
        }
    }

    const ORDERS: &str = "/orders";
    const TAIL: (u64, u64) = (61, 2 * 60 + 59 * 40);

    #[test]
    fn the_requests_are_left_whose_samples_are() {
        let orders = |typical, tail| (ORDERS.to_string(), typical, tail);
        let quick = |typical| ("/quick".to_string(), typical, (0, 0));
        assert_eq!(left(Filter::default()), [orders(50, TAIL), quick(30)]);
        assert_eq!(left(focus(&["endpoint=orders"])), [orders(50, TAIL)]);
        assert_eq!(
            left(focus(&["endpoint=orders", "%latency=tail"])),
            [orders(0, TAIL)]
        );
        let ignored = Filter {
            tag_ignore: focus(&["%latency=tail"]).tag_focus,
            ..Filter::default()
        };
        assert_eq!(left(ignored), [orders(50, (0, 0)), quick(30)]);
    }

    #[test]
    fn requests_that_no_sample_has_met_are_left_by_their_tags() {
        let quick = || ("/quick".to_string(), 30, (0, 0));
        assert_eq!(left(focus(&["endpoint=quick"])), [quick()]);
        assert_eq!(
            left(focus(&["endpoint=quick", "%latency=typical"])),
            [quick()]
        );
        assert_eq!(left(focus(&["endpoint=quick", "%latency=tail"])), []);
        let of_thread = Filter {
            thread: Some(crate::filter::ThreadFilter::new("1").expect("a filter")),
            ..Filter::default()
        };
        assert_eq!(left(of_thread), [(ORDERS.to_string(), 50, TAIL)]);
    }

    #[test]
    fn single_requests_that_are_chosen_by_their_label_are_left_as_such() {
        let [one, other] = SLOW.map(|id| format!("%request={id}"));
        assert_eq!(left(focus(&[&one])), [(ORDERS.to_string(), 0, (1, 60))]);
        let both = format!("{one},{}", SLOW[1]);
        assert_eq!(left(focus(&[&both])), [(ORDERS.to_string(), 0, (2, 120))]);
        let without_one = Filter {
            tag_ignore: focus(&[&other]).tag_focus,
            ..Filter::default()
        };
        assert_eq!(
            left(without_one).first(),
            Some(&(ORDERS.to_string(), 50, TAIL))
        );
    }

    #[test]
    fn frames_choose_no_requests() {
        let of_query = Filter {
            focus: Some(regex("query").expect("an expression")),
            ..Filter::default()
        };
        assert_eq!(left(of_query), left(Filter::default()));
    }
}
