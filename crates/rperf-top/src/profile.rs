//! What is shown as a profile, for a file.

use crate::store::{LabelFilter, Scope, Store};
use rperf_model::label_keys::{PID, PROCESS};
use rperf_model::{
    Column, Frame, LabelSet, Mode, Node, NodeId, Profile, Schema, Thread, ValueType, WeightKey,
};

impl Store {
    /// Since the mark, or else since the programs are watched; what has this label, if there is one.
    /// `None` if there is nothing.
    pub fn profile(&self, scope: Scope, filter: Option<&LabelFilter>) -> Option<Profile> {
        let scope = match scope {
            Scope::Rate => Scope::Total,
            scope => scope,
        };
        let mode = self.processes.first()?.mode.as_str();
        let mode = if mode.is_empty() {
            Mode::Wall.name()
        } else {
            mode
        };
        let schema = Schema::new(vec![ValueType::new(mode, "nanoseconds")], Column(0))?;
        let mut profile = Profile::new(schema);
        let nodes = self.profile_nodes(&mut profile);
        let no_name = profile.strings.intern("");
        // Thread 0 has the time of threads that have ended, here as there.
        let seq = |number: u32| match self.threads[number as usize].seq {
            0 => 0,
            _ => number + 1,
        };
        let numbers = 0..self.threads.len() as u32;
        let threads = numbers
            .filter(|number| seq(*number) > 0)
            .map(|number| Thread {
                seq: seq(number),
                name: self
                    .facts
                    .get(&number)
                    .map_or(no_name, |facts| profile.strings.intern(&facts.name)),
            });
        profile.threads = threads.collect();
        for (row, time) in self.all_rows_of(scope, filter, None) {
            let set = self.profile_labels(&mut profile, row.key.labels, self.process_of(row));
            let key = WeightKey {
                node: nodes[row.key.node as usize],
                thread: seq(row.key.thread),
                labels: profile.label_sets.intern(set),
                state: row.key.state,
            };
            let time = i64::try_from(time).unwrap_or(i64::MAX);
            profile.weights.push(key, &[time]);
        }
        let watched = |it: &crate::store::Process| match scope {
            Scope::SinceMark => it.watched_ns - it.mark_ns,
            _ => it.watched_ns,
        };
        let meta = &mut profile.meta;
        for root in &self.roots {
            meta.add_root(root);
        }
        for directory in &self.rperf_directories {
            meta.add_rperf_directory(directory);
        }
        meta.duration_ns = self.processes.iter().map(watched).max()?;
        meta.frequency = self.processes.iter().map(|it| it.frequency).max()?;
        meta.program.clone_from(&self.processes.first()?.program);
        (!profile.weights.is_empty()).then_some(profile)
    }

    /// The profile's number of each stack.
    fn profile_nodes(&self, profile: &mut Profile) -> Vec<NodeId> {
        let mut nodes = vec![NodeId::ROOT];
        for node in &self.nodes[1..] {
            let method = &self.methods[node.method as usize];
            let frame = Frame {
                name: profile.strings.intern(&method.name),
                path: profile.strings.intern(&method.path),
                first_line: 0,
            };
            let frame = profile.frames.intern(frame);
            let parent = nodes[node.parent as usize];
            nodes.push(profile.tree.intern(Node {
                parent,
                frame,
                line: 0,
            }));
        }
        nodes
    }

    /// With the process, where there are several.
    fn profile_labels(&self, profile: &mut Profile, labels: u32, process: u32) -> LabelSet {
        let strings = &mut profile.strings;
        let own = self.labels[labels as usize].iter();
        let mut set: LabelSet = own
            .map(|(key, value)| (strings.intern(key), strings.intern(value)))
            .collect();
        if self.processes.len() > 1 {
            let process = &self.processes[process as usize];
            let pid = process.pid.to_string();
            for (key, value) in [(PID, &*pid), (PROCESS, &*process.program)] {
                set.push((strings.intern(key), strings.intern(value)));
            }
        }
        set
    }
}
