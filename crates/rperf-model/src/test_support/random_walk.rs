//! Large profiles that look like those of real programs: threads walk through a
//! graph of calls, returning a few frames and calling others, so that stacks share
//! prefixes as real ones do. Any thread, no I/O.

use super::wall_schema;
use crate::{FrameId, LabelSetId, Node, NodeId, Profile, State, Thread, WeightKey, WeightTable};

const METHODS: u64 = 3_000;
const METHODS_PER_FILE: u64 = 12;
/// Places in each method that call another one. Some are met more often.
const CALL_SITES: u64 = 6;
/// Samples of a request, on average. A new request returns by any number of frames first.
const REQUEST_EVERY: u64 = 50;
/// The most frames that are left between two samples of one request.
const MOST_RETURNS: u64 = 16;
const TENANTS: u32 = 7;

/// The shape of a profile to make; the same one each time.
#[derive(Debug, Clone, Copy)]
pub struct RandomWalk {
    /// Rows of weights; with one thread each is a stack of its own.
    pub weights: usize,
    /// Frames of each stack.
    pub depth: usize,
    /// Threads, which take samples in random order.
    pub threads: u32,
    /// Different requests, each with its labels; with none there are no labels.
    pub requests: u32,
}

impl RandomWalk {
    /// The profile, of wall time, all of it running.
    pub fn profile(self) -> Profile {
        let mut random = SplitMix(1);
        let mut profile = Profile::new(wall_schema());
        profile.meta.frequency = 1000;
        let methods = methods(&mut profile);
        for seq in 1..=self.threads {
            let name = profile.strings.intern(&format!("worker {seq}"));
            profile.threads.push(Thread { seq, name });
        }
        let labels = self.labels(&mut profile);
        let mut stacks = vec![Vec::new(); self.threads as usize];
        let mut requests = vec![LabelSetId(0); self.threads as usize];
        let mut weights = WeightTable::new(profile.schema.len());
        while weights.len() < self.weights {
            let thread = random.below(u64::from(self.threads)) as usize;
            let stack = &mut stacks[thread];
            let is_new = self.step(stack, &methods, &mut profile, &mut random);
            if is_new && !labels.is_empty() {
                requests[thread] = labels[random.below(u64::from(self.requests)) as usize];
            }
            let wall_ns = 500_000 + random.below(1_000_000);
            let cpu_ns = wall_ns - random.below(500_000);
            let key = WeightKey {
                node: stack.last().map_or(NodeId::ROOT, |&(node, _)| node),
                thread: thread as u32 + 1,
                labels: requests[thread],
                state: State::Running,
            };
            weights.add(key, &[1, wall_ns as i64, cpu_ns as i64]);
        }
        profile.weights = weights.into_weights();
        profile
    }

    /// The labels of each request: its route, and one of a few tenants.
    fn labels(self, profile: &mut Profile) -> Vec<LabelSetId> {
        let set = |number: u32| {
            let pairs = [
                ("route", format!("GET /resources/{number}")),
                ("tenant", format!("tenant {}", number % TENANTS)),
            ];
            let pairs = pairs.map(|(key, value)| {
                let key = profile.strings.intern(key);
                (key, profile.strings.intern(&value))
            });
            profile.label_sets.intern(pairs.into())
        };
        (0..self.requests).map(set).collect()
    }

    /// Returns from some frames of `stack`, nodes with their methods, and calls
    /// others until it is as deep as all. Tells whether a new request begins.
    fn step(
        self,
        stack: &mut Vec<(NodeId, u64)>,
        methods: &[FrameId],
        profile: &mut Profile,
        random: &mut SplitMix,
    ) -> bool {
        let is_new = random.below(REQUEST_EVERY) == 0;
        let returns = match is_new {
            true => random.below(self.depth as u64),
            false => random.below(MOST_RETURNS),
        };
        stack.truncate(self.depth.saturating_sub(1 + returns as usize));
        while stack.len() < self.depth {
            let (parent, caller) = stack.last().copied().unwrap_or_default();
            let site = random.below(CALL_SITES).min(random.below(CALL_SITES));
            let method = SplitMix(caller * CALL_SITES + site).below(METHODS);
            let node = profile.tree.intern(Node {
                parent,
                frame: methods[method as usize],
                line: first_line(method) + 1 + site as u32,
            });
            stack.push((node, method));
        }
        is_new
    }
}

fn methods(profile: &mut Profile) -> Vec<FrameId> {
    (0..METHODS)
        .map(|method| {
            let file = method / METHODS_PER_FILE;
            let name = format!("Service{}::Model{file}#method_{method}", file / 10);
            let path = format!("/app/lib/service_{}/model_{file}.rb", file / 10);
            let strings = &mut profile.strings;
            profile
                .frames
                .intern_named(strings, &name, &path, first_line(method))
        })
        .collect()
}

fn first_line(method: u64) -> u32 {
    (method % METHODS_PER_FILE * 10) as u32 + 1
}

/// SplitMix64: small, and the same numbers everywhere.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_valid_as_deep_as_asked_and_the_same_each_time() {
        let walk = RandomWalk {
            weights: 500,
            depth: 60,
            threads: 3,
            requests: 20,
        };
        let profile = walk.profile();
        assert_eq!(profile.check(), Ok(()));
        assert_eq!(profile.weights.len(), 500);
        assert_eq!(profile.weights, walk.profile().weights);
        for weight in profile.weights.iter() {
            assert_eq!(profile.tree.stack(weight.key.node).count(), 60);
        }
        assert_eq!(profile.label_sets.len(), 21);
        // Stacks share most of their frames, but not all.
        assert!((1_000..15_000).contains(&profile.tree.len()));
    }
}
