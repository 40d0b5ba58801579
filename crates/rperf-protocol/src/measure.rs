//! What a session of clients measures beside times: in requests, by its words, and within the program, by
//! a number.

use rperf_model::{OwnColumn, Profile, Schema};

/// The word for requests and jobs.
const REQUESTS: &str = "requests";

/// The word for ops.
const OPS: &str = "ops";

/// What a session of clients knows of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Objects {
    /// Nothing.
    #[default]
    No,
    /// Which are made: some are sampled.
    Made,
    /// And which of these stay.
    InUse,
}

impl Objects {
    /// Its word, as in the setting of what is measured.
    fn word(self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Made => Some("alloc=sampled"),
            Self::InUse => Some("heap"),
        }
    }

    /// What a profile with these columns lacks of it, for people.
    fn lacking(self, schema: &Schema) -> Option<&'static str> {
        let has = |column| schema.find_own(column).is_some();
        match self {
            Self::Made | Self::InUse if !has(OwnColumn::Objects) => Some(
                "objects, because the session that the program had already doesn't sample them",
            ),
            Self::InUse if !has(OwnColumn::ObjectsInUse) => Some(
                "objects in use, because the session that the program had already doesn't follow them",
            ),
            _ => None,
        }
    }
}

/// What a session of clients measures beside times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measure {
    /// Objects.
    pub objects: Objects,
    /// The requests and jobs that end: their accounts, and which are slow.
    pub requests: bool,
    /// The queries, and other ops, that end.
    pub ops: bool,
}

impl Measure {
    /// Times alone.
    pub const NOTHING: Self = Self {
        objects: Objects::No,
        requests: false,
        ops: false,
    };

    /// The words, as in the setting of what is measured.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let requests = self.requests.then_some(REQUESTS);
        let ops = self.ops.then_some(OPS);
        [self.objects.word(), requests, ops].into_iter().flatten()
    }

    /// What these words name, with commas between several. `None` if there is no such word.
    pub fn of_words(words: Option<&str>) -> Option<Self> {
        let mut measure = Self::default();
        // Some clients encode these signs.
        let encoded = [("%2C", ","), ("%2c", ","), ("%3D", "="), ("%3d", "=")];
        let plain = |text: &str| {
            let replace = |text: String, (code, sign): &(&str, &str)| text.replace(code, sign);
            encoded.iter().fold(text.to_string(), replace)
        };
        let words = words.map(plain);
        for word in words.iter().flat_map(|it| it.split(',')) {
            let objects = [Objects::Made, Objects::InUse];
            if let Some(objects) = objects.into_iter().find(|it| it.word() == Some(word)) {
                measure.objects = measure.objects.max(objects);
                continue;
            }
            match word {
                REQUESTS => measure.requests = true,
                OPS => measure.ops = true,
                _ => return None,
            }
        }
        Some(measure)
    }

    /// Its number.
    pub fn code(self) -> u8 {
        self.objects as u8 | u8::from(self.requests) << 2 | u8::from(self.ops) << 3
    }

    /// The measure that has this number; bits without a meaning are ignored.
    pub fn of_code(code: u8) -> Self {
        let objects = match code & 3 {
            1 => Objects::Made,
            2 => Objects::InUse,
            _ => Objects::No,
        };
        Self {
            objects,
            requests: code & 4 != 0,
            ops: code & 8 != 0,
        }
    }

    /// What a profile lacks of it, in phrases for people. `is_part`: it is a part of a session that ran already,
    /// the program's own or that of another client.
    pub fn lacking(self, profile: &Profile, is_part: bool) -> Vec<&'static str> {
        let requests = "requests, because a session ran already, of the program or of another client: those of \
                        a part of it can't be told";
        let ops = "ops, because none ended meanwhile, or the session that ran already, of the program or of \
                   another client, has none";
        let requests = (self.requests && is_part).then_some(requests);
        let ops = (self.ops && is_part && profile.ops.is_empty()).then_some(ops);
        let objects = self.objects.lacking(&profile.schema);
        [objects, requests, ops].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::Mode;

    #[test]
    fn words_and_numbers_are_read_as_they_are_written() {
        for code in 0..16 {
            let measure = Measure::of_code(code);
            let words: Vec<_> = measure.words().collect();
            let text = words.join(",");
            let read = Measure::of_words(Some(&*text).filter(|it| !it.is_empty()));
            assert_eq!(read, Some(measure), "{text}");
            assert_eq!(Measure::of_code(measure.code()), measure);
        }
        assert_eq!(
            Measure::of_words(Some("heap,alloc=sampled")).map(|it| it.objects),
            Some(Objects::InUse)
        );
        let encoded = Measure::of_words(Some("alloc%3Dsampled%2Cops"));
        assert_eq!(encoded, Measure::of_words(Some("alloc=sampled,ops")));
        for odd in ["", "heap,", "alloc", "requests,all"] {
            assert_eq!(Measure::of_words(Some(odd)), None, "{odd}");
        }
    }

    #[test]
    fn a_part_of_another_session_lacks_what_that_has_not() {
        let profile = Profile::new(Mode::Wall.schema());
        let of = |words, is_part| {
            let measure = Measure::of_words(Some(words)).expect("words");
            let lacking = measure.lacking(&profile, is_part).into_iter();
            let first = lacking.filter_map(|it| it.split(',').next());
            first.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("requests,ops", false), "");
        assert_eq!(of("requests,ops", true), "requests ops");
        assert_eq!(of("heap,ops", true), "objects ops");
    }
}
