//! The slots of objects, and the numbers of these. In the forked child.

use crate::ruby::heap::has_size;
use std::ptr::with_exposed_provenance;

/// The flags of the slot.
pub fn flags(slot: usize) -> usize {
    // SAFETY: a slot of a page of objects, which begins with flags, 0 where it has no object.
    unsafe { with_exposed_provenance::<usize>(slot).read() }
}

/// Whether there is an object in the slot.
pub fn is_live(slot: usize) -> bool {
    has_size(flags(slot))
}

/// The numbers of objects by their addresses.
pub struct Slots {
    /// Pages by the number of their 64 KB, in a table with free places: page and 1.
    places: Vec<(usize, u32)>,
    pages: Vec<Page>,
    /// The number of each slot's object and 1.
    numbers: Vec<u32>,
}

struct Page {
    start: usize,
    end: usize,
    slot: usize,
    first: usize,
}

const BLOCK: usize = 16;

impl Slots {
    /// The table, and how many objects there are.
    pub fn of(pages: &[(usize, usize, usize)]) -> (Self, u32) {
        let blocks: usize = pages.iter().map(|it| ((it.1 - it.0) >> BLOCK) + 2).sum();
        let mut slots = Slots {
            places: vec![(0, 0); (blocks * 2).next_power_of_two()],
            pages: Vec::with_capacity(pages.len()),
            numbers: Vec::new(),
        };
        let mut count = 0;
        for &(start, end, slot) in pages {
            slots.pages.push(Page {
                start,
                end,
                slot: slot.max(1),
                first: slots.numbers.len(),
            });
            let number = slots.pages.len() as u32;
            for block in (start >> BLOCK)..=(end.saturating_sub(1) >> BLOCK) {
                slots.put(block, number);
            }
            for object in (start..end).step_by(slot.max(1)) {
                let is_live = is_live(object) && count < u32::MAX - 1;
                count += u32::from(is_live);
                slots.numbers.push(if is_live { count } else { 0 });
            }
        }
        (slots, count)
    }

    fn put(&mut self, block: usize, page: u32) {
        let mut place = self.place(block);
        while self.places[place].1 != 0 {
            place = (place + 1) & (self.places.len() - 1);
        }
        self.places[place] = (block, page);
    }

    fn place(&self, block: usize) -> usize {
        block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20 & (self.places.len() - 1)
    }

    /// The number of the object at this address; `None` if there is none.
    pub fn number(&self, address: usize) -> Option<u32> {
        let block = address >> BLOCK;
        let mut place = self.place(block);
        loop {
            match self.places[place] {
                (_, 0) => return None,
                (known, page) if known == block => {
                    let page = &self.pages[page as usize - 1];
                    if (page.start..page.end).contains(&address) {
                        let slot = (address - page.start) / page.slot;
                        let is_begin = (address - page.start).is_multiple_of(page.slot);
                        let number = self.numbers.get(page.first + slot).copied();
                        return number.filter(|it| is_begin && *it > 0).map(|it| it - 1);
                    }
                }
                _ => {}
            }
            place = (place + 1) & (self.places.len() - 1);
        }
    }
}
