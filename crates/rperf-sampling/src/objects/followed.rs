//! The samples that are followed, for who looks at the objects themselves: which they are, and where they were
//! made. On the thread that asks, with the GVL only for what is taken from the session.

use super::site::Site;
use rperf_model::{Category, LabelSetId, NodeId, Origin, label_keys};
use rperf_vm::{CapturedNode, FrameWord, LabelTexts, ResolvedFrame};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;

/// The label that a request has.
const ENDPOINT: &str = "endpoint";

/// Among so many innermost frames the application's is looked for.
const DEEPEST: usize = 64;

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedSample {
    /// What stands for the object.
    pub number: u64,
    /// The row of its site; `None` if there was no room for it.
    pub site: Option<u32>,
    /// The bytes of its slot.
    pub bytes: u64,
    /// The mean gap between samples, in bytes.
    pub mean: u64,
    /// How long it has been there, in ns.
    pub age_ns: u64,
    /// How many collections have begun since one could take it.
    pub collections: u64,
}

/// All samples that are followed, still with the words of the VM.
#[derive(Debug, Clone, Default)]
pub struct FollowedSamples {
    /// The samples, in the order of their numbers.
    pub samples: Vec<FollowedSample>,
    /// Bytes that a sample stands for at most, in the mean.
    pub bytes_per_sample: u64,
    /// Bytes of objects that aren't followed.
    pub lost_bytes: u64,
    /// Since when there are samples, in ns.
    pub since_ns: u64,
    sites: Vec<FollowedSite>,
    words: Vec<FrameWord>,
}

/// Where samples were made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FollowedSite {
    /// Rows of the words, and lines, the innermost first; those without a frame are left out.
    frames: Vec<(u32, u32)>,
    /// The endpoint or job.
    endpoint: Option<Box<str>>,
}

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

/// What a session has of its samples' sites.
pub(super) struct Sites<'a> {
    pub(super) nodes: &'a [CapturedNode],
    pub(super) frames: &'a [FrameWord],
    pub(super) label_sets: &'a [LabelTexts],
}

impl FollowedSamples {
    /// Samples, each with its site.
    pub(super) fn of(
        samples: impl Iterator<Item = (FollowedSample, Option<Site>)>,
        of: &Sites<'_>,
    ) -> Self {
        let mut followed = Self::default();
        let mut rows: FxHashMap<u32, u32> = FxHashMap::default();
        let mut sites: FxHashMap<(NodeId, LabelSetId), u32> = FxHashMap::default();
        for (sample, site) in samples {
            let row = site.map(|site| {
                *sites.entry((site.node, site.labels)).or_insert_with(|| {
                    let frames = of.innermost(site.node).map(|(frame, line)| {
                        let row = *rows.entry(frame).or_insert_with(|| {
                            followed.words.push(of.frames[frame as usize]);
                            followed.words.len() as u32 - 1
                        });
                        (row, line)
                    });
                    let frames = frames.collect();
                    let endpoint = of.endpoint(site.labels).map(Box::from);
                    followed.sites.push(FollowedSite { frames, endpoint });
                    followed.sites.len() as u32 - 1
                })
            });
            followed.samples.push(FollowedSample {
                site: row,
                ..sample
            });
        }
        followed
    }

    /// The frames that are to get names.
    pub fn words(&self) -> &[FrameWord] {
        &self.words
    }

    /// The sites by their rows. `names` are those of the words, in their order; `own` is what the
    /// paths of rperf's files begin with: that of the first one without its extension.
    pub fn sites<'a>(
        &'a self,
        names: &'a [impl Borrow<ResolvedFrame>],
        own: Option<&'a str>,
    ) -> impl Iterator<Item = NamedSite<'a>> {
        let is_app = move |frame: &ResolvedFrame| {
            let rest = own.and_then(|own| frame.path.strip_prefix(own));
            let is_own = rest.is_some_and(|it| it.starts_with(['.', '/']));
            !is_own && Origin::of(&frame.path).category == Category::App
        };
        self.sites.iter().map(move |site| {
            let frame = |&(row, line): &(u32, u32)| Some((names.get(row as usize)?.borrow(), line));
            let mut frames = site.frames.iter().filter_map(frame);
            let place = |(frame, line): (&'a ResolvedFrame, u32)| PlaceOfSite {
                method: &frame.name,
                path: &frame.path,
                line,
            };
            let made_in = frames.next();
            let is_app_itself = made_in.is_some_and(|it| is_app(it.0));
            let called_by = match is_app_itself {
                true => None,
                false => frames.find(|it| is_app(it.0)),
            };
            NamedSite {
                made_in: made_in.map(place),
                called_by: called_by.map(place),
                endpoint: site.endpoint.as_deref(),
            }
        })
    }
}

impl Sites<'_> {
    /// The rows of a node's frames and its callers', with lines, as far as they have any.
    fn innermost(&self, node: NodeId) -> impl Iterator<Item = (u32, u32)> + '_ {
        let node_of = |id: NodeId| self.nodes.get((id.0 as usize).checked_sub(1)?);
        let nodes = std::iter::successors(node_of(node), move |it| node_of(it.parent));
        let frames = nodes.map(|it| (it.frame, it.line)).take(DEEPEST);
        frames.filter(|it| (it.0 as usize) < self.frames.len())
    }

    /// A request has more than one label: only this one is told.
    fn endpoint(&self, labels: LabelSetId) -> Option<&str> {
        let set = self.label_sets.get((labels.0 as usize).checked_sub(1)?)?;
        let of_key = |key: &str| set.iter().find(|it| *it.0 == *key).map(|it| &*it.1);
        of_key(ENDPOINT).or_else(|| of_key(label_keys::JOB))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Moment, ObjectSampler, Put, SampledObject};
    use rperf_vm::{LabelSet, Stack};

    fn name(name: &str, path: &str) -> ResolvedFrame {
        ResolvedFrame {
            name: name.into(),
            path: path.into(),
            first_line: 1,
        }
    }

    #[test]
    fn samples_have_the_innermost_place_that_of_the_application_and_an_endpoint() {
        let mut sampler = ObjectSampler::new(7, 100, 50).with_objects_in_use(7);
        let labels = |pairs: &[(&str, &str)]| {
            let pairs = pairs
                .iter()
                .map(|it| (it.0.to_owned(), Some(it.1.to_owned())));
            LabelSet::empty().with(pairs)
        };
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
        let sites: Vec<_> = followed
            .sites(&names, Some("/srv/rperf/lib/rperf"))
            .collect();
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
        let rows = followed.samples.iter().map(|it| it.site);
        assert_eq!(rows.collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    }
}
