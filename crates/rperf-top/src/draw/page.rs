//! What is drawn on: lines of text that have room.

use crate::look::Look;
use crate::text::fitted;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

/// What is drawn on.
pub struct Page<'a> {
    /// How things look.
    pub look: Look,
    /// What has been drawn.
    pub buffer: &'a mut Buffer,
}

impl Page<'_> {
    /// Columns.
    pub fn width(&self) -> usize {
        self.buffer.area.width.into()
    }

    /// Texts one behind the other, as far as there is room.
    pub fn line(&mut self, y: u16, parts: &[(String, Style)]) {
        let mut used = 0;
        for (text, style) in parts {
            let text = fitted(text, self.width().saturating_sub(used), self.look);
            self.put(used, y, &text, *style);
            used += text.width();
        }
    }

    /// Text that has room.
    pub fn put(&mut self, x: usize, y: u16, text: &str, style: Style) {
        if x < self.width() && y < self.buffer.area.height {
            let room = self.width() - x;
            self.buffer.set_stringn(x as u16, y, text, room, style);
        }
    }

    /// Gives a line a style.
    pub fn style(&mut self, y: u16, style: Style) {
        let width = self.buffer.area.width;
        self.buffer.set_style(Rect::new(0, y, width, 1), style);
    }
}
