//! Recognizes fenced code blocks that every Markdown parser recognizes.
//!
//! Only fences at the very beginning of a line count. An indented one may belong to a list item,
//! which ends, with the block, at the first line that is not indented; going by the fences alone
//! would take for code what a page shows as text.

/// The fence characters that opened a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence<'text>(&'text str);

impl<'text> Fence<'text> {
    /// Returns the fence that `line` opens; call it only while no block is open.
    pub fn opened_by(line: &'text str) -> Option<Self> {
        let (mark, rest) = mark(line)?;
        // "``` a`b" is inline text, not a block.
        (mark.starts_with('~') || !rest.contains('`')).then_some(Self(mark))
    }

    /// Returns true if `line` closes the block.
    pub fn is_closed_by(self, line: &str) -> bool {
        let start = line.trim_start_matches(' ');
        let is_near = line.len() - start.len() < 4;
        is_near
            && mark(start)
                .is_some_and(|(mark, rest)| mark.starts_with(self.0) && rest.trim_matches([' ', '\t']).is_empty())
    }

    /// Returns the fence characters; a line of them closes the block.
    pub fn signs(self) -> &'text str {
        self.0
    }

    /// Returns the fence that is open at the end of `text`.
    pub fn open_at_the_end_of(text: &'text str) -> Option<Self> {
        text.lines().fold(None, |open: Option<Self>, line| match open {
            Some(fence) => (!fence.is_closed_by(line)).then_some(fence),
            None => Self::opened_by(line),
        })
    }
}

/// Splits a line into leading fence characters, if there are at least three, and the rest.
fn mark(line: &str) -> Option<(&str, &str)> {
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = line.trim_start_matches(sign);
    let mark = &line[..line.len() - rest.len()];
    (mark.len() >= 3).then_some((mark, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_open_until_its_own_signs_come_again() {
        for (text, expected) in [
            ("a", None),
            ("```sh\nls", Some("```")),
            ("````\n```\n~~~~", Some("````")),
            ("~~~ a`b\n~~~~ \t", None),
            ("```\n   ```", None),
            ("```\n    ```", Some("```")),
            ("```\n``` x", Some("```")),
            ("```\n```\u{a0}", Some("```")),
            ("```a`b", None),
            ("  ```", None),
            ("> ```", None),
        ] {
            assert_eq!(Fence::open_at_the_end_of(text).map(Fence::signs), expected, "{text:?}");
        }
    }
}
