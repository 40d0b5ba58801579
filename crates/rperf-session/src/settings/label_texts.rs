//! Labels as text: `KEY=VALUE`, with commas between several. A backslash takes the meaning from the
//! character that follows. Used by `form`; any thread.

use std::collections::BTreeMap;

/// The pairs in a text; `None` if one has no `=`.
pub fn read(text: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = vec![(String::new(), None)];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let (key, value) = pairs.last_mut()?;
        match (character, value) {
            (',', _) => pairs.push((String::new(), None)),
            ('=', value @ None) => *value = Some(String::new()),
            ('\\', value) => value.as_mut().unwrap_or(key).push(characters.next()?),
            (other, value) => value.as_mut().unwrap_or(key).push(other),
        }
    }
    let pairs = pairs.into_iter().map(|(key, value)| Some((key, value?)));
    pairs.collect()
}

/// The labels as text.
pub fn written(labels: &BTreeMap<String, String>) -> String {
    let escaped = |text: &str, special: &[char]| {
        let mut escaped = String::new();
        for character in text.chars() {
            if special.contains(&character) {
                escaped.push('\\');
            }
            escaped.push(character);
        }
        escaped
    };
    let pairs = labels.iter().map(|(key, value)| {
        let (key, value) = (
            escaped(key, &['\\', ',', '=']),
            escaped(value, &['\\', ',']),
        );
        format!("{key}={value}")
    });
    pairs.collect::<Vec<_>>().join(",")
}
