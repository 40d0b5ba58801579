//! The stream's form, for both ends. It begins with [`MAGIC`] and the number of objects; then come records,
//! each with one of these tags in front. All numbers are LEB128; differences have their sign in the lowest
//! bit.

/// What a stream begins with. Another version begins otherwise.
pub const MAGIC: &[u8; 8] = b"rpheap2\n";

/// A name: its bytes. It has the next number, the first one 1.
pub const NAME: u8 = 1;
/// The next object: kind, class (its number and 1; 0: none), bytes, the number of named references, that of
/// others, and the references: of a named one the name in front, of each the difference to the object's number.
pub const OBJECT: u8 = 2;
/// A root: the name of its category, the object's number, the name of the variable (0: none).
pub const ROOT: u8 = 3;
/// What an object is called: its number, the name.
pub const CALLED: u8 = 4;
/// The end: the number of references.
pub const END: u8 = 5;
/// The end of the objects: from here on are roots and names.
pub const OBJECTS_END: u8 = 6;
/// All has come but the values of global variables, which are roots. Functions of extensions that tell these may end
/// the process, so that a stream may lack some.
pub const GLOBALS: u8 = 10;

/// The session that follows samples of objects: for how long it has run, in ns, the bytes that a sample stands
/// for, those of objects that aren't followed, and how many samples come. There is one at most, in front of them.
pub const SESSION: u8 = 7;
/// A site, which has the next number, the first one 1: method, path and line of the place where objects are
/// made, the same of the application's (0: none), the endpoint (0: none).
pub const SITE: u8 = 8;
/// A sample: the object's number, that of its site (0: not known), the bytes of its slot, the mean gap, its age
/// in ns and in collections.
pub const SAMPLE: u8 = 9;

/// Bytes of a name at most.
pub const LONGEST_NAME: usize = 256;
