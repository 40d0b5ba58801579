//! Kinds of objects, as one byte: Ruby's type, and what else is to be known of it.

/// An object's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kind(pub u8);

impl Kind {
    /// Ruby's types (`enum ruby_value_type`), as far as they matter here.
    pub const OBJECT: u8 = 0x01;
    /// A class.
    pub const CLASS: u8 = 0x02;
    /// A module.
    pub const MODULE: u8 = 0x03;
    /// A Struct, a Data or a Range.
    pub const STRUCT: u8 = 0x09;
    /// Methods, environments and more that only the VM sees.
    pub const IMEMO: u8 = 0x1a;
    /// A node of the parser.
    pub const NODE: u8 = 0x1b;
    /// The place of a module among the ancestors of a class.
    pub const ICLASS: u8 = 0x1c;

    const TYPE: u8 = 0x1f;
    /// The bit of a singleton class.
    pub const SINGLETON: u8 = 0x20;
    /// The bit of a thread.
    pub const THREAD: u8 = 0x40;
    /// The bit of a fiber.
    pub const FIBER: u8 = 0x80;

    /// Ruby's type.
    pub fn ruby_type(self) -> u8 {
        self.0 & Self::TYPE
    }

    /// Whether it is a class or a module.
    pub fn is_module(self) -> bool {
        matches!(self.ruby_type(), Self::CLASS | Self::MODULE)
    }

    /// Whether it is the singleton class of an object.
    pub fn is_singleton(self) -> bool {
        self.0 & Self::SINGLETON != 0
    }

    /// Whether it is a thread.
    pub fn is_thread(self) -> bool {
        self.0 & Self::THREAD != 0
    }

    /// Whether it is a fiber.
    pub fn is_fiber(self) -> bool {
        self.0 & Self::FIBER != 0
    }

    /// Whether only the VM sees it, whatever class it has.
    pub fn is_of_vm(self) -> bool {
        matches!(self.ruby_type(), Self::IMEMO | Self::NODE | Self::ICLASS)
    }
}
