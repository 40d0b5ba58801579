//! What a program says of its memory that nobody else knows: the answer to `/v1/memory`. Any thread.

use crate::stacks::Source;
use crate::text::fit;
use rperf_report::memory::told::{Malloc, MallocCounts, Objects, Told, ToldHeap, ToldPool};
use serde::{Deserialize, Serialize};

/// Characters of a name that are kept.
const MAX_NAME: usize = 100;

/// Pools of slots that are kept.
const MAX_POOLS: usize = 64;

/// The answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// How long it took.
    pub elapsed_ns: u64,
    /// Ruby's heap; null if the VM hasn't said, or can't look at it.
    #[serde(default)]
    pub heap: Option<Heap>,
    /// What malloc has counted.
    #[serde(default)]
    pub malloc: Option<MallocAnswer>,
    /// Why the VM hasn't said anything, or nothing of its heap.
    #[serde(default)]
    pub note: Option<String>,
    /// The objects, if they were asked for.
    #[serde(default)]
    pub objects: Option<ObjectsAnswer>,
    /// Whose answer it is.
    #[serde(default)]
    pub source: Source,
    /// Stacks; null if the VM hasn't said.
    #[serde(default)]
    pub stacks: Option<Stacks>,
    /// Whether the main thread was woken for it.
    #[serde(default)]
    pub woken: bool,
}

/// Ruby's heap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heap {
    /// The garbage collector: `default`, or the name of another one.
    #[serde(default, deserialize_with = "fit::<_, MAX_NAME>")]
    pub collector: String,
    /// Pages without an object.
    #[serde(default)]
    pub empty_pages: u64,
    /// For how long the GVL was held while pages were listed.
    #[serde(default)]
    pub held_ns: u64,
    /// Bytes that YJIT or ZJIT has from malloc.
    #[serde(default)]
    pub jit_bytes: u64,
    /// Bytes of a page; 0 if this collector has none.
    #[serde(default)]
    pub page_bytes: u64,
    /// The pools of slots.
    #[serde(default)]
    pub pools: Vec<Pool>,
}

/// A pool of slots of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Slots with an object.
    pub live: u64,
    /// Its pages, as pairs: the number of a page, which is its address divided by the bytes of a page,
    /// and how many there are in a row.
    pub pages: Vec<(u64, u64)>,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// All slots.
    pub slots: u64,
}

/// What malloc has counted. It isn't asked where its functions aren't known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MallocAnswer {
    /// `glibc`, `jemalloc`, or the name of its library.
    #[serde(deserialize_with = "fit::<_, MAX_NAME>")]
    pub allocator: String,
    /// Its counts; null if they aren't known.
    #[serde(default)]
    pub counts: Option<Counts>,
    /// How long it took.
    #[serde(default)]
    pub elapsed_ns: u64,
}

/// Bytes; see [`MallocCounts`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Kept in arenas of glibc, and not handed out.
    pub free: u64,
    /// Handed out, in arenas of glibc.
    pub in_use: u64,
    /// Handed out elsewhere.
    pub mapped: u64,
    /// Resident and not handed out elsewhere.
    pub mapped_free: u64,
}

/// What a walk of all objects has found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectsAnswer {
    /// How many there are.
    pub count: u64,
    /// For how long the GVL was held for the walk.
    pub held_ns: u64,
    /// Bytes that they have from malloc.
    pub malloc_bytes: u64,
}

/// Stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stacks {
    /// Bytes of a fiber's stack; 0 if they aren't known.
    pub fiber_bytes: u64,
    /// The VM's stacks of threads, as pairs of address and bytes.
    pub vm: Vec<(u64, u64)>,
}

impl Memory {
    /// What is known by it.
    pub fn told(&self) -> Told {
        let stacks = self.stacks.clone().unwrap_or_default();
        let malloc = self.malloc.as_ref().map(|it| Malloc {
            allocator: it.allocator.clone(),
            counts: it.counts.as_ref().map(|it| MallocCounts {
                in_use: it.in_use,
                free: it.free,
                mapped: it.mapped,
                mapped_free: it.mapped_free,
            }),
        });
        Told {
            heap: self.heap.as_ref().map(Heap::told),
            malloc,
            jit_data: self.heap.as_ref().map_or(0, |it| it.jit_bytes),
            vm_stacks: stacks.vm,
            fiber_stack: stacks.fiber_bytes,
            objects: self.objects.as_ref().map(|it| Objects {
                count: it.count,
                malloc: it.malloc_bytes,
            }),
        }
    }
}

impl Heap {
    fn told(&self) -> ToldHeap {
        let pools = self.pools.iter().take(MAX_POOLS);
        ToldHeap {
            page_bytes: self.page_bytes,
            empty_pages: self.empty_pages,
            pools: pools
                .map(|it| ToldPool {
                    slot_bytes: it.slot_bytes,
                    slots: it.slots,
                    live: it.live,
                    pages: it.pages.clone(),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{NotAReply, read, written};

    fn of(body: &str) -> Result<Memory, NotAReply> {
        read(body.as_bytes())
    }

    #[test]
    fn recorded_answers_are_read() {
        let golden = include_str!("../golden/memory.json");
        let memory = of(golden).expect("memory");
        assert_eq!(written(&memory) + "\n", golden);
        let told = memory.told();
        let heap = told.heap.expect("a heap");
        assert_eq!(
            heap.pools[0].pages,
            [(2_130_706_432, 3), (2_130_706_440, 1)]
        );
        assert_eq!((heap.page_bytes, heap.empty_pages), (65_536, 2));
        assert_eq!(told.vm_stacks, [(139_637_976_727_568, 1_048_576)]);
        assert_eq!(told.objects.map(|it| it.malloc), Some(1_234_567));
    }

    #[test]
    fn what_other_versions_lack_or_add_is_no_obstacle() {
        let least = of(r#"{"elapsed_ns":1,"more":[]}"#).expect("memory");
        assert_eq!(
            (least.source, least.told()),
            (Source::System, Told::default())
        );
        let unknown = r#"{"elapsed_ns":1,"malloc":{"allocator":"\u001bx"},"heap":{}}"#;
        let malloc = of(unknown).expect("memory").malloc.expect("malloc");
        assert_eq!((&*malloc.allocator, malloc.counts), (" x", None));
        for odd in [
            r#"{}"#,
            r#"{"elapsed_ns":-1}"#,
            r#"{"elapsed_ns":1,"heap":{"pools":[{"live":1}]}}"#,
            "[]",
        ] {
            assert_eq!(of(odd), Err(NotAReply), "{odd}");
        }
    }
}
