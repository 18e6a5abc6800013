//! Prompts with places of a project: a map of what most files refer to and the best places for the
//! task, for the planner; the places that a plan rests on, for the worker.

use std::fmt::Write as _;

use crate::agent::prompt::file_block::FileFence;
use crate::index::{Definition, Hit};
use crate::plain::{counted, one_line, printable};
use crate::plan::evidence::Citation;
use crate::workspace::tools::code_search;

/// Lines of a place that are shown.
const LINES: usize = 3;

/// Returns the block with the map of the project and the best places, in at most about `max_bytes`;
/// empty if there is neither.
pub(crate) fn block(fence: &str, map: &[(Definition, usize)], hits: &[Hit], max_bytes: usize) -> String {
    let mut text = String::new();
    let lines = map.iter().map(|(found, files)| {
        let place = format!("{}:{}-{}", printable(&found.path), found.first, found.last);
        format!("{place} {} {} ({})\n", found.kind, found.name, counted(*files, "file"))
    });
    let shown = fitting(lines, max_bytes / 4);
    if !shown.is_empty() {
        let _ = write!(
            text,
            "\nWhat most files of the project use:\n<{fence}>\n{shown}</{fence}>\n"
        );
    }
    let shown = fitting(
        hits.iter().map(|hit| code_search::shown(hit, LINES)),
        max_bytes - max_bytes / 4,
    );
    if !shown.is_empty() {
        let _ = write!(
            text,
            "\nThe places that fit the words of the task best, best first. They are a beginning, and may be wrong:\n\
             <{fence}>\n{shown}</{fence}>\n"
        );
    }
    text
}

/// Returns the block with the lines that the plan cites, in at most about `max_bytes`.
pub(crate) fn cited(fence: &str, places: &[(Citation, String)], max_bytes: usize) -> String {
    let blocks = places.iter().map(|(citation, lines)| {
        let why = match citation.why.trim() {
            "" => String::new(),
            why => format!(" ({})", one_line(why)),
        };
        let lines = lines.trim_end();
        format!(
            "\n{}{why}:\n<{fence}>\n{lines}\n</{fence}>\n",
            printable(&citation.place())
        )
    });
    let shown = fitting(blocks, max_bytes);
    if shown.is_empty() {
        return shown;
    }
    format!("\nThe places that the plan rests on, as they are before the work:\n{shown}")
}

/// Returns the block with whole files of a small project.
pub(crate) fn files(fence: &FileFence, files: &[(String, String)]) -> String {
    let text: String = files.iter().map(|(path, content)| fence.block(path, content)).collect();
    if text.is_empty() {
        return text;
    }
    format!("\nThe files of the project, as they are before the work:\n{text}")
}

/// Returns the message to a planner whose evidence does not hold; it is sent once.
pub(crate) fn doubtful(faults: &[String]) -> String {
    format!(
        "The program looked at the evidence of your plan in the repository, and this does not hold:\n- {}\nLook again where you are \
         not sure, and reply with the whole plan, its evidence corrected: path, lines and what stands there. Leave out what you cannot \
         find.",
        faults.join("\n- ")
    )
}

fn fitting(blocks: impl Iterator<Item = String>, max_bytes: usize) -> String {
    let mut shown = String::new();
    for block in blocks {
        if shown.len() + block.len() > max_bytes {
            break;
        }
        shown.push_str(&block);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_within_their_share_and_paths_hold_no_line_breaks() {
        let hit = |path: &str| Hit {
            path: path.to_owned(),
            span: "L1-L3".to_owned(),
            first: 1,
            last: 3,
            name: "A.f".to_owned(),
            kind: "method".to_owned(),
            score: 1.0,
            text: "def f():\n\n    pass\n".to_owned(),
        };
        let text = block("data-1", &[], &[hit("a\n.py"), hit("b.py")], 70);
        assert!(
            text.contains("<data-1>\na\u{fffd}.py:1-3 method A.f\n    def f():\n"),
            "{text}"
        );
        assert!(!text.contains("b.py"), "{text}");
        assert_eq!(block("data-1", &[], &[], 1_000), "");
    }
}
