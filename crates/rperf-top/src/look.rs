//! How things look on this terminal: with colours or without, with other characters than ASCII or
//! without. Nothing is told by colour alone.

use ratatui::style::{Color, Modifier, Style};

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Colours are wanted.
    pub colour: bool,
    /// Whether the terminal shows Unicode.
    pub unicode: bool,
}

impl Look {
    /// What the environment says.
    pub fn of_environment() -> Self {
        let value = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
        let names = ["LC_ALL", "LC_CTYPE", "LANG"];
        let locale = names.into_iter().find_map(value).unwrap_or_default();
        let locale = locale.to_lowercase();
        Look {
            colour: value("NO_COLOR").is_none(),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    fn coloured(self, colour: Color) -> Style {
        match self.colour {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    /// Headings.
    pub fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What matters less.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The line of the cursor, and what is chosen.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style of something with this part of the time.
    pub fn of_share(self, share: f64) -> Style {
        match share {
            share if share >= 0.2 => self.coloured(Color::Red).add_modifier(Modifier::BOLD),
            share if share >= 0.05 => self.coloured(Color::Yellow),
            _ => Style::new(),
        }
    }

    /// Values from 0 to `most` as a line of bars.
    pub fn bars(self, values: impl Iterator<Item = f64>, most: f64) -> String {
        const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const PLAIN: [char; 8] = ['_', '.', '.', ':', ':', '-', '=', '#'];
        let bars = if self.unicode { BLOCKS } else { PLAIN };
        let place = |value: f64| {
            let part = if most > 0.0 { value / most } else { 0.0 };
            ((part * 8.0) as usize).min(7)
        };
        values.map(|value| bars[place(value)]).collect()
    }

    /// What stands for text that has no room.
    pub fn ellipsis(self) -> &'static str {
        if self.unicode { "…" } else { "~" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_ascii_where_there_is_nothing_else() {
        let values = || [0.0, 0.5, 1.0, 2.0].into_iter();
        let look = |unicode| Look {
            colour: false,
            unicode,
        };
        assert_eq!(look(true).bars(values(), 1.0), "▁▅██");
        assert_eq!(look(false).bars(values(), 1.0), "_:##");
        assert_eq!(look(false).bars(values(), 0.0), "____");
    }

    #[test]
    fn without_colours_there_are_none() {
        let look = Look {
            colour: false,
            unicode: true,
        };
        for share in [0.0, 0.1, 0.9] {
            assert_eq!(look.of_share(share).fg, None);
        }
    }
}
