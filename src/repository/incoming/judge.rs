//! Rules for commits from a container: pure functions on paths, modes and links.
//!
//! The rules protect every machine that will check the commit out, not only this one: names that
//! are harmless here are `.git` on a Mac or on Windows.

use crate::markdown::code::code;
use crate::repository::CommitId;

pub const MAX_DEPTH: usize = 100;
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 4096;
pub const MAX_LINK: u64 = 4095;

/// A path that a commit adds or changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    pub path: Vec<u8>,
    pub kind: PathKind,
    /// The object's id.
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    File,
    Link,
}

/// Parses git's raw difference (`diff-tree -r -z --raw`) and judges each new path and mode. Returns
/// the added and changed paths, and the number of paths that differ in all.
pub fn changes(raw: &[u8]) -> Result<(Vec<ChangedPath>, usize), String> {
    let mut changes = Vec::new();
    let mut total = 0;
    let mut fields = raw.split(|byte| *byte == 0);
    while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
        let unreadable = || format!("git's comparison cannot be read at '{}'", shown(head));
        let path = fields.next().ok_or_else(unreadable)?;
        let head = std::str::from_utf8(head).map_err(|_| unreadable())?;
        let mut columns = head.trim_start_matches(':').split(' ');
        let (Some(_), Some(mode), Some(_), Some(id), Some(status)) = (
            columns.next(),
            columns.next(),
            columns.next(),
            columns.next(),
            columns.next(),
        ) else {
            return Err(unreadable());
        };
        total += 1;
        if status.starts_with('D') {
            continue;
        }
        let kind = kind(mode).map_err(|reason| format!("{}: {reason}", quoted(path)))?;
        judge_path(path).map_err(|reason| format!("{}: {reason}", quoted(path)))?;
        changes.push(ChangedPath {
            path: path.to_owned(),
            kind,
            id: id.to_owned(),
        });
    }
    Ok((changes, total))
}

fn kind(mode: &str) -> Result<PathKind, &'static str> {
    match mode {
        "100644" | "100755" => Ok(PathKind::File),
        "120000" => Ok(PathKind::Link),
        "160000" => Err("submodules may not be added or changed"),
        _ => Err("only files, executable files and symbolic links are allowed"),
    }
}

/// Judges a path below the root of a repository.
fn judge_path(path: &[u8]) -> Result<(), &'static str> {
    if path.len() > MAX_PATH {
        return Err("the path is too long");
    }
    // A backslash is a separator on Windows.
    let names = path.split(|byte| matches!(byte, b'/' | b'\\'));
    if names.clone().count() > MAX_DEPTH {
        return Err("the folders are nested too deeply");
    }
    for name in names {
        judge_name(name)?;
    }
    Ok(())
}

/// Judges the target of a symbolic link: it must be in the tree and pass through no folder that
/// might be a link itself.
pub fn judge_link(path: &[u8], target: &[u8]) -> Result<(), &'static str> {
    if target.is_empty() || target.len() as u64 > MAX_LINK {
        return Err("the link's target is empty or too long");
    }
    if matches!(target, [b'/' | b'\\', ..] | [_, b':', ..]) {
        return Err("the link points to an absolute path; let it point to a file of the project, or do without it");
    }
    // The folders above a link are real, so it may go up once per folder. Going up after a name
    // would start from wherever that name leads.
    let mut folders = path.iter().filter(|byte| matches!(byte, b'/' | b'\\')).count();
    let mut went_down = false;
    for name in target.split(|byte| matches!(byte, b'/' | b'\\')) {
        match name {
            b"" | b"." => {}
            b".." if went_down => return Err("the link goes up again after it went down"),
            b".." => {
                folders = folders.checked_sub(1).ok_or(
                    "the link points out of the repository; let it point to a file of the project, or do without it",
                )?;
            }
            name => {
                judge_name(name)?;
                went_down = true;
            }
        }
    }
    Ok(())
}

fn judge_name(name: &[u8]) -> Result<(), &'static str> {
    if name.is_empty() || name == b"." || name == b".." {
        return Err("the path has an empty part, '.' or '..'");
    }
    if name.len() > MAX_NAME {
        return Err("a part of the path is too long");
    }
    if name.iter().any(|byte| *byte < 0x20 || *byte == 0x7f) {
        return Err("the path has control characters");
    }
    if is_git_folder(&String::from_utf8_lossy(name)) {
        return Err("this is, or is on some systems, git's own folder '.git'");
    }
    Ok(())
}

/// Returns true if some file system takes the name for `.git`.
fn is_git_folder(name: &str) -> bool {
    // macOS ignores these characters in names.
    let ignored = |char: char| matches!(char, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let plain: String = name
        .chars()
        .filter(|char| !ignored(*char))
        .collect::<String>()
        .to_lowercase();
    // Windows: alternate streams after a colon, trailing dots and spaces, and the short name.
    let plain = plain.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let short = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    plain == ".git" || plain.strip_prefix("git~").is_some_and(short)
}

/// Returns a path as text without effect on a terminal or a comment, cut to 200 characters.
pub fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let short: String = text.chars().take(200).collect();
    short.escape_debug().to_string()
}

/// Returns a path as [`shown`], in a code span.
pub fn quoted(path: &[u8]) -> String {
    code(&shown(path))
}

/// Returns the commit to compare with: `commit`, or the empty tree.
pub fn or_nothing(commit: Option<&CommitId>) -> CommitId {
    commit.cloned().unwrap_or_else(CommitId::nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_names_pass() {
        for path in [
            "README.md",
            ".github/workflows/ci.yml",
            ".gitignore",
            "src/日本語.rs",
            "git~/x",
            "a\\x2db.service",
            "digit",
            ".gitx/y",
        ] {
            assert_eq!(judge_path(path.as_bytes()), Ok(()), "{path}");
        }
        assert_eq!(judge_path(b"latin1-\xe9.txt"), Ok(()));
    }

    #[test]
    fn git_s_own_folder_is_known_in_every_spelling() {
        for path in [
            ".git/config",
            "a/.GIT/hooks/post-checkout",
            ".git./x",
            ".git  . /x",
            ".git::$INDEX_ALLOCATION/x",
            "GIT~1/config",
            "git~12",
            ".g\u{200c}it/config",
            "\u{feff}.git",
            "a\\.git\\config",
        ] {
            assert!(judge_path(path.as_bytes()).is_err(), "{path}");
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for path in [
            "",
            "/etc/passwd",
            "a//b",
            "../x",
            "a/../b",
            "a/.",
            "..\\x",
            "a\nb",
            "a\u{7f}",
        ] {
            assert!(judge_path(path.as_bytes()).is_err(), "{path:?}");
        }
        assert!(judge_path("a/".repeat(200).as_bytes()).is_err());
        assert!(judge_path("a".repeat(300).as_bytes()).is_err());
    }

    #[test]
    fn links_stay_inside_or_are_refused() {
        for (path, target) in [
            ("link", "README.md"),
            ("a/b/link", "../../x/y"),
            ("a/link", "./b"),
            ("a/link", ".."),
        ] {
            assert_eq!(
                judge_link(path.as_bytes(), target.as_bytes()),
                Ok(()),
                "{path} -> {target}"
            );
        }
        for (path, target) in [
            ("link", "/etc/passwd"),
            ("link", "../x"),
            ("a/link", "../../x"),
            ("link", "a/../../x"),
            ("link", "C:\\x"),
            ("link", "\\x"),
            ("link", ".git/config"),
            ("link", ""),
        ] {
            assert!(
                judge_link(path.as_bytes(), target.as_bytes()).is_err(),
                "{path} -> {target}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_judge_fall_over(raw in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = changes(&raw);
            let _ = judge_link(&raw, &raw);
            prop_assert!(!shown(&raw).chars().any(char::is_control));
        }
    }
}
