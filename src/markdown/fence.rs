//! Blocks of code in Markdown that every reader of Markdown takes for blocks of code.
//!
//! Only fences at the very beginning of a line count. One that is indented may belong to an item of
//! a list, which ends, with the block, at the first line that is not; whoever goes by the fences
//! alone then takes for code what a page shows as text.

/// The signs that opened a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence<'text>(&'text str);

impl<'text> Fence<'text> {
    /// Returns the fence that `line` opens, where no block is open.
    pub fn opened_by(line: &'text str) -> Option<Self> {
        let (mark, rest) = mark(line)?;
        // "``` a`b" is a code span that goes wrong, and no block.
        (mark.starts_with('~') || !rest.contains('`')).then_some(Self(mark))
    }

    /// Tells whether `line` closes the block.
    pub fn is_closed_by(self, line: &str) -> bool {
        let start = line.trim_start_matches(' ');
        let is_near = line.len() - start.len() < 4;
        is_near
            && mark(start)
                .is_some_and(|(mark, rest)| mark.starts_with(self.0) && rest.trim_matches([' ', '\t']).is_empty())
    }

    /// Returns the signs; a line of them closes the block.
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

/// Returns the signs that a line begins with, if they can open or close a block, and what follows
/// them.
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
