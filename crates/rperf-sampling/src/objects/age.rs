//! How long objects that are in use have been there.

/// In ns.
const MINUTE: u64 = 60_000_000_000;
const HOUR: u64 = 60 * MINUTE;

/// An age, as profiles have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Age {
    /// No collection has begun since.
    BeforeCollection,
    /// Collections have left it alone for less than a minute, and so on.
    Minute,
    Minutes,
    Hour,
    Day,
    Older,
}

/// A moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// On the system's clock that never steps back.
    pub ns: u64,
    /// Collections that have begun before.
    pub collections: u64,
}

impl Age {
    /// The age at `now` of an object that was made at `born_ns`, and that a collection could take from
    /// `collections` on.
    pub(super) fn at(now: Moment, born_ns: u64, collections: u64) -> Self {
        if now.collections <= collections {
            return Self::BeforeCollection;
        }
        let limits = [
            (MINUTE, Self::Minute),
            (10 * MINUTE, Self::Minutes),
            (HOUR, Self::Hour),
            (24 * HOUR, Self::Day),
        ];
        let age_ns = now.ns.saturating_sub(born_ns);
        let found = limits.into_iter().find(|(limit, _)| age_ns < *limit);
        found.map_or(Self::Older, |(_, age)| age)
    }

    /// Its text in labels.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::BeforeCollection => "<1 GC",
            Self::Minute => "<1 min",
            Self::Minutes => "<10 min",
            Self::Hour => "<1 h",
            Self::Day => "<1 d",
            Self::Older => "older",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_objects_that_collections_have_left() {
        let age = |ns, collections| {
            let now = Moment {
                ns: 1000 + ns,
                collections: 7,
            };
            Age::at(now, 1000, collections).text()
        };
        assert_eq!((age(48 * HOUR, 7), age(0, 8)), ("<1 GC", "<1 GC"));
        for (ns, text) in [
            (0, "<1 min"),
            (MINUTE - 1, "<1 min"),
            (MINUTE, "<10 min"),
            (10 * MINUTE, "<1 h"),
            (HOUR - 1, "<1 h"),
            (HOUR, "<1 d"),
            (24 * HOUR, "older"),
        ] {
            assert_eq!(age(ns, 6), text);
        }
    }
}
