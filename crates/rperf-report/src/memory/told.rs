//! What a program tells of its memory that nobody else knows. All of it may be wrong: a program that is
//! watched isn't trusted.

/// What a program has told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Ruby's heap; `None` if the VM hasn't told.
    pub heap: Option<ToldHeap>,
    /// What its malloc has counted; `None` if nobody could ask it.
    pub malloc: Option<Malloc>,
    /// The bytes that a compiler has from malloc for what it knows of the code.
    pub jit_data: u64,
    /// The VM's stacks of threads: where each begins, and its bytes.
    pub vm_stacks: Vec<(u64, u64)>,
    /// The bytes of a fiber's stack; 0 if they aren't known.
    pub fiber_stack: u64,
    /// The objects, if they were walked.
    pub objects: Option<Objects>,
}

/// Ruby's heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToldHeap {
    /// The bytes of a page, and what its address is a multiple of.
    pub page_bytes: u64,
    /// Pages without any object, which are kept for later.
    pub empty_pages: u64,
    /// The pools of slots.
    pub pools: Vec<ToldPool>,
}

/// A pool: pages with slots of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToldPool {
    /// The bytes of a slot.
    pub slot_bytes: u64,
    /// The slots of all its pages.
    pub slots: u64,
    /// Slots that have an object.
    pub live: u64,
    /// Its pages: the number of the first one, which is its address divided by the bytes of a page, and
    /// how many follow each other.
    pub pages: Vec<(u64, u64)>,
}

/// What a malloc has counted, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Malloc {
    /// Which malloc it is: `glibc`, `jemalloc`, or the name of its library.
    pub allocator: String,
    /// Its counts; `None` if it has none that are known here.
    pub counts: Option<MallocCounts>,
}

/// See [`Malloc`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MallocCounts {
    /// Handed out in arenas, which are known by their form: those of glibc.
    pub in_use: u64,
    /// Kept in arenas, and not handed out.
    pub free: u64,
    /// Handed out elsewhere: glibc's large blocks, and all of jemalloc's.
    pub mapped: u64,
    /// Resident and not handed out elsewhere.
    pub mapped_free: u64,
}

/// What a walk of all objects has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Objects {
    /// How many there are.
    pub count: u64,
    /// The bytes that they have from malloc, as malloc rounds them.
    pub malloc: u64,
}
