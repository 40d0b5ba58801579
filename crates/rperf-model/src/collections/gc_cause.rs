//! Why a collection ran. Told by the VM, written as a label of its samples and in the sums of
//! collections; any thread, no I/O.

/// Why a collection ran: a minor one marks young objects alone, a major one all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum GcCause {
    /// Minor: there was no free slot for a new object.
    MinorNewobj,
    /// Minor: much was allocated by malloc.
    MinorMalloc,
    /// Minor: `GC.start(full_mark: false)`.
    MinorStart,
    /// Major: there are many old objects.
    MajorOldgen,
    /// Major: there are many old objects that have no write barriers.
    MajorShady,
    /// Major: old objects hold much that was allocated by malloc.
    MajorOldmalloc,
    /// Major: the collection before it left too few free slots.
    MajorNofree,
    /// Major: the program asked for it: `GC.start`, `GC.compact` and their like.
    MajorStart,
    /// Major: a C extension asked for it.
    MajorCapi,
    /// Major: `GC.stress`, at a new object.
    MajorStress,
    /// Major: malloc had failed, or `GC.stress` at a malloc.
    MajorForce,
    /// The VM gives no reason that is known here.
    Other,
}

impl GcCause {
    /// All causes, by their numbers from 0.
    pub const ALL: [Self; 12] = [
        Self::MinorNewobj,
        Self::MinorMalloc,
        Self::MinorStart,
        Self::MajorOldgen,
        Self::MajorShady,
        Self::MajorOldmalloc,
        Self::MajorNofree,
        Self::MajorStart,
        Self::MajorCapi,
        Self::MajorStress,
        Self::MajorForce,
        Self::Other,
    ];

    /// The value of the label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MinorNewobj => "minor newobj",
            Self::MinorMalloc => "minor malloc",
            Self::MinorStart => "minor GC.start",
            Self::MajorOldgen => "major oldgen",
            Self::MajorShady => "major shady",
            Self::MajorOldmalloc => "major oldmalloc",
            Self::MajorNofree => "major nofree",
            Self::MajorStart => "major GC.start",
            Self::MajorCapi => "major C API",
            Self::MajorStress => "major stress",
            Self::MajorForce => "major force",
            Self::Other => "other",
        }
    }

    /// What it means, for people.
    pub const fn description(self) -> &'static str {
        match self {
            Self::MinorNewobj => "no free slot for a new object",
            Self::MinorMalloc => "much malloc",
            Self::MinorStart => "asked for",
            Self::MajorOldgen => "many old objects",
            Self::MajorShady => "many old objects without write barriers",
            Self::MajorOldmalloc => "much malloc of old objects",
            Self::MajorNofree => "too few free slots were left",
            Self::MajorStart => "asked for",
            Self::MajorCapi => "asked for by a C extension",
            Self::MajorStress => "GC.stress",
            Self::MajorForce => "malloc failed, or GC.stress",
            Self::Other => "unknown",
        }
    }

    /// The cause with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// Whether all objects are marked, the old ones too, as far as that is known.
    pub const fn is_major(self) -> bool {
        !matches!(
            self,
            Self::MinorNewobj | Self::MinorMalloc | Self::MinorStart | Self::Other
        )
    }

    /// Whether somebody asked for the collection: the stack that it ran at is its reason.
    pub const fn is_asked_for(self) -> bool {
        matches!(self, Self::MinorStart | Self::MajorStart | Self::MajorCapi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_in_the_order_of_their_numbers_and_have_names_of_their_own() {
        for (number, cause) in GcCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
            assert_eq!(GcCause::from_name(cause.name()), Some(cause));
            assert_eq!(cause.is_major(), cause.name().starts_with("major "));
        }
        assert_eq!(GcCause::from_name("minor"), None);
    }
}
