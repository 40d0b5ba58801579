//! The numbers of a thread's nodes: calls, and ticks of the clock in which it ran. They come in
//! chunks, so that threads that touch few nodes hold little. Under the GVL, at events.

/// Nodes in a chunk.
const CHUNK: usize = 32;

/// The numbers of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Calls that were told.
    pub(crate) calls: u64,
    /// Ticks in which it was the innermost frame and its thread ran.
    pub(crate) running: u64,
}

/// The numbers of all nodes, of one thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    chunks: Vec<Option<Box<[Count; CHUNK]>>>,
    /// Chunks that are there.
    used: usize,
}

impl Counts {
    /// The numbers of `node`.
    #[inline]
    pub(crate) fn of(&mut self, node: u32) -> &mut Count {
        let chunk = node as usize / CHUNK;
        if !matches!(self.chunks.get(chunk), Some(Some(_))) {
            self.add_chunk(chunk);
        }
        match &mut self.chunks[chunk] {
            Some(counts) => &mut counts[node as usize % CHUNK],
            None => unreachable!("it was added"),
        }
    }

    #[cold]
    #[inline(never)]
    fn add_chunk(&mut self, chunk: usize) {
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        self.chunks[chunk] = Some(Box::new([Count::default(); CHUNK]));
        self.used += 1;
    }

    /// All nodes that have a number, in the order of the nodes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Count)> {
        let chunks = self.chunks.iter().enumerate();
        chunks
            .filter_map(|(number, chunk)| Some((number, chunk.as_deref()?)))
            .flat_map(|(number, chunk)| {
                let counts = chunk.iter().enumerate();
                counts.map(move |(place, count)| ((number * CHUNK + place) as u32, *count))
            })
            .filter(|(_, count)| *count != Count::default())
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.used * size_of::<[Count; CHUNK]>() + self.chunks.capacity() * size_of::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chunks_that_are_touched_take_memory() {
        let mut counts = Counts::default();
        assert_eq!(counts.iter().count(), 0);
        counts.of(70_000).calls = 3;
        counts.of(5).running += 7;
        counts.of(5).running += 7;
        let found: Vec<_> = counts
            .iter()
            .map(|(node, it)| (node, it.calls, it.running))
            .collect();
        assert_eq!(found, [(5, 0, 14), (70_000, 3, 0)]);
        assert!(counts.memory() < 70_000 * size_of::<Count>() / 20);
    }
}
