//! Reads the path of a file in what a model writes about its text: in the line above it, behind its
//! fence, or on its first line.
//!
//! Many write the path as the first line, and code begins with lines that have words like paths: an
//! import, the name of a package. Such a line counts only if it is a comment, or says nothing else.
//!
//! A path is read as one word of a few signs. That of a file that was shown is found whatever it
//! is; a line that seems to hold another one is told apart, so that no other file is written.

use std::borrow::Cow;

/// Most words of a line that announces a file.
const LONGEST_ANNOUNCEMENT: usize = 8;
/// Most words of a path with spaces.
const LONGEST_SPACED: usize = 3;
/// Words between those of a sentence, and seldom between those of a file's name.
const JOINING: [&str; 5] = ["in", "for", "of", "to", "and"];
/// Words that announce a path.
const LABELS: [&str; 5] = ["file", "filename", "filepath", "path", "writefile"];
/// Brackets that names of folders and files begin with, such as `[id]` and `(shop)`.
const OPENING: [char; 2] = ['[', '('];
const BRACKETS: [char; 4] = ['[', ']', '(', ')'];
/// Signs with which no path is read, although files are called so.
const SIGNS: &str = "{}<>$~&!%#";
/// Signs around a path that stands alone on a line, besides white space.
const DECORATION: &str = "`*#/:\"'<>~-=!%";
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
        // With `=` or `:=` it sets a variable of that name.
        !rest.starts_with('=') && !rest.starts_with(":=")
    } else if of_word(first).is_some() {
        is_alone(first, rest, &path)
    } else if first.chars().any(char::is_alphanumeric) {
        is_said(line, &path)
    } else {
        // A comment of a batch file begins with two colons; one is not enough.
        first == "::" || first.chars().any(|sign| MARKS.contains(sign) || !sign.is_ascii())
    };
    names_it.then_some(path)
}

/// Tells whether a line that names a path has no other words, but for a label.
pub(super) fn is_alone_on(line: &str) -> bool {
    let words = line
        .split_whitespace()
        .filter(|word| word.contains(char::is_alphanumeric));
    words.filter(|word| !is_label(word)).count() <= 1
}

/// Tells whether a line has a label with a sign that says that a path follows, such as `File:`.
pub(super) fn is_labelled(line: &str) -> bool {
    line.split_whitespace()
        .any(|word| is_label(word) && (word.ends_with(':') || word.contains('=')))
}

/// Tells whether a line begins with a sign of comments that stands apart.
pub(super) fn is_comment(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    !first.contains(char::is_alphanumeric) && first.contains(|sign: char| MARKS.contains(sign))
}

/// Returns the path in a word such as `` `src/a.py`: ``: a name with an extension, or one below a
/// folder.
pub(super) fn of_word(word: &str) -> Option<String> {
    let word = word.rsplit_once('=').map_or(word, |(_, value)| value);
    let bare = word.trim_matches(is_edge).trim_end_matches('.');
    let bracketed = word
        .trim_start_matches(|letter: char| is_edge(letter) && !OPENING.contains(&letter))
        .trim_end_matches(is_edge)
        .trim_end_matches('.');
    let path = [bare, bracketed].into_iter().find(|word| is_path(word))?;
    Some(path.trim_start_matches("./").to_owned())
}

/// Returns the line above a file's text by which [`of_heading`] finds its path again.
pub fn heading(path: &str) -> Cow<'_, str> {
    if path.contains(' ') && is_odd(path) {
        return format!("`{path}`").into();
    }
    path.into()
}

/// Returns the path that a line is which [`heading`] made, if it is more than a word that
/// [`of_word`] reads.
pub fn of_heading(line: &str) -> Option<&str> {
    let marked = line.strip_prefix('`').and_then(|line| line.strip_suffix('`'));
    let path = match marked.filter(|path| path.contains(' ')) {
        Some(path) => path,
        None if line.contains(' ') => return None,
        None => line,
    };
    is_odd(path).then_some(path)
}

/// Tells whether `path` ends as the path of a file does, and is not what [`of_word`] reads.
pub(super) fn is_odd(path: &str) -> bool {
    has_extension(name_of(path)) && of_word(path).as_deref() != Some(path)
}

/// Returns the path with spaces that a line seems to be, such as `docs/my file.md`. Its last word
/// alone is read as the path of another file.
pub(super) fn spaced(line: &str) -> Option<&str> {
    let line = line.rsplit_once(": ").map_or(line, |(_, behind)| behind);
    let line = line.trim_matches(is_edge);
    let (first, rest) = line.split_once(' ')?;
    // What begins with a capital is a word: `HTML/CSS index.html`.
    let begins_so = first.starts_with(|letter: char| letter.is_lowercase() || "_.".contains(letter));
    let folders = first.trim_start_matches("./").split_once('/');
    let has_folder = folders.is_some_and(|(_, behind)| !behind.is_empty()) && of_word(first).is_none();
    let is_one_path = line.chars().all(|letter| is_written_so(letter) || letter == ' ') && !rest.contains('/');
    let mut words = line.split_whitespace();
    let is_sentence = words.clone().count() > LONGEST_SPACED || words.any(|word| JOINING.contains(&word));
    (begins_so && has_folder && is_one_path && !is_sentence).then_some(line)
}

/// Returns the path that a line seems to be, but for a label, and that has signs which are not
/// read, such as `routes/{id}.tsx`.
pub(super) fn unread(line: &str) -> Option<&str> {
    let words = line.split_whitespace().map(|word| word.trim_matches(is_edge));
    let mut words = words.filter(|word| !word.is_empty());
    let word = words.next_back()?;
    let is_path = word.contains('/') && has_extension(name_of(word)) && of_word(word).is_none();
    let is_one_word = word
        .chars()
        .all(|letter| is_written_so(letter) || SIGNS.contains(letter));
    let is_sentence = word.contains("..") || word.contains("//");
    (is_path && is_one_word && !is_sentence && words.count() <= 1).then_some(word)
}

/// Tells whether `word`, which [`unread`] returned, may be meant for the file at `path`: it ends
/// with it, or its first folder alone has strange signs, as in `<root>/src/a.py`.
pub(super) fn may_mean(word: &str, path: &str) -> bool {
    let is_part = |letter: char| letter != '/' && is_written_so(letter);
    let ends_with = |whole: &str, end: &str| {
        let before = whole.strip_suffix(end);
        before.is_some_and(|before| !before.ends_with(is_part))
    };
    let behind_root = word.split_once('/').map(|(_, rest)| rest);
    let behind_root = behind_root.filter(|rest| !rest.contains(|letter: char| SIGNS.contains(letter)));
    ends_with(word, path) || behind_root.is_some_and(|rest| ends_with(path, rest))
}

pub(super) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the path of the file in `shown`, where each has its text, that `path` is the end of, if
/// there is one alone, and else `path`.
pub(super) fn in_full(path: String, shown: &[(String, String)]) -> String {
    if shown.iter().any(|(known, _)| *known == path) {
        return path;
    }
    let end = format!("/{path}");
    let longer = only(shown.iter().filter(|(known, _)| known.ends_with(&end)));
    longer.map_or(path, |(known, _)| known.clone())
}

/// Returns what is found if it is one thing alone.
pub(super) fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let one = found.next()?;
    found.next().is_none().then_some(one)
}

fn is_path(word: &str) -> bool {
    let name = name_of(word);
    let is_sentence = word.replace("[...", "[").contains("..") || word.contains("//");
    let is_named_so = has_extension(name) || name == "Makefile" || name == "Dockerfile";
    let is_one_word = word
        .chars()
        .all(|letter| is_written_so(letter) || BRACKETS.contains(&letter));
    is_one_word && is_named_so && !is_sentence && brackets_fit(word)
}

/// Tells whether the brackets in a path, if there are any, are those with which its parts begin.
fn brackets_fit(path: &str) -> bool {
    let fits = |part: &str| {
        let (opening, rest) = part.split_at(part.len() - part.trim_start_matches(OPENING).len());
        let closing = opening.chars().rev().map(|sign| if sign == '[' { ']' } else { ')' });
        closing.eq(rest.chars().filter(|sign| BRACKETS.contains(sign)))
    };
    !path.contains(BRACKETS) || (path.contains('/') && path.split('/').all(fits))
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
            "filepath: src/a.py",
            "%%writefile src/a.py",
            ":: src/a.py",
        ] {
            assert_eq!(of_first_line(line).as_deref(), Some("src/a.py"), "{line}");
        }
        for line in ["a.py", "./a.py", "`a.py`:", "a.py (updated)", "Here is a.py:"] {
            assert_eq!(of_first_line(line).as_deref(), Some("a.py"), "{line}");
        }
        for (line, path) in [
            ("<!--index.html-->", "index.html"),
            ("%a.tex", "a.tex"),
            ("!a.f90", "a.f90"),
            (":: a.bat", "a.bat"),
        ] {
            assert_eq!(of_first_line(line).as_deref(), Some(path), "{line}");
        }
    }

    #[test]
    fn brackets_belong_to_a_path_where_its_parts_begin_with_them() {
        for path in [
            "app/[slug]/page.tsx",
            "app/[...all]/page.tsx",
            "app/[[...all]]/page.tsx",
            "app/(auth)/login.tsx",
            "(auth)/login.tsx",
            "pages/[id].ts",
        ] {
            for line in [path.to_owned(), format!("**`{path}`**:"), format!("# File: ./{path}")] {
                assert_eq!(of_line(&line).as_deref(), Some(path), "{line}");
            }
        }
        for (word, path) in [
            ("(src/a.py)", Some("src/a.py")),
            ("(pages/[id].ts)", Some("pages/[id].ts")),
            ("[a.py](src/a.py)", None),
            ("[id].ts", None),
            ("print(src/a.py)", None),
            ("src/f(x).py", None),
            ("(a/b).py", None),
            ("a/[../b.py", None),
            ("a/[...]/../b.py", None),
        ] {
            assert_eq!(of_word(word).as_deref(), path, "{word}");
        }
    }

    #[test]
    fn a_heading_is_read_back_whatever_its_path_is() {
        for path in ["docs/my file.md", "my file.md", "routes/$id.tsx", "[id].ts", "a/b=c.py"] {
            assert_eq!(of_heading(&heading(path)), Some(path), "{path}");
        }
        assert_eq!(heading("docs/my file.md"), "`docs/my file.md`");
        assert_eq!(heading("a.py, lines 8 to 9"), "a.py, lines 8 to 9");
        for line in ["src/a.py", "What the tests expect", "LICENSE", "docs/my file.md"] {
            assert_eq!(of_heading(line), None, "{line}");
        }
    }

    #[test]
    fn what_seems_to_be_another_path_is_told_apart() {
        for (line, path) in [
            ("docs/my file.md", Some("docs/my file.md")),
            ("### `docs/my file.md`:", Some("docs/my file.md")),
            ("File: .github/my file.md", Some(".github/my file.md")),
            ("HTML/CSS index.html", None),
            ("i/o: src/a.py", None),
            ("src/a.py is new.py", None),
            ("./run a.py", None),
            ("python a.py", None),
            ("read/write tests in test_io.py:", None),
            ("New file: input/output helpers in io_utils.py", None),
            ("additions/changes to a.py", None),
            ("unit/integration tests with mocks a.py", None),
        ] {
            assert_eq!(spaced(line), path, "{line}");
        }
        for (line, path) in [
            ("### `routes/{id}.tsx`", Some("routes/{id}.tsx")),
            ("File: routes/$id.tsx", Some("routes/$id.tsx")),
            ("src/a.py", None),
            ("../lib/a.js", None),
            ("It is like routes/{id}.tsx", None),
            ("[a](src/a.py)", None),
            ("lib\\a.js", None),
        ] {
            assert_eq!(unread(line), path, "{line}");
        }
        for (word, is_meant) in [
            ("root>/lib/a.js", true),
            ("root>/a.js", true),
            ("root>/mylib/a.js", false),
            ("lib/{x}/a.js", false),
        ] {
            assert_eq!(may_mean(word, "lib/a.js"), is_meant, "{word}");
        }
    }

    #[test]
    fn a_path_stands_alone_beside_signs_and_labels() {
        for line in [
            "# src/a.py",
            "src/a.py",
            "/* File: src/a.py */",
            "file=src/a.py",
            "a.py",
        ] {
            assert!(is_alone_on(line), "{line}");
        }
        for line in ["# Tests for a.py", "// Dates for node.js", "src/a.py (updated)"] {
            assert!(!is_alone_on(line), "{line}");
        }
    }

    #[test]
    fn a_label_announces_a_path_and_a_comment_may_be_about_one() {
        for (line, is_labelled_so, is_comment_so) in [
            ("// New file: src/a.py", true, true),
            ("Updated file=src/a.py", true, false),
            ("# Tests for the file a.py", false, true),
            ("/** Tests for a.js */", false, true),
            ("Here is src/a.py:", false, false),
            ("📄 src/a.py (new)", false, false),
        ] {
            let told = (is_labelled(line), is_comment(line));
            assert_eq!(told, (is_labelled_so, is_comment_so), "{line}");
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
            "filepath := os.args",
            "$: total = a.b",
            "!a.b && c",
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
