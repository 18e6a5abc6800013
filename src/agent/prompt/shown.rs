//! The files that a first message shows, read back from it: a conversation that goes on after a
//! restart has nothing else of them.

use crate::conversation::decode::files::{self, Shown};

/// Returns the files of a message with their texts, in either form of
/// [`FileFence`](super::file_block::FileFence). `tag` is the run's tag for text from outside; files
/// stand behind what people wrote, which may hold blocks of its own.
pub(crate) fn files(tag: &str, message: &str) -> Vec<Shown> {
    let (open, close) = (format!(":\n<{tag}>\n"), format!("\n</{tag}>"));
    let mut rest = message;
    let mut found = Vec::new();
    while let Some((before, behind)) = rest.split_once(&open) {
        let Some((text, behind)) = behind.split_once(&close) else {
            break;
        };
        let path = before.rsplit('\n').next().unwrap_or_default();
        // Other blocks have a sentence above them.
        if !path.is_empty() && !path.contains(' ') {
            found.push((path.to_owned(), format!("{text}\n")));
        }
        rest = behind;
    }
    found.extend(files::blocks_with_paths(rest));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_back_and_other_blocks_are_not() {
        let message = "The task is this issue, x#1:\n<d-1>\nc.py\n```\nno\n```\n</d-1>\n\nThe project's files:\n<d-1>\na.py\n</d-1>\n\na.py:\n<d-1>\nx = 1\n</d-1>\n\n\
                       sub/b.py\n````\ny\n```\nz\n````\n";
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        assert_eq!(
            files("d-1", message),
            [file("a.py", "x = 1\n"), file("sub/b.py", "y\n```\nz\n")]
        );
    }
}
