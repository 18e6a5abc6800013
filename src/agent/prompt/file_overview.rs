//! An overview of the project's files: all files of a small project, otherwise the upper folders
//! with the number of files in each.

use std::fmt::Write as _;

use crate::plain::{counted, printable};

/// Depth from which files are only counted, in projects of any size.
const DEEPEST: usize = 12;

/// Returns an overview of `paths`, which are in tree order, in at most about `max_bytes`.
pub(crate) fn overview(paths: &[String], max_bytes: usize) -> String {
    let depth_of = |path: &String| path.matches('/').count() + 1;
    let deepest = paths.iter().map(depth_of).max().unwrap_or(1).min(DEEPEST);
    let all: usize = paths.iter().map(|path| path.len() + 1).sum();
    let mut lines = if all <= max_bytes && deepest < DEEPEST {
        paths.iter().map(|path| printable(path)).collect()
    } else {
        Vec::new()
    };
    let mut depth = deepest;
    while lines.is_empty() && !paths.is_empty() {
        depth -= 1;
        let shorter = to_depth(paths, depth.max(1));
        let length: usize = shorter.iter().map(|line| line.len() + 1).sum();
        if length <= max_bytes || depth <= 1 {
            lines = shorter;
        }
    }
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        if text.len() + line.len() > max_bytes {
            let _ = writeln!(text, "[... {} more ...]", lines.len() - place);
            break;
        }
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Returns the overview in a data block, since file names are text from outside as well.
pub(crate) fn block(fence: &str, overview: &str) -> String {
    if overview.is_empty() {
        return String::new();
    }
    format!("\nThe project's files:\n<{fence}>\n{overview}</{fence}>\n")
}

/// Returns one line for each file down to `depth`, and one for each folder with deeper files.
fn to_depth(paths: &[String], depth: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut folder: Option<(&str, usize)> = None;
    for path in paths {
        let end = path.match_indices('/').nth(depth - 1).map(|(end, _)| end);
        let inside = end.map(|end| &path[..=end]);
        match (&mut folder, inside) {
            (Some((name, count)), Some(inside)) if *name == inside => *count += 1,
            (open, inside) => {
                lines.extend(open.take().map(folder_line));
                match inside {
                    Some(inside) => *open = Some((inside, 1)),
                    None => lines.push(printable(path)),
                }
            }
        }
    }
    lines.extend(folder.map(folder_line));
    lines
}

fn folder_line((folder, count): (&str, usize)) -> String {
    format!("{} ({})", printable(folder), counted(count, "file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paths(list: &[&str]) -> Vec<String> {
        list.iter().map(|&path| path.to_owned()).collect()
    }

    #[test]
    fn few_files_are_all_shown() {
        let few = paths(&["README.md", "src/a.rs", "src/deep/b\n.rs"]);
        assert_eq!(overview(&few, 1_000), "README.md\nsrc/a.rs\nsrc/deep/b\u{fffd}.rs\n");
        assert_eq!(overview(&[], 1_000), "");
    }

    #[test]
    fn of_many_the_folders_are_counted() {
        let mut many = paths(&["README.md", "docs/guide.md"]);
        many.extend((0..100).map(|number| format!("src/deep/down/file-{number}.rs")));
        many.push("src/main.rs".to_owned());
        assert_eq!(
            overview(&many, 100),
            "README.md\ndocs/guide.md\nsrc/deep/down/ (100 files)\nsrc/main.rs\n"
        );
        assert_eq!(
            overview(&many, 60),
            "README.md\ndocs/guide.md\nsrc/deep/ (100 files)\nsrc/main.rs\n"
        );
        assert_eq!(overview(&many, 50), "README.md\ndocs/ (1 file)\nsrc/ (101 files)\n");
        assert_eq!(overview(&many, 25), "README.md\ndocs/ (1 file)\n[... 1 more ...]\n");
    }

    proptest! {
        #[test]
        fn no_project_makes_it_too_long(list in proptest::collection::vec("([a-c]{1,3}/){0,14}[a-z]{1,9}", 0..80), most in 0_usize..300) {
            let mut list = list;
            list.sort();
            let text = overview(&list, most);
            prop_assert!(text.len() <= most + 40, "{} bytes of {most}", text.len());
        }
    }
}
