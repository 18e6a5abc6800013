//! The forms of names and labels in a cluster.

/// A key of the section for clusters, with what is wrong there.
pub(super) type Fault = (&'static str, String);

const LONGEST_LABEL: usize = 63;
const LONGEST_NAME: usize = 253;

/// Returns true if `text` is a label of DNS, such as the name of a namespace.
pub(super) fn is_label(text: &str) -> bool {
    text.len() <= LONGEST_LABEL && is_part(text)
}

/// Returns true if `text` can be the name of most objects: labels of DNS with dots between them,
/// none of which has a limit of its own.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let is_known = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    !text.is_empty() && text.chars().all(is_known) && !text.starts_with('-') && !text.ends_with('-')
}

/// Returns true if `text` can be the name of a label, with a domain before it or without one.
pub(super) fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_name(domain) && is_word(name),
        None => is_word(text),
    }
}

/// Returns true if `text` can be the value of a label.
pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_word(text)
}

fn is_word(text: &str) -> bool {
    let is_known = |character: char| character.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&character);
    let ends = |character: char| character.is_ascii_alphanumeric();
    text.len() <= LONGEST_LABEL && text.chars().all(is_known) && text.starts_with(ends) && text.ends_with(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_forms_of_a_cluster() {
        let long = "a".repeat(64);
        assert!(is_label("team-1") && !is_label("team.1") && !is_label(&long) && !is_label(""));
        assert!(is_name("node-1.example.com") && is_name(&long) && !is_name("a..b") && !is_name("A"));
        assert!(
            is_qualified("kubernetes.io/arch") && is_qualified("Pool_1") && !is_qualified("/a") && !is_qualified("a/")
        );
        assert!(is_label_value("") && is_label_value("one.Two") && !is_label_value("-a") && !is_label_value(&long));
    }
}
