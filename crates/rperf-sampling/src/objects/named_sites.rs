//! The places of sites, by names. All that takes long for many is done in pieces, so that the thread that does
//! it can let others have the GVL.

use super::followed::FollowedSamples;
use rperf_model::{Category, Origin};
use rperf_vm::ResolvedFrame;
use std::borrow::Borrow;

/// So much is done between two looks at the time.
const PIECE: usize = 64;

/// A place in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceOfSite<'a> {
    /// The method.
    pub method: &'a str,
    /// Its file.
    pub path: &'a str,
    /// The line; 0 if it isn't known.
    pub line: u32,
}

/// Where samples were made, by names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedSite<'a> {
    /// The innermost frame, if there is one.
    pub made_in: Option<PlaceOfSite<'a>>,
    /// The innermost one of the application, if that is another one.
    pub called_by: Option<PlaceOfSite<'a>>,
    /// The endpoint or job.
    pub endpoint: Option<&'a str>,
}

/// The row of a name, and the line.
type Row = (u32, u32);

/// The samples, and the places that their sites are told by: found in pieces.
#[derive(Debug)]
pub struct PlacedSamples<N> {
    samples: FollowedSamples,
    names: Vec<N>,
    /// Whether a name is the application's, as far as names have been looked at.
    is_app: Vec<bool>,
    /// Places of the sites, as far as these are placed: the innermost, and where the application calls that.
    places: Vec<(Option<Row>, Option<Row>)>,
}

impl<N: Borrow<ResolvedFrame>> PlacedSamples<N> {
    /// The samples, none of them placed yet. `names` are those of their words, in their order. Until all are
    /// placed there are no sites.
    pub fn new(samples: FollowedSamples, names: Vec<N>) -> Self {
        Self {
            is_app: Vec::with_capacity(names.len()),
            places: Vec::with_capacity(samples.sites.len()),
            samples,
            names,
        }
    }

    /// Places some, until `is_time`. Returns whether there are more. `own` is what the paths of rperf's files
    /// begin with: that of the first one without its extension.
    pub fn place_some(&mut self, own: Option<&str>, mut is_time: impl FnMut() -> bool) -> bool {
        loop {
            let names = self.names[self.is_app.len()..].iter().take(PIECE);
            let names = names.map(|it| is_app(it.borrow(), own));
            self.is_app.extend(names);
            if self.is_app.len() == self.names.len() {
                let sites = self.samples.sites[self.places.len()..].iter().take(PIECE);
                for site in sites {
                    self.places
                        .push(place(self.samples.frames(*site), &self.is_app));
                }
                if self.places.len() == self.samples.sites.len() {
                    return false;
                }
            }
            if is_time() {
                return true;
            }
        }
    }

    /// The samples.
    pub fn samples(&self) -> &FollowedSamples {
        &self.samples
    }

    /// The sites by their rows. Takes no memory.
    pub fn sites(&self) -> impl Iterator<Item = NamedSite<'_>> {
        let sites = self.samples.sites.iter().zip(&self.places);
        sites.map(|(site, &(made_in, called_by))| NamedSite {
            made_in: made_in.and_then(|it| self.named(it)),
            called_by: called_by.and_then(|it| self.named(it)),
            endpoint: self.samples.endpoint(*site),
        })
    }

    fn named(&self, (row, line): Row) -> Option<PlaceOfSite<'_>> {
        let frame = self.names.get(row as usize)?.borrow();
        Some(PlaceOfSite {
            method: &frame.name,
            path: &frame.path,
            line,
        })
    }
}

/// Whether a frame is of the application.
fn is_app(frame: &ResolvedFrame, own: Option<&str>) -> bool {
    let rest = own.and_then(|own| frame.path.strip_prefix(own));
    let is_own = rest.is_some_and(|it| it.starts_with(['.', '/']));
    !is_own && Origin::of(&frame.path).category == Category::App
}

/// The innermost of these frames that has a name, and that of the application, if it is another one.
fn place(frames: impl Iterator<Item = Row>, is_app: &[bool]) -> (Option<Row>, Option<Row>) {
    let mut frames = frames.filter_map(|it| Some((it, *is_app.get(it.0 as usize)?)));
    match frames.next() {
        None => (None, None),
        Some((made_in, true)) => (Some(made_in), None),
        Some((made_in, false)) => (Some(made_in), frames.find(|it| it.1).map(|it| it.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Moment, ObjectSampler, Put, SampledObject};
    use rperf_vm::{FrameWord, LabelSet, Stack};

    fn name(name: &str, path: &str) -> ResolvedFrame {
        ResolvedFrame {
            name: name.into(),
            path: path.into(),
            first_line: 1,
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> LabelSet {
        let pairs = pairs
            .iter()
            .map(|it| (it.0.to_owned(), Some(it.1.to_owned())));
        LabelSet::empty().with(pairs)
    }

    fn placed(samples: FollowedSamples, names: Vec<ResolvedFrame>) -> PlacedSamples<ResolvedFrame> {
        let mut placed = PlacedSamples::new(samples, names);
        assert!(!placed.place_some(Some("/srv/rperf/lib/rperf"), || false));
        placed
    }

    #[test]
    fn samples_have_the_innermost_place_that_of_the_application_and_an_endpoint() {
        let mut sampler = ObjectSampler::new(7, 100, 50).with_objects_in_use(7);
        let request = labels(&[("user", "ann"), ("endpoint", "GET /"), ("job", "Mail")]);
        let job = labels(&[("job", "Mail"), ("user", "bob")]);
        let born = Moment {
            ns: 100,
            collections: 3,
        };
        // The innermost frame comes first.
        for (frames, lines, labels) in [
            (&[8, 16, 24][..], &[1, 2, 3][..], Some(&request)),
            (&[16, 24], &[5, 6], Some(&job)),
            (&[8, 32], &[1, 9], None),
        ] {
            let stack = Stack {
                frames,
                lines,
                cut: false,
            };
            let object = SampledObject {
                object: 80,
                bytes: 40,
                class: 64,
                thread: 1,
                stack: Some(stack),
                labels,
            };
            sampler.add(object, born, 110);
            let held = sampler.next_held().expect("one is held");
            sampler.release(held, Put::Since(3));
        }
        let now = Moment {
            ns: 1100,
            collections: 5,
        };
        let followed = sampler.followed(now).expect("they are followed");
        assert_eq!((followed.since_ns, followed.lost_bytes), (50, 0));
        assert_eq!(followed.bytes_per_sample, 64 << 10);
        let ages = followed
            .samples
            .iter()
            .map(|it| (it.age_ns, it.collections));
        assert_eq!(ages.collect::<Vec<_>>(), [(1000, 2); 3]);
        let names = followed.words().iter().map(|word| match word {
            8 => name("Array#map", "<internal:array>"),
            16 => name("Cart#add", "/srv/app/cart.rb"),
            24 => name("Rack#call", "/g/gems/rack-3.1.8/lib/rack.rb"),
            _ => name("Rperf.start", "/srv/rperf/lib/rperf.rb"),
        });
        let names: Vec<_> = names.collect();
        let rows: Vec<_> = followed.samples.iter().map(|it| it.site).collect();
        let placed = placed(followed, names);
        let sites: Vec<_> = placed.sites().collect();
        let place = |method, path, line| Some(PlaceOfSite { method, path, line });
        let map = place("Array#map", "<internal:array>", 1);
        assert_eq!(sites[0].made_in, map);
        assert_eq!(sites[0].called_by, place("Cart#add", "/srv/app/cart.rb", 2));
        assert_eq!(sites[0].endpoint, Some("GET /"));
        assert_eq!(sites[1].made_in, place("Cart#add", "/srv/app/cart.rb", 5));
        assert_eq!(
            (sites[1].called_by, sites[1].endpoint),
            (None, Some("Mail"))
        );
        let last = NamedSite {
            made_in: map,
            called_by: None,
            endpoint: None,
        };
        assert_eq!(sites[2], last);
        assert_eq!(rows, [Some(0), Some(1), Some(2)]);
    }

    /// Samples of a class, each with frames, the innermost first, and labels.
    fn followed(samples: &[(&[usize], Option<&LabelSet>)]) -> FollowedSamples {
        let mut sampler = ObjectSampler::new(7, 100, 50).with_objects_in_use(7);
        let born = Moment {
            ns: 100,
            collections: 3,
        };
        for &(frames, labels) in samples {
            let frames: Vec<_> = frames.iter().map(|it| *it as FrameWord).collect();
            let lines = vec![1; frames.len()];
            let stack = Stack {
                frames: &frames,
                lines: &lines,
                cut: false,
            };
            let object = SampledObject {
                object: 80,
                bytes: 40,
                class: 64,
                thread: 1,
                stack: Some(stack),
                labels,
            };
            sampler.add(object, born, 110);
            let held = sampler.next_held().expect("one is held");
            sampler.release(held, Put::Since(3));
        }
        sampler.followed(born).expect("they are followed")
    }

    #[test]
    fn labels_but_the_endpoint_make_no_more_sites() {
        let request = |user: &str| labels(&[("endpoint", "GET /"), ("user", user)]);
        let (ann, bob) = (request("ann"), request("bob"));
        let other = labels(&[("endpoint", "GET /b")]);
        let samples = [
            (&[8, 16][..], Some(&ann)),
            (&[8, 16], Some(&bob)),
            (&[8, 16], Some(&other)),
            (&[8, 16], None),
            (&[24, 16], Some(&bob)),
        ];
        let followed = followed(&samples);
        let rows: Vec<_> = followed.samples.iter().map(|it| it.site).collect();
        let expected = [Some(0), Some(0), Some(1), Some(2), Some(3)];
        assert_eq!(rows, expected);
        let names = followed.words().iter().map(|_| name("a", "/srv/a.rb"));
        let names = names.collect();
        let placed = placed(followed, names);
        let endpoints: Vec<_> = placed.sites().map(|it| it.endpoint).collect();
        let get = Some("GET /");
        assert_eq!(endpoints, [get, Some("GET /b"), None, get]);
    }

    /// The application's frame is the 64th of the second stack, and the 65th of the first one, which is deeper
    /// by one. So the callers that the first one leaves out are there for the second.
    #[test]
    fn callers_are_found_up_to_the_deepest_frame_whatever_was_copied_before() {
        let deep: Vec<usize> = (1..=80).map(|it| it * 8).collect();
        for order in [[0, 1], [1, 0]] {
            let samples = order.map(|from| (&deep[from..], None));
            let followed = followed(&samples);
            let names = followed.words().iter().map(|word| match word / 8 {
                65.. => name("App#go", "/srv/app.rb"),
                _ => name("map", "<internal:array>"),
            });
            let names = names.collect();
            let placed = placed(followed, names);
            let found: Vec<_> = placed.sites().map(|it| it.called_by.is_some()).collect();
            assert_eq!(found, order.map(|it| it == 1));
        }
    }

    #[test]
    fn each_name_is_looked_at_once_and_time_ends_a_piece() {
        let stacks: Vec<_> = (0..300).map(|it| [8 * (it + 1), 8, 16, 24]).collect();
        let samples: Vec<_> = stacks.iter().map(|it| (&it[..], None)).collect();
        let followed = followed(&samples);
        let names = followed
            .words()
            .iter()
            .map(|_| name("map", "<internal:array>"));
        let names: Vec<_> = names.collect();
        let count = names.len();
        let mut placed = PlacedSamples::new(followed, names);
        let mut pieces = 1;
        while placed.place_some(None, || true) {
            pieces += 1;
        }
        let least = count / PIECE + 300 / PIECE;
        assert!((least..least + 3).contains(&pieces), "{pieces}");
        assert_eq!((placed.is_app.len(), placed.sites().count()), (count, 300));
    }
}
