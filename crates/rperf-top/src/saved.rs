//! A saved profile as sums. On the command's main thread.

use rperf_model::label_keys::{PID, PROCESS};
use rperf_model::shared_sums::SumsValues;
use rperf_model::{LabelSetId, Mode, OwnColumn, Profile, Weight};
use rperf_watch::sums::{Purpose, RowKey, Sums, ThreadFacts};
use std::collections::{HashMap, HashSet};

/// The unit that the screens know.
const UNIT: &str = "nanoseconds";

/// What is shown of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Shows<'a> {
    /// Whether each row of weights is the time of an idle thread.
    pub idle_rows: &'a [bool],
    /// Whether the time of idle threads is shown like all other time.
    pub shows_idle: bool,
}

/// The profile that is called `title`, whose texts are made fit for a terminal by `shown`. The error
/// says why there is nothing to be seen.
pub fn sums(
    profile: &Profile,
    title: &str,
    shows: Shows<'_>,
    shown: impl Fn(&str) -> String,
) -> Result<Sums, String> {
    let value = profile.schema.default_type();
    if value.unit != UNIT {
        return Err(format!("its values are no times, but {}", value.name));
    }
    if profile.weights.is_empty() {
        return Err("there is nothing in it".into());
    }
    let purpose = Purpose {
        shows_idle: shows.shows_idle,
        is_saved: true,
        ..Purpose::default()
    };
    let mut reader = Reader {
        profile,
        sums: Sums::of(purpose),
        processes: HashMap::new(),
        labels: HashMap::new(),
        title: shown(title),
        shown: &shown,
    };
    reader.read(shows.idle_rows);
    let mut sums = reader.sums;
    sums.end_round();
    Ok(sums)
}

struct Reader<'a> {
    profile: &'a Profile,
    sums: Sums,
    /// The place of each process in the sums, by number.
    processes: HashMap<i32, u32>,
    /// The process and the labels of each label set.
    labels: HashMap<LabelSetId, (u32, u32)>,
    title: String,
    shown: &'a dyn Fn(&str) -> String,
}

impl Reader<'_> {
    fn read(&mut self, idle_rows: &[bool]) {
        let profile = self.profile;
        let text = |id| profile.strings.get(id);
        let frames = profile.frames.iter().map(|(_, frame)| {
            let (name, path) = (text(frame.name), text(frame.path));
            self.sums.frame(name, path, frame.first_line)
        });
        let frames: Vec<_> = frames.collect();
        let mut stacks: Vec<u32> = vec![0];
        for (_, node) in profile.tree.iter() {
            let caller = stacks[node.parent.0 as usize];
            let frame = frames[node.frame.0 as usize];
            let stack = frame.and_then(|frame| self.sums.stack(caller, frame, node.line));
            stacks.push(stack.unwrap_or(caller));
        }
        let mut idle: HashSet<RowKey> = HashSet::new();
        for (number, weight) in profile.weights.iter().enumerate() {
            let (process, labels) = self.labels(weight.key.labels);
            let key = RowKey {
                stack: stacks[weight.key.node.0 as usize],
                thread: self.sums.thread(process, weight.key.thread),
                labels,
                state: weight.key.state,
            };
            self.sums.add(key, values(profile, &weight));
            if idle_rows.get(number) == Some(&true) {
                idle.insert(key);
            }
        }
        let meta = &profile.meta;
        self.sums
            .add_directories(&meta.roots, &meta.rperf_directories);
        for process in 0..self.sums.processes.len() as u32 {
            self.sums.set_idle(process, |key| idle.contains(key));
            self.name_threads(process);
            self.sums.end_interval(process, meta.duration_ns, 0);
        }
    }

    fn name_threads(&mut self, process: u32) {
        let profile = self.profile;
        let named = profile.threads.iter().map(|thread| {
            let facts = ThreadFacts {
                name: (self.shown)(profile.strings.get(thread.name)).into(),
                ..ThreadFacts::default()
            };
            (Some(thread.seq), facts)
        });
        self.sums.set_facts(process, named);
    }

    fn add_process(&mut self, pid: i32, program: &str) -> u32 {
        let place = self.sums.add_process(pid, program);
        let schema = &self.profile.schema;
        let process = &mut self.sums.processes[place as usize];
        let time = &schema.default_type().name;
        let mode = Mode::from_name(time);
        // Times of other columns are where those on the clock are.
        process.facts.mode = mode.unwrap_or(Mode::Wall);
        process.facts.frequency = self.profile.meta.frequency;
        let of_mode = mode.map(Mode::schema);
        let with = |columns: &[OwnColumn]| {
            let of_mode = of_mode.as_ref();
            of_mode.map(|it| it.with(columns.iter().copied()))
        };
        let with_blame = [
            &[OwnColumn::GvlBlame][..],
            &[OwnColumn::GvlBlame, OwnColumn::GvlWaitedFor],
        ];
        process.facts.blames = with_blame.map(with).iter().flatten().any(|it| it == schema);
        let is_foreign = of_mode.as_ref() != Some(schema) && !process.facts.blames;
        process.foreign_time = is_foreign.then(|| time.clone());
        place
    }

    fn labels(&mut self, id: LabelSetId) -> (u32, u32) {
        if let Some(&known) = self.labels.get(&id) {
            return known;
        }
        let profile = self.profile;
        let pairs = profile.label_sets.get(id).iter();
        let pairs =
            pairs.map(|&(key, value)| (profile.strings.get(key), profile.strings.get(value)));
        let pairs: Vec<_> = pairs.collect();
        let of = |wanted: &str| pairs.iter().find(|(key, _)| *key == wanted);
        let pid = of(PID).and_then(|(_, pid)| pid.parse().ok()).unwrap_or(0);
        let process = match self.processes.get(&pid) {
            Some(&process) => process,
            None => {
                let program = match of(PROCESS) {
                    Some((_, program)) if pid != 0 => (self.shown)(program),
                    _ => self.title.clone(),
                };
                let process = self.add_process(pid, &program);
                *self.processes.entry(pid).or_insert(process)
            }
        };
        let own = pairs.into_iter();
        let own = own.filter(|(key, _)| *key != PID && *key != PROCESS);
        let labels = self.sums.label_set(own).unwrap_or(0);
        self.labels.insert(id, (process, labels));
        (process, labels)
    }
}

/// The values of a row. Differences of profiles have less than nothing.
fn values(profile: &Profile, weight: &Weight<'_>) -> SumsValues {
    let number = |column| u64::try_from(weight.value(column)).unwrap_or(0);
    let time = number(profile.schema.default_column());
    let own = |column| profile.schema.find_own(column).map_or(0, number);
    // Times of other modes are where those on the clock are.
    let (wall_ns, cpu_ns) = match profile.schema.default_own() {
        Some(OwnColumn::Cpu) => (own(OwnColumn::Wall), time),
        _ => (time, own(OwnColumn::Cpu)),
    };
    SumsValues {
        count: own(OwnColumn::Samples),
        wall_ns,
        cpu_ns,
        blame_ns: own(OwnColumn::GvlBlame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support::cpu_schema;
    use rperf_model::{Column, NodeId, Schema, ValueType};
    use rperf_watch::sums::{Extent, Scope};

    const ALL: Shows<'static> = Shows {
        idle_rows: &[],
        shows_idle: true,
    };

    #[test]
    fn what_was_written_is_seen_again() {
        let mut first = Sums::default();
        for pid in [7, 8] {
            let process = first.add_process(pid, "puma");
            let facts = &mut first.processes[process as usize].facts;
            (facts.mode, facts.frequency) = (Mode::Wall, 100);
            let frame = first.frame("A#b", "a.rb", 3).expect("room");
            let labels = [("endpoint", "GET /")].into_iter();
            let key = RowKey {
                stack: first.stack(0, frame, 4).expect("room"),
                thread: first.thread(process, 3),
                labels: first.label_set(labels).expect("room"),
                state: rperf_model::State::GvlBlocked,
            };
            let values = SumsValues {
                count: 2,
                wall_ns: 5_000,
                cpu_ns: 70,
                blame_ns: 0,
            };
            first.add(key, values);
            first.end_interval(process, 10_000, 0);
        }
        let profile = first.profile(Extent::Watched, None).expect("something");
        let again = sums(&profile, "x.pb.gz", ALL, |it| it.to_string()).expect("times");
        let titles: Vec<_> = again.processes.iter().map(|it| it.title()).collect();
        assert_eq!(titles, ["7 puma", "8 puma"]);
        assert_eq!(again.labels.len(), 2);
        let times = again.node_times(Scope::Total, None, Some(1));
        assert_eq!(times.all().blocked, 5_000);
        // A rate: half of each second.
        let rates = again.node_times(Scope::Rate, None, None);
        assert_eq!(rates.all().blocked, 1_000_000_000);
        assert!(again.is_saved() && again.method(1).is_some());
        let twice = again.profile(Extent::Watched, None).expect("something");
        let rows = |of: &Profile| of.weights.iter().map(|it| it.values.to_vec()).collect();
        let rows: [Vec<_>; 2] = [&profile, &twice].map(rows);
        assert_eq!(rows[0], [[2, 5_000, 70], [2, 5_000, 70]]);
        assert_eq!(rows[0], rows[1]);
    }

    #[test]
    fn of_times_of_other_kinds_there_are_no_samples() {
        let types = vec![ValueType::new("time", UNIT), ValueType::new("wall", UNIT)];
        let mut profile = Profile::new(Schema::new(types, Column(0)).expect("a schema"));
        let key = rperf_model::WeightKey {
            node: NodeId::ROOT,
            thread: 0,
            labels: LabelSetId::default(),
            state: rperf_model::State::Running,
        };
        profile.weights.push(key, &[30, 20]);
        let seen = sums(&profile, "x", ALL, |it| it.to_string()).expect("times");
        let again = seen.profile(Extent::Watched, None).expect("something");
        assert_eq!(again.schema.types(), [ValueType::new("time", UNIT)]);
        assert_eq!(again.weights.get(0).expect("a row").values, [30]);
    }

    #[test]
    fn what_has_no_times_is_refused() {
        let empty = Profile::new(cpu_schema());
        assert!(sums(&empty, "x", ALL, |it| it.to_string()).is_err());
        let types = vec![ValueType::new("alloc_bytes", "bytes")];
        let objects = Profile::new(Schema::new(types, Column(0)).expect("a schema"));
        let error = sums(&objects, "x", ALL, |it| it.to_string()).expect_err("refused");
        assert_eq!(error, "its values are no times, but alloc_bytes");
    }
}
