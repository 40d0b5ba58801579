//! Buckets of histograms, so many to an octave: the number of the bucket of a value, and where a
//! bucket begins. With 2^BITS to an octave, those below 2^BITS hold one value each.

/// How many buckets there are.
pub(crate) const fn count<const BITS: u32>() -> usize {
    ((64 - BITS as usize) + 1) << BITS
}

/// The bucket of `value`.
#[inline]
pub(crate) fn bucket_of<const BITS: u32>(value: u64) -> usize {
    if value < 1 << BITS {
        return value as usize;
    }
    let octave = value.ilog2();
    let within = (value >> (octave - BITS)) as usize % (1 << BITS);
    (((octave - BITS + 1) as usize) << BITS) + within
}

/// The least value in a bucket; the largest number for the one after the last.
pub(crate) fn start_of<const BITS: u32>(bucket: usize) -> u64 {
    if bucket < 1 << BITS {
        return bucket as u64;
    }
    let octave = (bucket >> BITS) - 1;
    let start = ((1 << BITS) + bucket as u128 % (1 << BITS)) << octave;
    u64::try_from(start).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_value_is_in_its_bucket<const BITS: u32>() {
        for value in [0, 1, 3, 4, 5, 7, 8, 9, 1_000, 123_456, 1 << 40, u64::MAX] {
            let bucket = bucket_of::<BITS>(value);
            assert!(bucket < count::<BITS>(), "{value}");
            assert!(start_of::<BITS>(bucket) <= value, "{value}");
            let next = start_of::<BITS>(bucket + 1);
            assert!(value < next || value == u64::MAX, "{value}");
        }
    }

    #[test]
    fn each_value_is_in_the_bucket_that_begins_at_or_below_it() {
        each_value_is_in_its_bucket::<2>();
        each_value_is_in_its_bucket::<3>();
    }

    #[test]
    fn the_last_bucket_has_the_largest_value() {
        assert_eq!(bucket_of::<2>(u64::MAX) + 1, count::<2>());
        assert_eq!(bucket_of::<3>(u64::MAX) + 1, count::<3>());
    }
}
