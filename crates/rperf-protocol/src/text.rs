//! Texts of messages, cut to a length as they are read.

use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// The beginning of a text, of so many characters at most.
pub(crate) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// Reads a text, and cuts it off.
pub(crate) fn fit<'de, D: Deserializer<'de>, const MOST: usize>(
    deserializer: D,
) -> Result<String, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    Ok(cut(&text, MOST))
}
