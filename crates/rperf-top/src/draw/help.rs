//! The page that explains the keys.

use super::page::Page;
use ratatui::style::Style;

const KEYS: [&str; 11] = [
    "1 to 5, Tab       methods, tree, threads, labels, memory",
    "arrows, j k, PgUp PgDn, Home End       move the cursor",
    "t       last interval (per s), since attached, since mark",
    "m       mark: what comes from now on, by itself",
    "s       sort by the next column;  /  search;  Esc  all",
    "g       each program by itself, under its name",
    "p       stop the picture, not the profile; again: go on",
    "w       write a profile since attached, or since mark",
    "Enter   tree: open and close; labels: only this label",
    "i  *    tree: callers below callees; open the hot path",
    "q, Ctrl-C  quit;  Ctrl-Z  back to the shell for a while",
];

pub fn draw(page: &mut Page<'_>) {
    let bold = page.look.bold();
    page.line(0, &[(" Keys (any key goes back)".into(), bold)]);
    for (y, line) in (1..).zip(KEYS) {
        page.line(y, &[(format!(" {line}"), Style::new())]);
    }
}
