//! What one version of the VM does unlike others: a function for each such fact, with its versions
//! and the place in Ruby's source that it follows. What is private to the VM is known only of the
//! versions that are named here. docs/internals/ruby-versions.md lists all of it. On any thread, and
//! in signal handlers, once [`init`] has run.

use super::compiler;
use magnus::Ruby;
use rperf_vm::{BlockLayout, FrameKinds, FrameLayout, LateFrames, LateFramesFound, Unknown};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::mem::transmute;
use std::ptr::with_exposed_provenance;
use std::sync::OnceLock;

// SAFETY: as Ruby's headers declare them: constants of the VM, which has loaded this extension.
unsafe extern "C" {
    safe static ruby_api_version: [c_int; 3];
    safe static ruby_version: c_char;
}

const WORD: usize = size_of::<usize>();

/// The versions whose private data was looked at. Of a patch release that is newer, it is believed
/// if it passes the checks at the start of a session.
const KNOWN: [Version; 3] = [(3, 4), (4, 0), (4, 1)];

/// The first two numbers of a version.
pub type Version = (u32, u32);

/// Ruby's version by its headers and its library, whatever a test says.
pub fn loaded() -> Version {
    let [major, minor, _] = ruby_api_version;
    (major as u32, minor as u32)
}

/// The first two numbers of this Ruby's version, or of the one that it is taken for.
fn running() -> Version {
    let simulated = SIMULATED.and_then(|name| {
        let mut numbers = name.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    simulated.unwrap_or_else(loaded)
}

/// The version of this Ruby as people write it: three numbers.
fn name() -> String {
    // SAFETY: the VM's version is a C string.
    let name = || unsafe { CStr::from_ptr(&raw const ruby_version) }.to_string_lossy();
    SIMULATED.map_or_else(|| name().into_owned(), str::to_owned)
}

/// Another version that this build is to take the VM for, to see what becomes of releases to come:
/// docs/internals/ruby-versions.md says how.
const SIMULATED: Option<&str> = option_env!("RPERF_SIMULATED_RUBY");

/// In such a build: the VM has its fields one word further down than is believed.
const MOVED: usize = match option_env!("RPERF_SIMULATED_LAYOUT") {
    Some(_) => WORD,
    None => 0,
};

/// Whether this Ruby's version is one of [`KNOWN`].
fn known() -> Result<(), Unknown> {
    let is_known = KNOWN.contains(&running());
    is_known.then_some(()).ok_or(Unknown::Version)
}

/// Freeing a Ractor's object sets the VM's flags of wanted events to those of the freed Ractor, which
/// wants none: the hooks of the main Ractor fall silent.
///
/// Versions: 3.4. Source: `rb_hook_list_free`, vm_trace.c.
pub fn freed_ractors_silence_hooks() -> bool {
    running() < (4, 0)
}

/// All Ractors share one list of hooks on internal events. A thread that ends walks it without a
/// lock, so an entry must not be freed while there are other Ractors. Elsewhere each Ractor has a
/// list of its own.
///
/// Versions: from 4.0. Source: `rb_ec_clear_current_thread_trace_func`, vm_trace.c.
pub fn internal_hooks_are_shared() -> bool {
    running() >= (4, 0)
}

/// Threads of other Ractors than the main one tell of their collections.
///
/// Versions: 4.0. Source: `rb_vm_global_hooks`, vm_trace.c.
pub fn other_ractors_tell_of_collections() -> bool {
    running() == (4, 0)
}

/// Each Ractor has a heap of its own, and the VM's numbers of objects are of the calling Ractor's.
///
/// Versions: from 4.1. Source: `rb_gc_objspace_alloc`, gc.c.
pub fn ractors_have_heaps() -> bool {
    running() >= (4, 1)
}

/// While any hook on threads is registered, a Ractor that ends leaves its pages of objects to the
/// main Ractor as they are, instead of freeing them first.
///
/// Versions: from 4.1. Source: `ractor_postmortem_collect`, ractor.c.
pub fn thread_hooks_keep_ended_ractors() -> bool {
    running() >= (4, 1)
}

/// Whether the kinds of the VM's internal objects that stand for frames are [`FRAME_KINDS`]. Without
/// them no stack is taken at a tick.
///
/// Versions: 3.4 to 4.1. Source: `enum imemo_type`, internal/imemo.h.
pub fn has_frame_kinds() -> Result<(), Unknown> {
    known()
}

/// See [`has_frame_kinds`].
pub const FRAME_KINDS: FrameKinds = FrameKinds { method: 6, code: 7 };

/// Where the flags of an internal object have its kind.
pub const KIND_SHIFT: usize = 12 + MOVED;

/// Where frames have their fields. Without it no line of compiled code is known.
///
/// Versions: 3.4 to 4.1. Source: `rb_execution_context_struct`, `rb_control_frame_struct`,
/// `rb_iseq_struct` and `rb_iseq_constant_body`, vm_core.h.
pub fn frame_layout() -> Result<&'static FrameLayout, Unknown> {
    static LAYOUT: FrameLayout = FrameLayout {
        stack: 0,
        stack_size: WORD,
        frame_in_context: 2 * WORD + MOVED,
        frame_size: 7 * WORD,
        program_counter: MOVED,
        iseq: 2 * WORD + MOVED,
        late: None,
        body: 2 * WORD + MOVED,
        size: size_of::<u32>(),
        encoded: WORD + MOVED,
        blocks: BLOCKS,
    };
    static WITH_LATE_FRAMES: FrameLayout = FrameLayout {
        late: Some(LateFrames {
            place: 6 * WORD + MOVED,
            c_method: 1,
            program_counter: MOVED,
            iseq: WORD + MOVED,
            found: &LATE_FRAMES_FOUND,
        }),
        ..LAYOUT
    };
    known()?;
    let can_read = line_of_instruction().is_some() && !may_zjit_fill_frames_unseen();
    let layout = match zjit_fills_frames_late() {
        true => &WITH_LATE_FRAMES,
        false => &LAYOUT,
    };
    can_read.then_some(layout).ok_or(Unknown::Form)
}

/// What tells blocks from their methods.
///
/// Versions: 3.4 to 4.1. Source: `rb_control_frame_struct` and the frames' and environments' flags,
/// vm_core.h; `rb_callable_method_entry_t` and `rb_method_type_t`, method.h; `enum imemo_type`,
/// internal/imemo.h. How they are read follows `thread_profile_frames`, vm_backtrace.c, and
/// `rb_vm_frame_method_entry`, vm_insnhelper.c.
const BLOCKS: BlockLayout = BlockLayout {
    environment: 4 * WORD + MOVED,
    method_before: 2 * WORD,
    outer_before: WORD,
    kinds: 0x7fff_0001,
    block: 0x2222_0001,
    c_call: 0x5555_0001,
    is_c: 0x80,
    is_outermost: 2,
    object_kind: KIND_SHIFT,
    special_variables: 2,
    definition: 2 * WORD,
    definition_kinds: 15,
    c_method: 1,
};

/// ZJIT leaves the program counter and the instruction sequence of a control frame as they were, and
/// keeps them in a record (`zjit_jit_frame`), which the VM's functions read.
///
/// Versions: from 4.1. Source: `CFP_ZJIT_FRAME`, zjit.h, and `gen_write_jit_frame`,
/// zjit/src/codegen.rs.
fn zjit_fills_frames_late() -> bool {
    running() >= (4, 1)
}

static LATE_FRAMES_FOUND: LateFramesFound = LateFramesFound::none();

/// Whether a compiler is on that fills frames late, as this process runs, or may be.
/// Async-signal-safe.
pub fn are_frames_late() -> bool {
    zjit_fills_frames_late() && is_zjit_on() || may_zjit_fill_frames_unseen()
}

/// Whether ZJIT may fill frames late, and nothing tells whether it is on: this Ruby was linked
/// without the name of the VM's variable. Async-signal-safe.
fn may_zjit_fill_frames_unseen() -> bool {
    zjit_fills_frames_late()
        && FOUND
            .get()
            .is_some_and(|found| found.has_zjit && found.zjit_entry == 0)
}

/// Whether ZJIT is on. Async-signal-safe.
///
/// Versions: from 4.0. Source: `rb_zjit_enabled_p`, zjit.h.
fn is_zjit_on() -> bool {
    let entry = FOUND.get().map_or(0, |found| found.zjit_entry);
    // SAFETY: the VM's variable, a pointer that is not null once ZJIT is on.
    entry != 0 && unsafe { with_exposed_provenance::<usize>(entry).read_volatile() } != 0
}

/// Where a thread and its Ractor have their fields. Without it Ractors have no numbers, and no line
/// of compiled code is known.
///
/// Versions: 3.4 to 4.1. Source: `rb_thread_struct`, vm_core.h, and `rb_ractor_struct`,
/// ractor_core.h.
pub fn thread_layout() -> Result<&'static ThreadLayout, Unknown> {
    static LAYOUT: ThreadLayout = ThreadLayout {
        object: 2 * WORD + MOVED,
        ractor: 3 * WORD + MOVED,
        context: 6 * WORD + MOVED,
        ractor_object: MOVED,
        ractor_number: WORD + MOVED,
    };
    known().map(|()| &LAYOUT)
}

/// Where a method of C has its function. Without it no objects are followed.
///
/// Versions: 3.4 to 4.1. Source: `struct METHOD`, proc.c, and `rb_method_entry_struct` and
/// `rb_method_definition_struct`, method.h.
pub fn method_layout() -> Result<&'static MethodLayout, Unknown> {
    static LAYOUT: MethodLayout = MethodLayout {
        entry: 8 * WORD,
        definition: 2 * WORD,
        name: 3 * WORD,
        owner: 4 * WORD,
        function: WORD,
        arguments: 3 * WORD,
        original_name: 4 * WORD,
        kind: 0xf,
        kind_of_c: 1,
    };
    known().map(|()| &LAYOUT)
}

/// Offsets, in bytes, of fields in what the VM keeps of a method.
pub struct MethodLayout {
    /// Before this there is its entry, in the data of a Method.
    pub entry: usize,
    /// Its definition, in its entry.
    pub definition: usize,
    /// Its name there.
    pub name: usize,
    /// Its class there.
    pub owner: usize,
    /// The function, in its definition.
    pub function: usize,
    /// How many arguments it takes, 32 bits, there.
    pub arguments: usize,
    /// The name that it was defined by, there.
    pub original_name: usize,
    /// The bits of the definition's first word that say of what kind it is.
    pub kind: usize,
    /// What they are for a method of C.
    pub kind_of_c: usize,
}

/// Offsets, in bytes, of fields in what the VM keeps of a thread and of a Ractor.
pub struct ThreadLayout {
    /// The thread's object.
    pub object: usize,
    /// Its Ractor.
    pub ractor: usize,
    /// Its execution context.
    pub context: usize,
    /// The Ractor's object, in what is kept of a Ractor.
    pub ractor_object: usize,
    /// Its number, 32 bits.
    pub ractor_number: usize,
}

/// Where an execution context has what its fiber keeps by names. Without it only threads' variables have
/// names among what holds objects.
///
/// Versions: 3.4 to 4.1. Source: `rb_execution_context_struct`, vm_core.h, `rb_id_table` and
/// `rb_id_item`, id_table.c and id_table.h, and `rb_id_to_serial`, symbol.h.
pub fn fiber_layout() -> Result<&'static FiberLayout, Unknown> {
    const fn layout(more: usize) -> FiberLayout {
        FiberLayout {
            fiber: 5 * WORD + MOVED,
            thread: 6 * WORD + MOVED,
            variables: (7 + more) * WORD + MOVED,
            storage: (10 + more) * WORD + MOVED,
            table: TableLayout {
                capacity: 0,
                count: size_of::<u32>(),
                entries: 2 * WORD,
                entry: 2 * WORD,
                value: WORD,
                id_shift: 4,
                id_kind: 0xf,
            },
        }
    }
    static LAYOUT: FiberLayout = layout(0);
    // Two serial numbers come before.
    static WITH_SERIALS: FiberLayout = layout(2);
    known()?;
    Ok(match running() >= (4, 0) {
        true => &WITH_SERIALS,
        false => &LAYOUT,
    })
}

/// Offsets, in bytes, of fields in an execution context.
pub struct FiberLayout {
    /// The VM's data of its fiber.
    pub fiber: usize,
    /// The VM's data of its thread.
    pub thread: usize,
    /// The table of variables that `Thread#[]=` sets; null without one.
    pub variables: usize,
    /// The Hash of `Fiber[]`, or nil.
    pub storage: usize,
    /// The layout of such a table.
    pub table: TableLayout,
}

/// Offsets, in bytes, of fields in a table by IDs.
pub struct TableLayout {
    /// The number of entries for which there is room, 32 bits.
    pub capacity: usize,
    /// The number of entries that there are, 32 bits.
    pub count: usize,
    /// The address of the entries.
    pub entries: usize,
    /// The bytes of an entry. It begins with its key, 32 bits: the number of its ID, 0 for none.
    pub entry: usize,
    /// The value, in an entry.
    pub value: usize,
    /// Where an ID has its number.
    pub id_shift: usize,
    /// The bits of an ID below its number, as the VM has them where it makes an ID of a number.
    pub id_kind: usize,
}

/// How many bytes before the address of a thread's words for extensions its name is. Without it threads
/// have no names.
///
/// Versions: 3.4 to 4.1. Source: `name` and `specific_storage` of `rb_thread_struct`, vm_core.h.
pub fn name_before_storage() -> Result<usize, Unknown> {
    known().map(|()| WORD + MOVED)
}

/// The function that tells the line of an instruction, by its place in words. The VM exports it, and
/// no header has it.
///
/// Versions: from 3.4. Source: `rb_iseq_line_no`, iseq.c.
pub fn line_of_instruction() -> Option<LineOfInstruction> {
    FOUND.get()?.line_of_instruction
}

/// See [`line_of_instruction`].
pub type LineOfInstruction = unsafe extern "C" fn(*const u8, usize) -> c_uint;

/// The function that tells the bytes of an object's slot. The VM exports it, and no header has it.
///
/// Versions: from 3.4. Source: `rb_gc_obj_slot_size`, gc.c.
pub fn slot_size() -> Option<SlotSize> {
    FOUND.get()?.slot_size
}

/// See [`slot_size`].
pub type SlotSize = unsafe extern "C" fn(rb_sys::VALUE) -> usize;

/// What the VM exports besides what headers have.
struct Found {
    line_of_instruction: Option<LineOfInstruction>,
    slot_size: Option<SlotSize>,
    /// Ruby was built with ZJIT.
    has_zjit: bool,
    /// The address of a variable; 0 if Ruby was built without ZJIT, or doesn't export it.
    zjit_entry: usize,
}

static FOUND: OnceLock<Found> = OnceLock::new();

/// Looks for what the VM has and exports. When the extension is loaded, once.
pub fn init(ruby: &Ruby) {
    let has_zjit = compiler::module(ruby, "ZJIT").is_some();
    // SAFETY: looks names up. Functions of these names have these forms in all versions that have
    // them.
    FOUND.get_or_init(|| unsafe {
        let find = |name: &CStr| libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        Found {
            line_of_instruction: transmute::<*mut libc::c_void, Option<LineOfInstruction>>(find(
                c"rb_iseq_line_no",
            )),
            slot_size: transmute::<*mut libc::c_void, Option<SlotSize>>(find(
                c"rb_gc_obj_slot_size",
            )),
            has_zjit,
            zjit_entry: find(c"rb_zjit_entry").expose_provenance(),
        }
    });
}

/// For a profile with samples of other Ractors: of so many, if they have numbers.
pub fn note_on_other_ractors(ractors: Option<usize>) -> String {
    let collections = if other_ractors_tell_of_collections() {
        String::new()
    } else {
        let (major, minor) = running();
        format!("; in Ruby {major}.{minor} their garbage collections count as running time")
    };
    let number = ractors.map_or(String::new(), |ractors| format!(" (Ractors: {ractors})"));
    format!("threads of other Ractors have samples at ticks only{collections}{number}")
}

/// For a profile of objects, where hooks have fallen silent.
pub const NOTE_ON_SILENT_OBJECTS: &str =
    "objects may be missing: Ruby 3.4 tells of none for a while when a Ractor's object is freed";

/// For a profile of calls, where hooks have fallen silent.
pub const NOTE_ON_SILENT_CALLS: &str =
    "calls may be missing: Ruby 3.4 tells of nothing more once a Ractor's object is freed";

/// What a profile lacks where the VM's private data isn't known.
pub enum Lacks {
    /// Stacks at ticks: all are taken at safepoints.
    TickStacks,
    /// Lines of compiled code on top of stacks.
    CompiledLines,
    /// The numbers of Ractors.
    RactorNumbers,
    /// The names of methods that blocks define, in traces.
    BlockMethods,
    /// The names of blocks, which are shown as their methods.
    Blocks,
    /// The names of threads.
    ThreadNames,
}

impl Lacks {
    /// For people.
    fn because(self, reason: Unknown) -> String {
        let what = match self {
            Lacks::TickStacks => "stacks at ticks",
            Lacks::CompiledLines => "lines of compiled code",
            Lacks::RactorNumbers => "numbers of Ractors",
            Lacks::BlockMethods => "names of methods made by define_method",
            Lacks::Blocks => "names of blocks",
            Lacks::ThreadNames => "names of threads",
        };
        let internals = format!("the internals of Ruby {}", name());
        let why = match reason {
            Unknown::Version => format!("this rperf doesn't know {internals}"),
            Unknown::Form => format!("{internals} aren't as this rperf knows them"),
            Unknown::Access => {
                format!("rperf got no file descriptors to check {internals} with")
            }
        };
        format!("{what}, because {why}")
    }
}

/// What is missing of these, and why, for people.
pub fn missing<const N: usize>(reasons: [(Lacks, Option<Unknown>); N]) -> Vec<String> {
    let reasons = reasons.into_iter();
    let told = reasons.filter_map(|(what, reason)| Some(what.because(reason?)));
    told.collect()
}
