//! The class of a request: how long it took among the requests of its endpoint. Judged as it ends,
//! written as a label of its samples; any thread, no I/O.

/// How long a request took, among its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyClass {
    /// Too few others were known.
    First,
    /// Less than the quarter that took least, or nearly so.
    Fast,
    /// The half in the middle.
    Typical,
    /// More than these, but not so much as the slowest.
    Slow,
    /// A request that took as long as the slowest one in a hundred, or nearly so.
    Tail,
    /// A request that had not ended when its samples were needed, or for whose samples there was no
    /// more room.
    Open,
}

impl LatencyClass {
    /// All classes, by their numbers from 0.
    pub const ALL: [Self; 6] = [
        Self::First,
        Self::Fast,
        Self::Typical,
        Self::Slow,
        Self::Tail,
        Self::Open,
    ];
    /// How many classes requests can have that have ended: the first ones.
    pub const ENDED: usize = 5;

    /// The value of the label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Fast => "fast",
            Self::Typical => "typical",
            Self::Slow => "slow",
            Self::Tail => "tail",
            Self::Open => "open",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_the_order_of_their_numbers_and_open_is_the_last() {
        for (number, class) in LatencyClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, number);
        }
        assert_eq!(LatencyClass::ALL[LatencyClass::ENDED], LatencyClass::Open);
    }
}
