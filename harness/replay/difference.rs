//! A difference as git writes it, file by file: which content each file has before and after it.
//! Two differences with the same contents are the same, however they are written.

use std::collections::BTreeMap;

/// One file of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    /// Names of the contents before and after, as far as they were written out; all zeros where
    /// there is no file, and empty where the content stays.
    pub before: String,
    pub after: String,
    /// The lines that were taken out and put in, with their signs.
    pub lines: Vec<String>,
}

impl Changed {
    pub fn is_new(&self) -> bool {
        !self.before.is_empty() && self.before.bytes().all(|digit| digit == b'0')
    }

    /// Tells whether both lead to the same content.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let length = self.after.len().min(other.after.len());
        self.after[..length] == other.after[..length] && (length > 0 || self.lines == other.lines)
    }
}

/// Reads a difference, by path.
pub fn read(text: &str) -> BTreeMap<String, Changed> {
    let mut files = BTreeMap::new();
    let mut open: Option<(String, Changed)> = None;
    for line in text.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            files.extend(open.take());
            // Both names are the same unless it was renamed, and then the new one counts.
            let path = names.rsplit_once(" b/").map_or(names, |(_, path)| path);
            open = Some((path.trim_matches('"').to_owned(), Changed::default()));
        } else if let Some((_, changed)) = &mut open {
            if let Some((before, after)) = line.strip_prefix("index ").and_then(|ids| ids.split_once("..")) {
                before.clone_into(&mut changed.before);
                after
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .clone_into(&mut changed.after);
            } else if !line.starts_with("+++ ") && !line.starts_with("--- ") && line.starts_with(['+', '-']) {
                changed.lines.push(line.to_owned());
            }
        }
    }
    files.extend(open);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFFERENCE: &str = "diff --git a/x.py b/x.py\nindex 12ab..34cd 100644\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n\
                              diff --git a/new b/new\nnew file mode 100644\nindex 0000..99ff\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+c\n";

    #[test]
    fn contents_are_compared_by_their_names() {
        let read = read(DIFFERENCE);
        let (x, new) = (&read["x.py"], &read["new"]);
        assert_eq!(
            (x.before.as_str(), x.after.as_str(), x.is_new()),
            ("12ab", "34cd", false)
        );
        assert!(new.is_new());
        let longer = Changed {
            after: "34cdef".to_owned(),
            ..Changed::default()
        };
        assert!(x.agrees_with(&longer) && !new.agrees_with(&longer));
    }

    #[test]
    fn without_names_the_lines_count() {
        let one = Changed {
            lines: vec!["+a".to_owned()],
            ..Changed::default()
        };
        assert!(one.agrees_with(&one.clone()));
        assert!(!one.agrees_with(&Changed::default()));
    }
}
