//! Methods as users name them: by class and name, as `Order#total`, `Cart.find` and `Cart#*`, or by
//! file, as `app/models/**`. Used by `form`; any thread.

/// Names at most.
const MOST: usize = 200;

/// The names in a text, which has commas between them.
pub fn split(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).collect()
}

/// Whether each of these can name methods.
pub fn are_valid(names: &[String]) -> bool {
    (1..=MOST).contains(&names.len()) && wrong(names).is_none()
}

/// The first of these that can't name methods.
pub fn wrong(names: &[String]) -> Option<&String> {
    names.iter().find(|name| !is_method(name) && !is_file(name))
}

/// A path, or a pattern for paths, without alternatives in braces.
fn is_file(name: &str) -> bool {
    let is_odd = |it: char| it.is_control() || ",{}".contains(it);
    (name.contains('/') || name.ends_with(".rb")) && !name.ends_with('/') && !name.contains(is_odd)
}

fn is_method(name: &str) -> bool {
    let is_odd = |it: char| it.is_whitespace() || it.is_control() || it == ',';
    parts(name).is_some_and(|(_, method)| !method.contains(is_odd))
}

/// The class of a method, with the `#` or `.` behind it, and the method's name; `None` if the text
/// isn't made of these.
pub fn parts(name: &str) -> Option<(&str, &str)> {
    let place = name.find(['#', '.'])?;
    let (class, method) = name.split_at(place + 1);
    let is_class = class[..place].split("::").all(is_constant);
    (is_class && !method.is_empty()).then_some((class, method))
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
    fn a_name_has_a_class_and_a_method_or_is_a_file() {
        for text in [
            "Order#total",
            "Shop::Cart.find",
            "A#[]=",
            "Ä::B2#<=>",
            "A.*",
            "A#a?, B.b!",
            "Float#..",
            "Integer#/",
            "app/**",
            "order.rb",
            "/srv/my shop/lib/[a-c]*.rb",
            "./lib/a#b.rb, Order#total",
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
            "app/",
            "app/{a,b}.rb",
            "app/{a}.rb",
            "a/b\0",
            "app",
        ] {
            assert!(!are_valid(&split(text)), "{text}");
        }
        assert!(!are_valid(&vec!["A#b".into(); MOST + 1]));
    }
}
