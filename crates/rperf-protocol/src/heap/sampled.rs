//! Samples of objects that a session in the program follows: which objects of the graph they are, where these
//! were made, and since when they have been there.

/// A place in code. All but the line are numbers of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The method; 0 for no place.
    pub method: u32,
    /// Its file.
    pub path: u32,
    /// The line; 0 if it isn't known.
    pub line: u32,
}

/// Where objects are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Site {
    /// The innermost method.
    pub made_in: Place,
    /// The innermost one of the application, if that is another one.
    pub called_by: Place,
    /// The endpoint or job; 0 for none.
    pub endpoint: u32,
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The object.
    pub object: u32,
    /// The number of its site, from 1 on; 0 if that isn't known.
    pub site: u32,
    /// The bytes of its slot, by which it was drawn.
    pub bytes: u64,
    /// The mean gap between samples, in bytes.
    pub mean: u64,
    /// For how long it has been there, in ns.
    pub age_ns: u64,
    /// How many collections have begun since.
    pub collections: u64,
}

/// The session that has drawn the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Session {
    /// For how long it has run, in ns.
    pub elapsed_ns: u64,
    /// Bytes of slots that a sample stands for at most, in the mean.
    pub bytes_per_sample: u64,
    /// Bytes of slots of objects that couldn't be followed.
    pub lost_bytes: u64,
}

impl Sample {
    /// How many objects it stands for: the reciprocal of the probability with which such an object is drawn.
    pub fn weight(&self) -> f64 {
        -1.0 / (-(self.bytes as f64) / self.mean as f64).exp_m1()
    }
}
