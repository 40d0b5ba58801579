//! Sizes and colours of a call graph: a function's share of all shows before its numbers are read.
//! Used by `dot`; any thread.

/// The colour of all text.
pub(super) const TEXT: &str = "#1a1a1a";
/// The colour of the frame around a class or thread.
pub(super) const CLUSTER: &str = "#8a8a8a";

type Rgb = [u8; 3];

const NOTHING: Rgb = [255, 255, 255];
/// The fill of a function that has all for itself. Text on it has a contrast of more than 4.5.
const HOT: Rgb = [242, 101, 80];
const THIN: Rgb = [160, 160, 160];
const THICK: Rgb = [122, 28, 20];

/// How values look that are shares of `whole`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) whole: i64,
}

impl Look {
    /// By the root of the share, since text grows in two directions.
    pub(super) fn font_size(self, self_value: i64) -> String {
        format!("{:.1}", 10.0 + 18.0 * self.share(self_value).sqrt())
    }

    pub(super) fn fill(self, self_value: i64) -> String {
        colour(NOTHING, HOT, self.share(self_value).sqrt())
    }

    pub(super) fn border(self, total_value: i64) -> String {
        colour(THIN, THICK, self.share(total_value))
    }

    pub(super) fn border_width(self, total_value: i64) -> String {
        format!("{:.1}", 0.7 + 3.3 * self.share(total_value))
    }

    pub(super) fn edge(self, value: i64) -> String {
        colour(THIN, THICK, self.share(value).sqrt())
    }

    pub(super) fn edge_width(self, value: i64) -> String {
        format!("{:.1}", self.width(value))
    }

    /// Spaces between the middle of an edge and its text.
    pub(super) fn edge_gap(self, value: i64) -> usize {
        1 + (self.width(value) / 3.0).round() as usize
    }

    fn width(self, value: i64) -> f64 {
        0.6 + 5.4 * self.share(value).sqrt()
    }

    /// How hard Graphviz tries to keep an edge short and straight.
    pub(super) fn weight(self, value: i64) -> u32 {
        1 + (100.0 * self.share(value)) as u32
    }

    /// From 0 to 1, whatever the sign.
    fn share(self, value: i64) -> f64 {
        match self.whole.unsigned_abs() {
            0 => 0.0,
            whole => (value.unsigned_abs() as f64 / whole as f64).min(1.0),
        }
    }
}

fn colour(from: Rgb, to: Rgb, share: f64) -> String {
    let [red, green, blue] = mixed(from, to, share);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn mixed(from: Rgb, to: Rgb, share: f64) -> Rgb {
    std::array::from_fn(|part| {
        let (from, to) = (f64::from(from[part]), f64::from(to[part]));
        (from + (to - from) * share).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The luminance of a colour, as WCAG calculates it.
    fn luminance(colour: Rgb) -> f64 {
        let part = |value: u8| match f64::from(value) / 255.0 {
            part if part <= 0.04045 => part / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        };
        let [red, green, blue] = colour.map(part);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn text_can_be_read_on_every_fill() {
        for step in 0..=100 {
            let fill = mixed(NOTHING, HOT, f64::from(step) / 100.0);
            let contrast = (luminance(fill) + 0.05) / (luminance([0x1a; 3]) + 0.05);
            assert!(contrast >= 4.5, "{fill:?}: {contrast}");
        }
    }

    #[test]
    fn all_grows_with_the_share_and_stays_in_its_bounds() {
        let look = Look { whole: -100 };
        assert_eq!(look.fill(0), "#ffffff");
        assert_eq!(
            (look.fill(100), look.fill(i64::MIN)),
            ("#f26550".into(), "#f26550".into())
        );
        assert_eq!(look.font_size(0), "10.0");
        assert_eq!(look.font_size(-25), "19.0");
        assert_eq!(
            (look.edge_width(100), look.border_width(0)),
            ("6.0".into(), "0.7".into())
        );
        assert_eq!((look.edge_gap(0), look.edge_gap(100)), (1, 3));
        assert_eq!((look.weight(0), look.weight(1000)), (1, 101));
        assert_eq!(Look { whole: 0 }.fill(5), "#ffffff");
    }
}
