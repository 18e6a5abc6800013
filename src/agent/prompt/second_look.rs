//! The message with which a model that says done looks at the task once more.

use std::fmt::Write as _;

use crate::evidence::demands::Demands;
use crate::evidence::difference::Touched;
use crate::plain::{counted, printable};

/// Returns what the task asks for, piece by piece, beside what was changed.
pub(crate) fn question(fence: &str, demands: &Demands, touched: &[Touched]) -> String {
    let mut text = format!(
        "No check fails. Before this is delivered, hold it against the task once more. The task says:\n<{fence}>\n"
    );
    for (number, piece) in demands.pieces.iter().enumerate() {
        let _ = writeln!(text, "{}. {piece}", number + 1);
    }
    let _ = writeln!(text, "</{fence}>\nWhat you changed:\n<{fence}>");
    text.push_str(&changed_files(touched));
    let _ = write!(
        text,
        "</{fence}>\nIf something that is asked for is missing, do it now. If nothing is missing, change nothing and say that it is done."
    );
    text
}

/// Returns the files of a change with their counts of lines, one per line; of many, only the first.
pub(crate) fn changed_files(touched: &[Touched]) -> String {
    const MOST: usize = 20;
    let mut text = String::new();
    for Touched { path, added, removed } in touched.iter().take(MOST) {
        let path = printable(path);
        let _ = writeln!(text, "{path} +{added} -{removed}");
    }
    if touched.len() > MOST {
        let _ = writeln!(text, "and {}", counted(touched.len() - MOST, "more file"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_task_stands_piece_by_piece_beside_what_was_changed() {
        let demands = Demands::of("Average\n\n`Average` in `a.go` is 1. For no numbers it should be 0.\n");
        let touched = |path: &str| Touched {
            path: path.to_owned(),
            added: 2,
            removed: 1,
        };
        insta::assert_snapshot!(question("data-1", &demands, &[touched("a.go"), touched("b\n.go")]), @"
        No check fails. Before this is delivered, hold it against the task once more. The task says:
        <data-1>
        1. `Average` in `a.go` is 1.
        2. For no numbers it should be 0.
        </data-1>
        What you changed:
        <data-1>
        a.go +2 -1
        b\u{fffd}.go +2 -1
        </data-1>
        If something that is asked for is missing, do it now. If nothing is missing, change nothing and say that it is done.
        ");
        let many: Vec<Touched> = (0..30).map(|number| touched(&number.to_string())).collect();
        assert!(question("data-1", &demands, &many).contains("\n19 +2 -1\nand 10 more files\n</data-1>"));
    }
}
