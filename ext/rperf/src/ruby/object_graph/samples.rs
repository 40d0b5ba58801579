//! Samples of objects, for the graph: which they are, and where they were made. All of it is made before the
//! fork, on the thread that forks.

use super::names::Names;
use super::slots::Slots;
use rb_sys::VALUE;
use rperf_protocol::heap::sampled::{Place, Sample, Session, Site};
use rperf_protocol::heap::write::{LONGEST_NAME, Sink, Writer};
use rperf_sampling::objects::{FollowedSample, PlaceOfSite, PlacedSamples};
use rperf_vm::ResolvedFrame;
use std::sync::Arc;

/// What a session knows.
pub struct Samples<'a> {
    /// The session.
    pub session: Session,
    /// Where samples were made.
    pub placed: &'a PlacedSamples<Arc<ResolvedFrame>>,
    /// The samples with their objects.
    pub objects: Vec<(VALUE, FollowedSample)>,
}

impl Samples<'_> {
    /// Sends those whose objects are in the graph. In the child: it reads memory that nobody else uses there,
    /// and takes no lock. False once nobody reads any more.
    pub fn send<S: Sink>(
        &self,
        slots: &Slots,
        names: &mut Names<'_>,
        writer: &mut Writer<S>,
    ) -> bool {
        let number = |value: &VALUE| slots.number(*value as usize);
        let samples = self.objects.iter().filter(|it| number(&it.0).is_some());
        writer.session(&self.session, samples.count() as u64);
        for site in self.placed.sites() {
            let endpoint = site.endpoint.unwrap_or_default();
            let site = Site {
                made_in: place(site.made_in, names, writer),
                called_by: place(site.called_by, names, writer),
                endpoint: text(endpoint, names, writer),
            };
            if !writer.site(&site) {
                return false;
            }
        }
        self.objects.iter().all(|(value, sample)| {
            let object = number(value);
            object.is_none_or(|object| {
                writer.sample(&Sample {
                    object,
                    site: sample.site.map_or(0, |it| it + 1),
                    bytes: sample.bytes,
                    mean: sample.mean,
                    age_ns: sample.age_ns,
                    collections: sample.collections,
                })
            })
        })
    }
}

fn place<S: Sink>(
    place: Option<PlaceOfSite<'_>>,
    names: &mut Names<'_>,
    writer: &mut Writer<S>,
) -> Place {
    place.map_or_else(Place::default, |it| {
        // Of a long path the end tells more.
        let end = it.path.len().saturating_sub(LONGEST_NAME);
        let path = (end..).find_map(|begin| it.path.get(begin..));
        Place {
            method: text(it.method, names, writer),
            path: text(path.unwrap_or_default(), names, writer),
            line: it.line,
        }
    })
}

fn text<S: Sink>(text: &str, names: &mut Names<'_>, writer: &mut Writer<S>) -> u32 {
    match text {
        "" => 0,
        text => names.text(text.as_bytes(), writer),
    }
}
