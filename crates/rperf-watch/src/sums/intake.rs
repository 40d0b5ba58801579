//! How pages of changes come into the sums. A hostile server may have sent them: what a page refers
//! to must be there.

use super::reading::{Anew, CAP, Place, ROW_CAP, Reading};
use super::{RowKey, Sums};
use rperf_model::shared_sums::{Changes, SumsRow};
use rperf_model::{Frame, FrameId, State, StringId, WeightKey};
use rperf_protocol::delta::{BadDelta, Delta};
use rustc_hash::FxHashSet;

/// Where the helper's methods are (`lib/rperf/live/helper.rb`), and how their names begin.
const HELPER: (&str, &str) = ("Rperf::Helper.", "rperf/live/helper.rb");

impl Sums {
    /// What comes of the process counts from now on as the time in which it is watched.
    pub fn begin(&mut self, process: u32) {
        self.processes[process as usize].counts = true;
    }

    /// Takes a page of the process in.
    pub fn take(&mut self, process: u32, delta: Delta) -> Result<(), BadDelta> {
        let place = process as usize;
        let changes = delta.changes;
        if changes.reset {
            self.reset(process);
        }
        let mut reading = std::mem::take(&mut self.intake.readings[place]);
        reading.check(&changes)?;
        if !std::mem::replace(&mut reading.is_pulling, true) {
            self.begin_interval(process);
        }
        self.processes[place].take_facts(&changes.facts);
        self.take_tables(&mut reading, &changes);
        self.find_helpers(process, &mut reading, &changes.rows);
        let rows = changes.rows.iter();
        let rows: Vec<_> = rows.filter(|row| !reading.is_helpers(&row.key)).collect();
        if changes.reset || !rows.is_empty() {
            self.rounds.note_page();
        }
        for row in rows {
            self.take_row(process, &mut reading, row);
        }
        if reading.crowded.len() > ROW_CAP || reading.helpers.len() > CAP {
            return Err(BadDelta);
        }
        if !changes.more {
            reading.is_pulling = false;
            if let Some(Anew { start_ns, rows }) = reading.anew.take() {
                self.replace_rows(process, &rows, start_ns == changes.facts.start_ns);
            }
        }
        self.intake.readings[place] = reading;
        Ok(())
    }

    /// All that the process has sent comes anew, in other numbers.
    fn reset(&mut self, process: u32) {
        let place = process as usize;
        if self.processes.len() == 1 && !self.processes[0].counts {
            // What is there is nothing but this, and isn't needed any more.
            *self = Sums {
                purpose: self.purpose,
                processes: std::mem::take(&mut self.processes),
                directories: std::mem::take(&mut self.directories),
                rounds: std::mem::take(&mut self.rounds),
                ..Sums::default()
            };
            self.processes[0].rows.clear();
            self.intake.readings.push(Reading::default());
            return;
        }
        let process = &self.processes[place];
        let (has_rows, start_ns) = (!process.rows.all.is_empty(), process.facts.start_ns);
        let reading = &mut self.intake.readings[place];
        let earlier = reading.anew.as_ref().map_or(start_ns, |it| it.start_ns);
        *reading = Reading {
            anew: has_rows.then(|| Anew {
                start_ns: earlier,
                ..Anew::default()
            }),
            is_pulling: reading.is_pulling,
            has_new_waits: true,
            ..Reading::default()
        };
    }

    fn take_tables(&mut self, reading: &mut Reading, changes: &Changes) {
        for text in &changes.strings {
            reading.text += text.len();
            reading.strings.push(self.string(text));
        }
        for frame in &changes.frames {
            let text = |id: StringId| reading.strings[id.0 as usize];
            let frame = text(frame.name)
                .zip(text(frame.path))
                .and_then(|(name, path)| {
                    self.frame_of(Frame {
                        name,
                        path,
                        ..*frame
                    })
                });
            reading.frames.push(frame);
        }
        for node in &changes.nodes {
            let caller = reading.place(node.parent.0);
            let frame = reading.frames[node.frame.0 as usize];
            let is_helpers = match node.parent.0 {
                0 => frame.is_some_and(|it| self.is_helpers(it)),
                _ => caller.is_helpers,
            };
            let frame = frame.filter(|_| !caller.has_no_room);
            let stack = frame.and_then(|it| self.stack(caller.stack, it, node.line));
            reading.nodes.push(Place {
                stack: stack.unwrap_or(caller.stack),
                has_no_room: stack.is_none(),
                is_helpers,
            });
        }
        for set in &changes.label_sets {
            let text = |id: StringId| reading.strings[id.0 as usize];
            let pairs = set.iter().map(|&(key, value)| text(key).zip(text(value)));
            let set: Option<Vec<_>> = pairs.collect();
            let set = set.and_then(|set| self.label_set_of(set));
            reading.label_sets.push(set);
        }
    }

    /// Whether it is a frame of the thread that answers for the VM.
    fn is_helpers(&self, frame: FrameId) -> bool {
        let text = self.frame_text(frame);
        text.is_some_and(|(name, path)| name.starts_with(HELPER.0) && path.ends_with(HELPER.1))
    }

    /// The threads that answer for the VM, by the method that their stacks begin with. Thread 0 stands
    /// for others, too.
    fn find_helpers(&mut self, process: u32, reading: &mut Reading, rows: &[SumsRow]) {
        let found = rows.iter().map(|row| row.key);
        let found = found.filter(|key| key.thread > 0 && reading.place(key.node.0).is_helpers);
        let mut found: FxHashSet<u32> = found.map(|key| key.thread).collect();
        found.retain(|thread| !reading.helpers.contains(thread));
        if !found.is_empty() {
            let start_ns = self.processes[process as usize].facts.start_ns;
            let anew = reading.anew.as_mut();
            // Else the rows are still those of the session before, where the numbers are other threads'.
            if anew.as_ref().is_none_or(|it| it.start_ns == start_ns) {
                self.leave_out(process, &found);
            }
            if let Some(anew) = anew {
                let seq = |key: &RowKey| self.threads.seq_of(key.thread);
                anew.rows.retain(|key, _| !found.contains(&seq(key)));
            }
            reading.helpers.extend(found);
        }
    }

    fn take_row(&mut self, process: u32, reading: &mut Reading, row: &SumsRow) {
        reading.has_new_waits |= matches!(row.key.state, State::GvlBlocked | State::GvlWait);
        let (key, has_room) = self.key(process, reading, row.key);
        let mut grown = row.values;
        if !has_room {
            let before = reading.crowded.insert(row.key, row.values);
            grown = row.values.without(before.unwrap_or_default());
        }
        let number = self.row(key);
        if let Some(anew) = &mut reading.anew {
            let sums = anew.rows.entry(key).or_default();
            match has_room {
                true => *sums = row.values,
                false => sums.add(grown),
            }
            return;
        }
        let seen = &mut self.rows[number as usize].seen;
        if has_room {
            grown = row.values.without(*seen);
            *seen = row.values;
        } else {
            seen.add(grown);
        }
        if self.processes[process as usize].counts {
            self.grow(number, grown);
        }
    }

    /// The sums' key of a row, and whether that is the row's own.
    fn key(&mut self, process: u32, reading: &Reading, key: WeightKey) -> (RowKey, bool) {
        let place = reading.place(key.node.0);
        let labels = match reading.label_sets.get(key.labels.0 as usize) {
            Some(labels) => *labels,
            None => Some(0),
        };
        let thread = self.thread(process, key.thread);
        let own = RowKey {
            stack: place.stack,
            thread,
            labels: labels.unwrap_or(0),
            state: key.state,
        };
        // What had no room once stays there, or it would count twice.
        let has_room = !place.has_no_room
            && labels.is_some()
            && !reading.crowded.contains_key(&key)
            && self.threads.seq_of(thread) == key.thread
            && (self.rows.len() < ROW_CAP || self.intake.rows.contains_key(&own));
        if has_room {
            return (own, true);
        }
        let shared = RowKey {
            thread: self.thread(process, 0),
            labels: self.label_set_of_more(),
            ..own
        };
        (shared, false)
    }
}

#[cfg(test)]
mod tests;
