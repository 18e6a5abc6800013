//! The names in a question: words, identifiers, paths and modules.

use std::collections::HashMap;

use crate::syntax::words;

/// Bytes of a question that are read. Issues with a whole log in them say what they are about at
/// their beginning.
const LONGEST: usize = 24 * 1024;
/// Most names of each kind that are looked up.
const MOST_NAMES: usize = 200;
/// File extensions; a word with another dot in it is a module or a member.
const FILE_ENDS: [&str; 25] = [
    "py", "pyi", "js", "jsx", "ts", "tsx", "java", "go", "rs", "c", "h", "cc", "cpp", "hpp", "rb", "md", "rst", "txt",
    "yaml", "yml", "toml", "json", "cfg", "ini", "sh",
];

/// The words and names in a question.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Question {
    /// How often each word stands in it, in the form in which it is searched for.
    pub(super) words: HashMap<String, usize>,
    /// The words of its first line, which says in short what it is about.
    pub(super) title: HashMap<String, usize>,
    /// Identifiers as they stand there.
    pub(super) identifiers: Vec<String>,
    /// Paths, or ends of paths, such as `src/a.py`.
    pub(super) paths: Vec<String>,
    /// Dotted names, such as `package.module.Class`, in their parts.
    pub(super) dotted: Vec<Vec<String>>,
}

impl Question {
    pub(super) fn read(text: &str) -> Self {
        let mut end = text.len().min(LONGEST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &text[..end];
        let title = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let mut question = Self {
            words: words::counted(text),
            title: words::counted(title),
            ..Self::default()
        };
        let identifiers = words::identifiers(text).into_iter().filter(|word| is_telling(word));
        question.identifiers = identifiers.take(MOST_NAMES).map(str::to_owned).collect();
        let is_part = |letter: char| letter.is_alphanumeric() || "_./\\-".contains(letter);
        for token in text.split(|letter| !is_part(letter)) {
            let token = token.trim_matches(['.', '-', '/', '\\']).replace('\\', "/");
            let end = token.rsplit_once('.').map_or("", |(_, end)| end);
            if FILE_ENDS.contains(&end) || token.matches('/').count() > 1 {
                if question.paths.len() < MOST_NAMES && !question.paths.contains(&token) {
                    question.paths.push(token);
                }
            } else if token.contains('.') && question.dotted.len() < MOST_NAMES {
                let parts: Vec<String> = token.split('.').map(str::to_owned).collect();
                if parts.iter().all(|part| !part.is_empty()) && !question.dotted.contains(&parts) {
                    question.dotted.push(parts);
                }
            }
        }
        question
    }
}

/// True for a word that names something if the repository defines it: `is` and `list` do not.
fn is_telling(word: &str) -> bool {
    let is_compound = word.contains('_') || word.chars().skip(1).any(char::is_uppercase);
    word.len() >= 3 && (is_compound || word.len() >= 4) && !word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::Question;

    #[test]
    fn paths_modules_and_names_are_found_in_prose_and_in_tracebacks() {
        let question = Question::read(
            "Crash in flask.cli.load_app\n\n  File \"/usr/lib/python3/site-packages/flask/cli.py\", line 4, in load_app\n\
             See `src/flask/app.py` and README.md.",
        );
        assert_eq!(
            question.paths,
            [
                "usr/lib/python3/site-packages/flask/cli.py",
                "src/flask/app.py",
                "README.md"
            ]
        );
        assert_eq!(
            question.dotted,
            [["flask", "cli", "load_app"].map(str::to_owned).to_vec()]
        );
        assert!(question.identifiers.contains(&"load_app".to_owned()));
        assert!(question.title.contains_key("load_app") && !question.title.contains_key("line"));
    }
}
