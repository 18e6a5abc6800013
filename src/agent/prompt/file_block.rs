//! How a file is shown to the model: its path, and its text between two lines that mark its ends.

use crate::conversation::decode::paths;
use crate::llm::config::Edits;
use crate::plain::printable;

/// The lines around the text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileFence {
    /// The tag that encloses text from outside.
    Tag(String),
    /// Backticks, more than there are in a row in the text: a model that replies with whole files
    /// writes them as it has read them.
    Backticks,
}

impl FileFence {
    /// Returns the lines for a model that changes files in the form `edits`. `tag` is the run's tag
    /// for text from outside.
    pub(crate) fn of(edits: Edits, tag: &str) -> Self {
        match edits {
            Edits::Whole => Self::Backticks,
            Edits::Auto | Edits::Exact => Self::Tag(tag.to_owned()),
        }
    }

    /// Returns a file as it stands in a message.
    pub(crate) fn block(&self, path: &str, text: &str) -> String {
        let (path, text) = (printable(path), text.trim_end());
        let heading = paths::heading(&path);
        match self {
            Self::Tag(tag) => format!("\n{heading}:\n<{tag}>\n{text}\n</{tag}>\n"),
            Self::Backticks => {
                let fence = "`".repeat(longest_run(text).max(2) + 1);
                format!("\n{heading}\n{fence}\n{text}\n{fence}\n")
            }
        }
    }
}

/// Returns the largest number of backticks in a row.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|letter| letter != '`');
    runs.map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_own_block() {
        let tag = FileFence::of(Edits::Auto, "data-1");
        assert_eq!(tag.block("a\n.py", "x\n"), "\na\u{fffd}.py:\n<data-1>\nx\n</data-1>\n");
        let backticks = FileFence::of(Edits::Whole, "data-1");
        assert_eq!(backticks.block("a.py", "x\n"), "\na.py\n```\nx\n```\n");
        assert_eq!(backticks.block("a.md", "````\nx"), "\na.md\n`````\n````\nx\n`````\n");
    }
}
