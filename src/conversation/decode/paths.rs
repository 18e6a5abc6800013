//! Reads the path of a file in what a model writes about its text: in the line above it, behind its
//! fence, or on its first line.
//!
//! Many write the path as the first line, and code begins with lines that have words like paths: an
//! import, the name of a package. Such a line counts only if it is a comment, or says nothing else.

/// Most words of a line that announces a file.
const LONGEST_ANNOUNCEMENT: usize = 8;
/// Words that announce a path.
const LABELS: [&str; 3] = ["file", "filename", "path"];
/// Signs around a path that stands alone on a line, besides white space.
const DECORATION: &str = "`*#/:\"'<>~-=";
/// Signs that comments and rules begin with; brackets, `@` and `$` begin code.
const MARKS: &str = "#/*-%;\"'!<>=~`_";
/// Signs behind the first word of a line of code.
const BEHIND_NAMES: &str = "{:?,.[!;&|+\"'";

/// Returns the path that a line such as `**src/a.py**:` or `# src/a.py` names, if it names one
/// alone. A longer sentence is about a file and does not announce it.
pub(super) fn of_line(line: &str) -> Option<String> {
    let words = line.split_whitespace().count();
    let mut paths = line.split_whitespace().filter_map(of_word);
    let path = paths.next()?;
    (words <= LONGEST_ANNOUNCEMENT && paths.all(|other| other == path)).then_some(path)
}

/// Returns the path that the first line of a text names, if it is no line of the text itself.
pub(super) fn of_first_line(line: &str) -> Option<String> {
    let line = line.trim();
    let path = of_line(line)?;
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    let names_it = if is_label(first) {
        // With `=` it sets a variable of that name.
        !rest.starts_with('=')
    } else if of_word(first).is_some() {
        is_alone(first, rest, &path)
    } else if first.chars().any(char::is_alphanumeric) {
        is_said(line, &path)
    } else {
        first.chars().any(|sign| MARKS.contains(sign) || !sign.is_ascii())
    };
    names_it.then_some(path)
}

/// Returns the path in a word such as `` `src/a.py`: ``: a name with an extension, or one below a
/// folder.
pub(super) fn of_word(word: &str) -> Option<String> {
    let word = word.rsplit_once('=').map_or(word, |(_, value)| value);
    let word = word.trim_matches(is_edge).trim_end_matches('.');
    let name = name_of(word);
    let is_path =
        word.chars().all(is_written_so) && (has_extension(name) || name == "Makefile" || name == "Dockerfile");
    let is_sentence = word.contains("..") || word.contains("//");
    (is_path && !is_sentence).then(|| word.trim_start_matches("./").to_owned())
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, end)| {
        let is_ending = !end.is_empty() && end.len() <= 10 && end.chars().all(char::is_alphanumeric);
        is_ending && !stem.is_empty() && end.chars().any(char::is_alphabetic)
    })
}

fn is_edge(letter: char) -> bool {
    !letter.is_alphanumeric() && !"_.".contains(letter)
}

fn is_written_so(letter: char) -> bool {
    letter.is_alphanumeric() || "_-./+@".contains(letter)
}

/// Tells whether a word is one such as `File:` or `file=src/a.py`.
fn is_label(word: &str) -> bool {
    let key = word.split('=').next().unwrap_or_default();
    let key = key.trim_matches(|letter: char| !letter.is_alphanumeric());
    LABELS.contains(&key.to_lowercase().as_str())
}

/// Tells whether a line that begins with `path`, in its word `first`, is no code. What is below a
/// folder is seldom code; `module.exports = {` looks like a file with a strange extension.
fn is_alone(first: &str, rest: &str, path: &str) -> bool {
    if first.starts_with("#!") || first.contains('=') || first.ends_with(';') {
        return false;
    }
    let bare = first.trim_matches(|sign: char| DECORATION.contains(sign));
    let is_bare = bare.trim_start_matches("./") == path;
    let is_code = rest.contains('=') || rest.starts_with(|sign: char| BEHIND_NAMES.contains(sign));
    path.contains('/') || (is_bare && !is_code)
}

/// Tells whether a line that begins with another word is a sentence, such as `Here is src/a.py:`.
fn is_said(line: &str, path: &str) -> bool {
    if line.contains([';', '=', '"', '\'', '(']) {
        return false;
    }
    let mut letters = line.chars().skip_while(|letter| !letter.is_alphanumeric());
    let is_begun = letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase);
    let introduces = line.trim_end_matches(['*', '_', '`']).ends_with(':');
    let signs = [is_begun, introduces, path.contains('/')];
    line.split_whitespace().any(is_label) || signs.into_iter().filter(|is_there| *is_there).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_that_says_nothing_else_names_the_file() {
        for line in [
            "# src/a.py",
            "#src/a.py",
            "// ./src/a.py",
            "/* src/a.py */",
            "<!-- src/a.py -->",
            "{/* src/a.py */}",
            "\"\"\"src/a.py\"\"\"",
            "-- File: src/a.py",
            "src/a.py",
            "**`src/a.py`**:",
            "📄 src/a.py",
            "=== src/a.py ===",
            "src/a.py (updated)",
            "File: src/a.py",
            "file=src/a.py",
            "Updated file: src/a.py",
            "Here is src/a.py:",
        ] {
            assert_eq!(of_first_line(line).as_deref(), Some("src/a.py"), "{line}");
        }
        for line in ["a.py", "./a.py", "`a.py`:", "a.py (updated)", "Here is a.py:"] {
            assert_eq!(of_first_line(line).as_deref(), Some("a.py"), "{line}");
        }
    }

    #[test]
    fn a_first_line_of_code_names_no_file() {
        for line in [
            "package com.example.app;",
            "package com.example.app",
            "import a.B;",
            "import a.B",
            "from django.db import models",
            "import './globals.css'",
            "@import './globals.css';",
            "#include \"a.h\"",
            "#include <a.h>",
            "#!/usr/bin/run.sh",
            "using System.Text;",
            "use std.debug",
            "module.exports = {",
            "unittest.main()",
            "app.run();",
            "a.b, c.d = e",
            "[tool.poetry]",
            "div.main {",
            "path = \"src/a.txt\"",
            "name: a.b",
            "{ \"main\": \"a.js\" }",
            "<link href=\"a.css\">",
            "COPY src/a.py .",
            "$ cat a.py",
            "Install with setup.py",
        ] {
            assert_eq!(of_first_line(line), None, "{line}");
        }
    }
}
