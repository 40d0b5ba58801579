//! Labels of a sample that is being read: the thread, the state and the user's own. Called by the
//! reader; any thread.

use crate::ReadError;
use crate::pprof::labels::{self, unescape_key, unescape_value};
use crate::pprof::proto;
use crate::pprof::texts::Texts;
use rperf_model::{LabelSet, State, StringId, Strings, label_keys};
use rustc_hash::FxHashMap;

/// The facts in a sample's labels.
#[derive(Default)]
pub(super) struct SampleLabels {
    /// The thread's seq.
    pub(super) thread: Option<u32>,
    /// The thread's name; only with a seq.
    pub(super) thread_name: Option<StringId>,
    /// The state that a tag tells.
    pub(super) state: Option<State>,
    /// All others.
    pub(super) user: LabelSet,
}

/// The labels' keys, as far as they are known already.
pub(super) struct LabelReader {
    keys: Vec<Option<Key>>,
    /// For each key the number of the last sample that had it.
    seen_in: FxHashMap<StringId, u64>,
    samples: u64,
}

#[derive(Clone, Copy)]
enum Key {
    ThreadSeq(StringId),
    Thread(StringId),
    State(StringId),
    User(StringId),
}

impl LabelReader {
    pub(super) fn new(texts: &Texts<'_>) -> Self {
        Self {
            keys: vec![None; texts.len()],
            seen_in: FxHashMap::default(),
            samples: 0,
        }
    }

    /// Takes the labels of the next sample apart. Of labels with one key, which pprof
    /// allows and we don't, the first is taken.
    pub(super) fn read(
        &mut self,
        labels: &[proto::Label],
        texts: &mut Texts<'_>,
        strings: &mut Strings,
    ) -> Result<SampleLabels, ReadError> {
        self.samples += 1;
        let mut read = SampleLabels::default();
        let mut thread_key = None;
        for label in labels {
            let key = self.key(label.key, texts, strings)?;
            if label.str == 0 {
                match key {
                    Key::ThreadSeq(_) => read.thread = Some(thread_seq(label.num)?),
                    // pprof takes this for a label without a value.
                    _ if label.num == 0 && label.num_unit == 0 => {}
                    Key::Thread(key) | Key::State(key) | Key::User(key) => {
                        let value = strings.intern(&label.num.to_string());
                        self.push(key, value, &mut read.user);
                    }
                }
                continue;
            }
            let value = texts.intern(label.str, strings)?;
            match key {
                Key::Thread(key) => {
                    thread_key = Some(key);
                    read.thread_name = read.thread_name.or(Some(value));
                }
                Key::State(key) => {
                    let state = State::from_tag(strings.get(key), strings.get(value));
                    read.state = read.state.or(state);
                    if state.is_none() {
                        self.push(key, value, &mut read.user);
                    }
                }
                Key::ThreadSeq(key) | Key::User(key) => {
                    let value = match unescape_value(strings.get(value)) {
                        "" => StringId::default(),
                        _ => value,
                    };
                    self.push(key, value, &mut read.user);
                }
            }
        }
        // Without its number it is not ours, but a label like any other.
        if let (None, Some(key), Some(name)) = (read.thread, thread_key, read.thread_name) {
            read.thread_name = None;
            self.push(key, name, &mut read.user);
        }
        Ok(read)
    }

    fn push(&mut self, key: StringId, value: StringId, set: &mut LabelSet) {
        if self.seen_in.insert(key, self.samples) != Some(self.samples) {
            set.push((key, value));
        }
    }

    fn key(
        &mut self,
        index: i64,
        texts: &mut Texts<'_>,
        strings: &mut Strings,
    ) -> Result<Key, ReadError> {
        let row = texts.row(index)?;
        if let Some(key) = self.keys.get(row).copied().flatten() {
            return Ok(key);
        }
        let text = texts.get(index)?;
        let id = strings.intern(unescape_key(&text));
        let key = match &*text {
            label_keys::THREAD_SEQ => Key::ThreadSeq(id),
            label_keys::THREAD => Key::Thread(id),
            text if labels::is_state_key(text) => Key::State(id),
            _ => Key::User(id),
        };
        if let Some(known) = self.keys.get_mut(row) {
            *known = Some(key);
        }
        Ok(key)
    }
}

fn thread_seq(number: i64) -> Result<u32, ReadError> {
    u32::try_from(number)
        .map_err(|_| ReadError::damaged(format!("there can be no thread number {number}")))
}
