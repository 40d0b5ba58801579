//! Patterns for paths of files, as Ruby's `File.fnmatch?` reads them with FNM_PATHNAME: `*`, `?` and
//! `[a-z]` within a name, `**/` for any number of directories. Used by `excluded`; any thread.

use std::path::Path;

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern(Vec<Part>);

/// A name in a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Any number of them, but for hidden ones.
    Directories,
    Name(Vec<Token>),
}

/// What stands for a piece of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Any,
    One,
    Character(char),
    /// A character in one of these ranges, or with `false` in none of them.
    Set(bool, Vec<(char, char)>),
}

impl PathPattern {
    /// `text` is below `directory` if it isn't absolute; with `/**` at the end it is all that is below.
    pub fn new(text: &str, directory: &Path) -> Self {
        let text = text.strip_prefix("./").unwrap_or(text);
        let mut parts = Vec::new();
        if !text.starts_with('/') {
            let directory = directory.to_string_lossy();
            let names = directory.split('/').filter(|name| !name.is_empty());
            let literal = |name: &str| Part::Name(name.chars().map(Token::Character).collect());
            parts.extend(names.map(literal));
        }
        let names = text.split('/').filter(|name| !name.is_empty());
        parts.extend(names.map(|name| match name {
            "**" => Part::Directories,
            _ => Part::Name(tokens(name)),
        }));
        if parts.last() == Some(&Part::Directories) {
            parts.push(Part::Name(vec![Token::Any]));
        }
        Self(parts)
    }

    /// Whether it is this absolute path.
    pub fn matches(&self, path: &str) -> bool {
        let Some(path) = path.strip_prefix('/') else {
            return false;
        };
        let names: Vec<&str> = path.split('/').collect();
        matches(
            &self.0,
            &names,
            |part| *part == Part::Directories,
            |name| !name.starts_with('.'),
            |part, name| match part {
                Part::Directories => false,
                Part::Name(tokens) => is_name(tokens, name),
            },
        )
    }
}

fn is_name(tokens: &[Token], name: &str) -> bool {
    // A dot at the begin has to be there.
    if name.starts_with('.') && tokens.first() != Some(&Token::Character('.')) {
        return false;
    }
    let characters: Vec<char> = name.chars().collect();
    matches(
        tokens,
        &characters,
        |token| *token == Token::Any,
        |_| true,
        |token, character| match token {
            Token::Any | Token::One => true,
            Token::Character(it) => it == character,
            Token::Set(wanted, ranges) => {
                let is_in = ranges
                    .iter()
                    .any(|(low, high)| (low..=high).contains(&character));
                is_in == *wanted
            }
        },
    )
}

/// Whether the pieces of a pattern are these `things`, one by one; but those that `takes_many` are any
/// number of things that it `may_take`. After a failure only the last of these takes one more, so this
/// ends soon whatever the pattern is.
fn matches<Piece, Thing>(
    pattern: &[Piece],
    things: &[Thing],
    takes_many: impl Fn(&Piece) -> bool,
    may_take: impl Fn(&Thing) -> bool,
    is: impl Fn(&Piece, &Thing) -> bool,
) -> bool {
    let (mut piece, mut thing) = (0, 0);
    let mut last: Option<(usize, usize)> = None;
    loop {
        if let Some(next) = pattern.get(piece) {
            if takes_many(next) {
                last = Some((piece, thing));
                piece += 1;
                continue;
            }
            if things.get(thing).is_some_and(|it| is(next, it)) {
                (piece, thing) = (piece + 1, thing + 1);
                continue;
            }
        } else if thing == things.len() {
            return true;
        }
        match last {
            Some((many, taken)) if things.get(taken).is_some_and(&may_take) => {
                last = Some((many, taken + 1));
                (piece, thing) = (many + 1, taken + 1);
            }
            _ => return false,
        }
    }
}

fn tokens(name: &str) -> Vec<Token> {
    let mut rest = name.chars();
    let mut tokens = Vec::new();
    while let Some(next) = rest.next() {
        let token = match next {
            '*' => Token::Any,
            '?' => Token::One,
            '\\' => Token::Character(rest.next().unwrap_or('\\')),
            '[' => match set(rest.as_str()) {
                Some((token, left)) => {
                    rest = left.chars();
                    token
                }
                None => Token::Character('['),
            },
            it => Token::Character(it),
        };
        tokens.push(token);
    }
    tokens
}

/// The set whose text begins behind a bracket, and what is left of the text.
fn set(text: &str) -> Option<(Token, &str)> {
    let (wanted, body) = match text.strip_prefix(['!', '^']) {
        Some(body) => (false, body),
        None => (true, text),
    };
    // A bracket at the begin belongs to the set.
    let first = body.chars().next()?.len_utf8();
    let end = first + body[first..].find(']')?;
    let characters: Vec<char> = body[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let is_range = characters.get(at + 1) == Some(&'-') && at + 2 < characters.len();
        let high = if is_range { at + 2 } else { at };
        ranges.push((characters[at], characters[high]));
        at = high + 1;
    }
    Some((Token::Set(wanted, ranges), &body[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_patterns_as_ruby_does() {
        let matches =
            |text: &str, path: &str| PathPattern::new(text, Path::new("/srv/a*b")).matches(path);
        for (text, path) in [
            ("app/**", "/srv/a*b/app/x.rb"),
            ("app/**", "/srv/a*b/app/models/deep/x.rb"),
            ("./app/*.rb", "/srv/a*b/app/x.rb"),
            ("order.rb", "/srv/a*b/order.rb"),
            ("**/cart.rb", "/srv/a*b/cart.rb"),
            ("**/models/**/c*t.rb", "/srv/a*b/x/models/models/y/cart.rb"),
            ("/lib/[a-c]x[!0-9].rb", "/lib/bxé.rb"),
            ("/lib/[]x].rb", "/lib/].rb"),
            ("/lib/[x.rb", "/lib/[x.rb"),
            (r"/lib/\*?.rb", "/lib/*y.rb"),
            ("/lib/.*/x.rb", "/lib/.git/x.rb"),
        ] {
            assert!(matches(text, path), "{text} {path}");
        }
        for (text, path) in [
            ("app/**", "/srv/aXb/app/x.rb"),
            ("app/**", "/srv/a*b/app"),
            ("app/**", "/srv/a*b/app/.hidden/x.rb"),
            ("app/*.rb", "/srv/a*b/app/deep/x.rb"),
            ("app/*.rb", "/srv/a*b/app/.rb"),
            ("/lib/[a-c].rb", "/lib/d.rb"),
            ("/lib/?.rb", "/lib/xy.rb"),
            ("/lib/x.rb", "lib/x.rb"),
            ("**/a", "<internal:kernel>"),
        ] {
            assert!(!matches(text, path), "{text} {path}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = PathPattern::new(&"**/*a".repeat(40), Path::new("/"));
        assert!(!pattern.matches(&"/aaaaaaaaaaaaaaaaaaaaaaaab".repeat(60)));
    }
}
