//! Plain texts on one line: paths, and words of any origin.

/// Returns `text` with `�` in the place of each control character, so that a path takes one line.
pub fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Returns the words of `text` on one line, with single spaces between them.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_a_text_take_one_line() {
        assert_eq!(printable("a\n/b c\u{1b}.rs"), "a\u{fffd}/b c\u{fffd}.rs");
        assert_eq!(one_line(" two\n\n\twords "), "two words");
    }
}
