//! The kinds of frames, told by their paths and names: methods of C, Ruby's own methods, blocks, and
//! frames that rperf makes. Ruby and rperf give such a frame a marker as its path, or words before
//! its name. Used by whoever makes or asks a frame. Any thread, no I/O.

/// The path of methods written in C.
pub const C_METHOD: &str = "<C method>";
/// The path of frames that stand for a state of the GVL.
pub const GVL: &str = "<GVL>";
/// The path of frames that stand for garbage collection.
pub const GC: &str = "<GC>";
/// The path of frames that stand for a stack without frames.
pub const THREAD: &str = "<thread>";
/// The path of frames that stand for an op: a query, a request to another server, and the like.
pub const OP: &str = "<op>";
/// The path of frames that rperf makes.
pub const RPERF: &str = "<rperf>";

/// Name and path of the frame of stacks for which there was no room.
pub const TRUNCATED_FRAME: (&str, &str) = ("[truncated]", RPERF);
/// Name and path of the frame of callers that were folded.
pub const FOLDED_FRAME: (&str, &str) = ("[folded]", RPERF);
/// Name and path of the frame of waits for the GVL in which nobody had it: one thread had given it up,
/// and the next one hadn't begun.
pub const HAND_OVER_FRAME: (&str, &str) = ("[GVL hand-over]", GVL);
/// Name and path of the frame of waits for a GVL of which it isn't known who had it.
pub const UNKNOWN_HOLDER_FRAME: (&str, &str) = ("[GVL holder unknown]", GVL);
/// Name and path of the frame of what major collections took to mark objects of which no sample tells where they
/// were made.
pub const LONG_LIVED_FRAME: (&str, &str) = ("[GC of long-lived objects]", GC);
/// Name and path of the frame of what collections took that the program asked for.
pub const ASKED_FOR_FRAME: (&str, &str) = ("[GC asked for]", GC);
/// Name and path of the frame of what collections took before an object had been sampled.
pub const UNSAMPLED_FRAME: (&str, &str) = ("[GC of unsampled objects]", GC);
/// Name and path of the frame of all that rperf does in a traced program.
pub const OWN_FRAME: (&str, &str) = ("[rperf]", RPERF);

/// How the paths of Ruby's own methods begin that are written in Ruby.
const INTERNAL: &str = "<internal:";

/// Frames that call the first code of a file.
const MAIN: [&str; 2] = ["<main>", "<top (required)>"];

/// What Ruby writes before the name of a method, for code inside it.
const INSIDE: [&str; 3] = ["block", "rescue", "ensure"];

/// The kind of a frame, as far as its path tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A method written in C.
    CMethod,
    /// A method of Ruby's own that is written in Ruby.
    Internal,
    /// A state of the GVL.
    Gvl,
    /// Garbage collection.
    Gc,
    /// A stack without frames.
    NoStack,
    /// An op.
    Op,
    /// Code in a file, and whatever else has no marker of its kind.
    Other,
}

impl FrameKind {
    /// The kind of a frame with this path.
    pub fn of(path: &str) -> Self {
        match path {
            C_METHOD => Self::CMethod,
            GVL => Self::Gvl,
            GC => Self::Gc,
            THREAD => Self::NoStack,
            OP => Self::Op,
            _ if path.starts_with(INTERNAL) => Self::Internal,
            _ => Self::Other,
        }
    }

    /// Whether such a frame stands for a state, or for a stack that isn't known.
    pub fn is_synthetic(self) -> bool {
        matches!(self, Self::Gvl | Self::Gc | Self::NoStack)
    }
}

/// Whether a frame with this name calls the first code of a file.
pub fn is_main(name: &str) -> bool {
    MAIN.contains(&name)
}

/// The name of code with so many blocks around it in the method `name`, as Ruby writes it.
pub fn within_blocks(blocks: usize, name: String) -> String {
    match blocks {
        0 => name,
        1 => format!("block in {name}"),
        _ => format!("block ({blocks} levels) in {name}"),
    }
}

/// The method that a function is, or is code inside of: `Order#total` of `block in Order#total`.
pub fn method_of(name: &str) -> &str {
    let mut name = name;
    while let Some((inside, rest)) = name.split_once(" in ")
        && INSIDE.contains(&inside.split(' ').next().unwrap_or_default())
    {
        name = rest;
    }
    name
}

/// The path inside of `<internal:...>`.
pub(crate) fn internal_file(path: &str) -> Option<&str> {
    path.strip_prefix(INTERNAL)?.strip_suffix('>')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_kind() {
        for (path, kind) in [
            ("/srv/app.rb", FrameKind::Other),
            ("-e", FrameKind::Other),
            ("<C method>", FrameKind::CMethod),
            ("<internal:kernel>", FrameKind::Internal),
            ("<GVL>", FrameKind::Gvl),
            ("<GC>", FrameKind::Gc),
            ("<thread>", FrameKind::NoStack),
            ("<op>", FrameKind::Op),
            ("<rperf>", FrameKind::Other),
            ("<other>", FrameKind::Other),
            ("", FrameKind::Other),
        ] {
            assert_eq!(FrameKind::of(path), kind, "{path}");
        }
    }

    #[test]
    fn blocks_lead_back_to_their_method() {
        for (blocks, name) in [
            (0, "Order#total"),
            (1, "block in Order#total"),
            (2, "block (2 levels) in Order#total"),
        ] {
            assert_eq!(within_blocks(blocks, "Order#total".into()), name);
            assert_eq!(method_of(name), "Order#total");
        }
        assert_eq!(method_of("rescue in block in <main>"), "<main>");
        assert_eq!(method_of("Order#a in b"), "Order#a in b");
    }
}
