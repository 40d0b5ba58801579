//! Names of methods as users write them: `Order#total`, `Cart.find`, `Cart#*`. Used by `form`; any
//! thread.

/// Names at most: each has its own hook.
const MOST: usize = 200;

/// The names in a text, which has commas between them.
pub fn split(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).collect()
}

/// Whether these can be names of methods, each one of a class or module.
pub fn are_valid(names: &[String]) -> bool {
    (1..=MOST).contains(&names.len()) && names.iter().all(|name| is_valid(name))
}

fn is_valid(name: &str) -> bool {
    let Some(place) = name.find(['#', '.']) else {
        return false;
    };
    let method = &name[place + 1..];
    let is_odd = |it: char| it.is_whitespace() || it.is_control() || it == ',';
    !method.is_empty() && !method.contains(is_odd) && name[..place].split("::").all(is_constant)
}

fn is_constant(name: &str) -> bool {
    let mut characters = name.chars();
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    characters.next().is_some_and(char::is_uppercase) && characters.all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_class_and_a_method() {
        for text in [
            "Order#total",
            "Shop::Cart.find",
            "A#[]=",
            "Ä::B2#<=>",
            "A.*",
            "A#a?, B.b!",
            "Float#..",
        ] {
            assert!(are_valid(&split(text)), "{text}");
        }
        for text in [
            "",
            "total",
            "order#total",
            "Order#",
            "Order",
            "#total",
            "::A#b",
            "A::#b",
            "A#b,",
            "A#b c",
            "A B#c",
            "A#b\0",
            "A::b#c",
        ] {
            assert!(!are_valid(&split(text)), "{text}");
        }
        assert!(!are_valid(&vec!["A#b".into(); MOST + 1]));
    }
}
