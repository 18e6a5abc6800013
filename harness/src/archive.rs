//! Several files in one text, in the form that Go calls txtar: a line `-- path --` before each, and
//! words of any kind before the first. A folder of small files would be the same and take ten times
//! as many entries.

/// The content of a text in this form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The text before the first file.
    pub head: String,
    /// The path and the content of each file, in the order of the text.
    pub files: Vec<(String, String)>,
}

impl Archive {
    pub fn read(text: &str) -> Self {
        let mut head = String::new();
        let mut files: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            let path = line
                .trim_end()
                .strip_prefix("-- ")
                .and_then(|rest| rest.strip_suffix(" --"));
            match (path, files.last_mut()) {
                (Some(path), _) => files.push((path.to_owned(), String::new())),
                (None, Some((_, content))) => content.push_str(line),
                (None, None) => head.push_str(line),
            }
        }
        Self { head, files }
    }

    /// Returns the files of a folder, with their paths in it.
    pub fn folder(&self, name: &str) -> Vec<(&str, &str)> {
        let inside = |path: &'_ str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        let files = self.files.iter().filter(|(path, _)| inside(path));
        files
            .map(|(path, content)| (&path[name.len() + 1..], content.as_str()))
            .collect()
    }

    pub fn file(&self, path: &str) -> Option<&str> {
        let found = self.files.iter().find(|(own, _)| own == path);
        found.map(|(_, content)| content.as_str())
    }

    /// Returns what the head says behind `key:`.
    pub fn said(&self, key: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(own, _)| own.trim() == key).map(|(_, value)| value.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn files_come_out_as_they_went_in() {
        let archive =
            Archive::read("grade: 1\n-- issue.md --\n# Title\n\n-- no path\n-- a/b.py --\nx = 1\n-- a/c --\n");
        assert_eq!(archive.said("grade"), Some("1"));
        assert_eq!(archive.said("test"), None);
        assert_eq!(archive.file("issue.md"), Some("# Title\n\n-- no path\n"));
        assert_eq!(archive.folder("a"), [("b.py", "x = 1\n"), ("c", "")]);
        assert_eq!(archive.folder("issue"), []);
    }
}
