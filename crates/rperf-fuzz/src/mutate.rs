//! Makes inputs from whole ones: some bits, bytes, numbers and pieces are others, by chance.

/// Numbers at which readers err: sizes, signs and widths.
const NUMBERS: [u64; 10] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Bytes of an input at most.
const LARGEST: usize = 1 << 20;

/// An endless row of inputs.
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    state: u64,
}

impl Mutator {
    /// Made from these whole ones. The same `seed` makes the same inputs.
    pub fn new(seeds: Vec<Vec<u8>>, seed: u64) -> Self {
        Self {
            seeds,
            state: seed | 1,
        }
    }

    /// The next one.
    pub fn next_input(&mut self) -> Vec<u8> {
        let place = self.below(self.seeds.len());
        let mut input = self.seeds[place].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        input.truncate(LARGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        if input.is_empty() {
            input.push(self.below(256) as u8);
            return;
        }
        let place = self.below(input.len());
        let length = (1 + self.below(16)).min(input.len() - place);
        match self.below(8) {
            0 => input[place] ^= 1 << self.below(8),
            1 => input[place] = self.below(256) as u8,
            2 => input.truncate(place),
            3 => drop(input.drain(place..place + length)),
            4 => {
                let piece = input[place..place + length].to_vec();
                for _ in 0..=self.below(40) {
                    input.splice(place..place, piece.iter().copied());
                }
            }
            5 => {
                let number = NUMBERS[self.below(NUMBERS.len())];
                let varint = self.below(2) == 0;
                let bytes = if varint {
                    as_varint(number)
                } else {
                    number.to_le_bytes().to_vec()
                };
                input.splice(place..place + length, bytes);
            }
            6 => {
                let number = NUMBERS[self.below(NUMBERS.len())];
                input.splice(place..place + length, number.to_string().into_bytes());
            }
            _ => {
                let other = self.below(self.seeds.len());
                let other = self.seeds[other].clone();
                let start = self.below(other.len().max(1));
                let end = (start + 1 + self.below(200)).min(other.len());
                input.splice(
                    place..place + length,
                    other[start.min(end)..end].iter().copied(),
                );
            }
        }
    }

    /// A number from 0 to below `limit`, by chance (xorshift64*).
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let number = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        (number >> 33) as usize % limit.max(1)
    }
}

fn as_varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_they_differ() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(vec![b"one two three".to_vec(), Vec::new()], seed);
            (0..200).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        let mut first = inputs(3);
        assert_eq!(first, inputs(3));
        assert_ne!(first, inputs(5));
        first.sort();
        first.dedup();
        assert!(first.len() > 150, "{}", first.len());
    }

    #[test]
    fn varints_are_those_of_protocol_buffers() {
        assert_eq!(as_varint(1), [1]);
        assert_eq!(as_varint(300), [0xac, 0x02]);
        assert_eq!(as_varint(u64::MAX).len(), 10);
    }
}
