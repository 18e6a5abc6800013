//! The lines of tests at which checks failed, as they stand in the message about the checks.

use crate::agent::prompt::file_block::FileFence;
use crate::evidence::test_lines::TestLines;

/// Returns the blocks with the lines; empty if there are none.
pub(crate) fn blocks(fence: &FileFence, shown: &[TestLines]) -> String {
    let blocks: String = shown
        .iter()
        .map(|lines| {
            let TestLines {
                place,
                first,
                last,
                text,
            } = lines;
            let which = if place.line == *first {
                "where the test that failed begins".to_owned()
            } else {
                format!("of which line {} failed", place.line)
            };
            let heading = format!("{}, lines {first} to {last}, {which}", place.path);
            fence.block(&heading, text)
        })
        .collect();
    if blocks.is_empty() {
        return blocks;
    }
    format!("\nWhat the tests expect there:\n{blocks}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::decode::files;
    use crate::evidence::test_lines::TestPlace;

    #[test]
    fn the_lines_stand_in_blocks_that_name_no_file_to_be_written() {
        let lines = TestLines {
            place: TestPlace {
                path: "tests/test_a.py".to_owned(),
                line: 9,
            },
            first: 8,
            last: 9,
            text: "def test_a():\n    assert add(1, 2) == 3".to_owned(),
        };
        let tag = FileFence::Tag("data-1".to_owned());
        insta::assert_snapshot!(blocks(&tag, std::slice::from_ref(&lines)), @r"

        What the tests expect there:

        tests/test_a.py, lines 8 to 9, of which line 9 failed:
        <data-1>
        def test_a():
            assert add(1, 2) == 3
        </data-1>
        ");
        let whole = blocks(&FileFence::Backticks, std::slice::from_ref(&lines));
        assert!(
            whole.ends_with("of which line 9 failed\n```\ndef test_a():\n    assert add(1, 2) == 3\n```\n"),
            "{whole}"
        );
        let begun = TestLines { first: 9, ..lines };
        assert!(blocks(&tag, &[begun]).contains(", lines 9 to 9, where the test that failed begins:\n"));
        assert_eq!(blocks(&tag, &[]), "");
        // A model that repeats it writes no file with that.
        assert_eq!(files::blocks_with_paths(&whole), []);
    }
}
