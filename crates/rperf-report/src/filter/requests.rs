//! How many requests filters by tags leave: those of the classes that still have samples. Called by `filter`;
//! any thread.

use crate::requests::why::{is_in_request, judged_keys};
use rperf_model::label_keys::{JOB, LATENCY, REQUEST};
use rperf_model::{LabelSetId, LatencyClass, Profile, Requests};
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
        let label = |set: LabelSetId, key: &str| crate::rows::tags::label(profile, set, key);
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

    /// Notes in `profile` how many requests are left: none of the classes that had samples and have none now. Where
    /// all samples that are left are of single requests, these are left. A class that never had a sample is left if
    /// its tags pass.
    pub(super) fn leave(&self, profile: &mut Profile, passes: impl Fn(&Tags<'_>) -> bool) {
        let left = Self::of(profile);
        for (place, requests) in profile.requests.iter_mut().enumerate() {
            let mut counts = requests.counts();
            for (class, count) in counts.iter_mut().enumerate() {
                let of_class = (place, class);
                *count = match (self.0.get(&of_class), left.0.get(&of_class)) {
                    (Some(before), Some(now)) if before != now && !now.contains(&None) => {
                        now.len() as u64
                    }
                    (Some(_), Some(_)) => continue,
                    (None, _) if passes(&tags(requests, class)) => continue,
                    _ => 0,
                };
            }
            requests.left = Some(counts);
        }
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

#[cfg(test)]
mod tests {
    use crate::filter::{Filter, TagFilter, ThreadFilter};
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

    /// The typical requests that are left of /orders, those of its tail, and the typical ones of /quick.
    fn left(filter: Filter) -> [u64; 3] {
        let profile = filter.apply(example()).profile;
        let [orders, quick] = [0, 1].map(|place| profile.requests[place].counts());
        let [typical, tail] = [LatencyClass::Typical, LatencyClass::Tail].map(|it| it as usize);
        assert_eq!(quick[tail], 0);
        [orders[typical], orders[tail], quick[typical]]
    }

    fn focus(tags: &[&str]) -> Filter {
        let tags = tags.iter().map(|tag| TagFilter::new(tag));
        Filter {
            tag_focus: tags.collect::<Result<_, _>>().expect("filters"),
            ..Filter::default()
        }
    }

    #[test]
    fn the_requests_are_left_whose_samples_are() {
        assert_eq!(left(Filter::default()), [50, 61, 30]);
        assert_eq!(left(focus(&["endpoint=orders"])), [50, 61, 0]);
        assert_eq!(
            left(focus(&["endpoint=orders", "%latency=tail"])),
            [0, 61, 0]
        );
        let ignored = Filter {
            tag_ignore: focus(&["%latency=tail"]).tag_focus,
            ..Filter::default()
        };
        assert_eq!(left(ignored), [50, 0, 30]);
    }

    #[test]
    fn requests_that_no_sample_has_met_are_left_by_their_tags() {
        assert_eq!(left(focus(&["endpoint=quick"])), [0, 0, 30]);
        assert_eq!(
            left(focus(&["endpoint=quick", "%latency=typical"])),
            [0, 0, 30]
        );
        assert_eq!(left(focus(&["endpoint=quick", "%latency=tail"])), [0, 0, 0]);
        let of_thread = Filter {
            thread: Some(ThreadFilter::new("1").expect("a filter")),
            ..Filter::default()
        };
        assert_eq!(left(of_thread), [50, 61, 0]);
    }

    #[test]
    fn filters_that_follow_others_bring_nothing_back() {
        let tail = focus(&["%latency=tail"]).apply(example()).profile;
        let orders = focus(&["endpoint=orders"]).apply(tail).profile;
        assert_eq!(
            orders.requests[0].counts()[LatencyClass::Typical as usize],
            0
        );
        assert_eq!(orders.requests[0].counts()[LatencyClass::Tail as usize], 61);
    }

    #[test]
    fn single_requests_that_are_chosen_by_their_label_are_left_as_such() {
        let [one, other] = SLOW.map(|id| format!("%request={id}"));
        assert_eq!(left(focus(&[&one])), [0, 1, 0]);
        let both = format!("{one},{}", SLOW[1]);
        assert_eq!(left(focus(&[&both])), [0, 2, 0]);
        let without_one = Filter {
            tag_ignore: focus(&[&other]).tag_focus,
            ..Filter::default()
        };
        assert_eq!(left(without_one), [50, 61, 30]);
    }

    #[test]
    fn frames_choose_no_requests_and_their_sums_are_of_all() {
        let of_query = Filter {
            focus: Some(regex("query").expect("an expression")),
            ..Filter::default()
        };
        assert_eq!(left(of_query), [50, 61, 30]);
        let tail = focus(&["%latency=tail"]).apply(example()).profile;
        let whole = tail.requests[0].class(LatencyClass::Typical);
        assert_eq!((whole.count, whole.sums.wall), (50, 50));
    }
}
