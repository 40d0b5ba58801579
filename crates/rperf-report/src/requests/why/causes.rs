//! What most of the time is by which slow requests take longer, of the endpoints for which that is most.

use super::texts::Texts;
use super::{Collections, EndpointTimes, Holder, Part, SlowRequest, Why};
use rperf_model::{LatencyClass, Order, Profile};
use std::cmp::Reverse;

/// A part with a smaller share of what the tail takes longer is no cause of it, in percent.
const LEAST_CAUSE: f64 = 10.0;

/// With a smaller share of what the tail takes longer it isn't told where a part grew, in percent.
const LEAST_GROWN: f64 = 0.5;

/// Holders of the GVL that are told with a cause.
const MAIN_HOLDERS: usize = 2;

impl<'a> Why<'a> {
    /// The answers for the first of these endpoints, up to `limit`, whose slowest requests take longer than
    /// typical ones.
    pub fn first_of(profile: &'a Profile, all: &[EndpointTimes<'a>], limit: usize) -> Vec<Why<'a>> {
        let texts = Texts::of(profile);
        let holders = texts.all_holders();
        let slow = all.iter().filter(|it| it.excess() > 0).take(limit);
        slow.map(|it| Self::told(&texts, holders.as_ref(), it.requests))
            .collect()
    }

    /// Who kept slow requests waiting most, or all others where that isn't known, and who else did so for
    /// half as long or more. What nobody had the GVL for, as hand-overs, is nobody's fault.
    pub fn main_holders(&self) -> Vec<&Holder> {
        let is_nobody = |it: &Holder| {
            let method = it.method.as_ref();
            it.app.is_none() && method.is_some_and(|method| method.name == it.name)
        };
        let holders = self.holders.as_deref().unwrap_or_default();
        let mut main: Vec<&Holder> = holders
            .iter()
            .filter(|it| it.is_known && !is_nobody(it))
            .collect();
        let most = main.first().map_or(0, |it| it.weight());
        main.truncate(MAIN_HOLDERS);
        main.retain(|it| it.weight() >= most / 2);
        match main.is_empty() {
            true => holders.first().into_iter().collect(),
            false => main,
        }
    }

    /// The share of a holder in what slow requests wait longer for the GVL, in percent; or in all blame,
    /// where that isn't known.
    pub fn share_of(&self, holder: &Holder) -> f64 {
        let all = match holder.means {
            Some(_) => self.times.parts[Part::GvlWait as usize].excess(),
            None => self.blame,
        };
        rperf_model::numbers::percent(holder.weight(), all).min(100.0)
    }

    /// The share of these collections in the time by which slow requests collect longer, in percent: of all
    /// causes whose time grew.
    pub fn share_of_collections(&self, of: &Collections) -> f64 {
        rperf_model::numbers::percent(of.means.excess(), self.collected)
    }

    /// The share of what slow requests wait longer for the GVL of which no sample tells who had it, in
    /// percent: nobody, or many for a short time each. `None` if nothing was measured for this endpoint, or the wait
    /// hasn't grown.
    pub fn share_unknown(&self) -> Option<f64> {
        let all = self.times.parts[Part::GvlWait as usize].excess();
        let known = rperf_model::numbers::percent(self.held?, all);
        (all > 0).then(|| (100.0 - known).max(0.0))
    }

    /// The request that has more than half of what a part grew by in all of the tail, if one has: then the part isn't
    /// what makes the others slow.
    pub fn mostly_in(&self, part: Part) -> Option<&SlowRequest> {
        let means = self.times.parts[part as usize];
        let tail = self.times.requests.class(LatencyClass::Tail).count;
        let all = i128::from(means.excess().max(0)) * i128::from(tail);
        let grew =
            |it: &SlowRequest| i128::from(part.of(&it.took.values)) - i128::from(means.typical);
        let mut of_tail = self.slowest.iter().filter(|it| it.is_of_tail && tail > 1);
        of_tail.find(|it| all > 0 && 2 * grew(it) > all)
    }

    /// Whether a part grew by so much that it matters where.
    pub fn has_grown(&self, part: Part) -> bool {
        let excess = self.times.parts[part as usize].excess();
        excess > 0 && self.times.share(part) >= LEAST_GROWN
    }

    /// The share of what slow requests wait longer for the GVL that others had than the main holders, and the one
    /// of which nobody is known, each in percent with words for it; only those that are worth telling.
    pub fn rest_of_wait(&self) -> Vec<(f64, &'static str)> {
        let told: f64 = self.main_holders().iter().map(|it| self.share_of(it)).sum();
        let unknown = self.share_unknown();
        let others = unknown.map(|unknown| 100.0 - told - unknown);
        let rest = [(others, "by others"), (unknown, "isn't known")];
        let rest = rest.into_iter();
        rest.filter_map(|(share, text)| Some((share?, text)))
            .filter(|(share, _)| *share >= Self::LEAST_PERCENT)
            .collect()
    }

    /// The collections that most of the time was by which slow requests collect longer, and their share in
    /// percent, if that is worth telling.
    pub fn main_collections(&self) -> Option<(&Collections, f64)> {
        let main = self.collections.first()?;
        let share = self.share_of_collections(main);
        (share >= Self::LEAST_PERCENT).then_some((main, share))
    }

    /// The parts that most of the difference is in, the greatest first: one at least, if any grew.
    pub fn causes(&self) -> Vec<Part> {
        let share = |part: &Part| self.times.share(*part);
        let mut parts = Part::ALL.to_vec();
        parts.order_by_key(|part| Reverse(self.times.parts[*part as usize].excess()));
        parts.retain(|part| share(part) >= LEAST_CAUSE);
        parts
    }
}
