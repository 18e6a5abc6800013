//! Searches the text files of a commit for an untrusted pattern.
//!
//! The pattern is matched here and not by git: `git grep` passes it to the C library, whose
//! compiler is unbounded, so that a pattern of thirty characters took all memory of the machine.
//! The engine used here refuses a pattern whose automaton would be large and reads each byte a
//! bounded number of times. A refused pattern (back-references included) is searched for as plain
//! text.
//!
//! The pattern, its automaton, the files, the lines and the whole time are bounded; matches found
//! within the bounds are returned.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use regex::bytes::{Regex, RegexBuilder};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStdout;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::plain::{agreeing, counted};
use crate::repository::git::command::feed;
use crate::repository::mirror::Mirror;
use crate::repository::reading::files::TreeEntry;
use crate::repository::{CommitId, RepositoryError};
use crate::secret::Redactor;

const LONGEST_PATTERN: usize = 1_000;
/// Maximum bytes of a compiled pattern. The engine's default of ten million allows automata that
/// take a minute for a megabyte.
const LARGEST_AUTOMATON: usize = 256 * 1024;
const DEEPEST_PATTERN: u32 = 50;

const MOST_FILES: usize = 100_000;
const LARGEST_FILE: u64 = 4 * 1024 * 1024;
/// Maximum bytes of a line that are matched, and characters of a match that are returned.
const LONGEST_LINE: usize = 4 * 1024;
const SHOWN_OF_LINE: usize = 400;
/// Like git, takes a file with a NUL among its first bytes as binary.
const LOOKED_AT_FOR_ZERO: usize = 8_000;
const LONGEST_SEARCH: Duration = Duration::from_secs(20);

/// A pattern of bounded cost. Only [`Pattern::read`] makes one.
#[derive(Debug, Clone)]
pub struct Pattern {
    expression: Regex,
    /// The reason why the pattern is searched for as plain text; `None` for an expression.
    why_plain: Option<String>,
}

/// The text cannot be searched for at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is empty; name the words to look for")]
    Empty,
    #[error("the pattern has {0} characters, and {LONGEST_PATTERN} are the limit; look for a part of it")]
    TooLong(usize),
}

/// The matches, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    /// `path:line:text`, without secrets.
    pub lines: Vec<String>,
    /// A sentence for each part of the search that was left out.
    pub left_out: Vec<String>,
}

impl Pattern {
    /// Compiles a regular expression; an invalid or too large one is taken as plain text.
    pub fn read(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > LONGEST_PATTERN {
            return Err(PatternError::TooLong(text.chars().count()));
        }
        match compiled(text) {
            Ok(expression) => Ok(Self {
                expression,
                why_plain: None,
            }),
            Err(error) => Ok(Self {
                // An escaped text of this length always compiles.
                expression: compiled(&regex::escape(text)).map_err(|_| PatternError::TooLong(text.chars().count()))?,
                why_plain: Some(match error {
                    regex::Error::CompiledTooBig(_) => "it repeats too much".to_owned(),
                    error => error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
                }),
            }),
        }
    }

    /// Returns why the pattern is taken as plain text, if it is.
    pub fn why_plain(&self) -> Option<&str> {
        self.why_plain.as_deref()
    }
}

fn compiled(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .size_limit(LARGEST_AUTOMATON)
        .dfa_size_limit(LARGEST_AUTOMATON)
        .nest_limit(DEEPEST_PATTERN)
        .build()
}

impl Mirror {
    /// Searches the text files of a commit that `is_searched` accepts; returns at most `limit`
    /// lines.
    pub async fn search(
        &self,
        commit: &CommitId,
        pattern: &Pattern,
        is_searched: impl Fn(&str) -> bool + Send,
        limit: usize,
        redactor: &Arc<Redactor>,
    ) -> Result<SearchResult, RepositoryError> {
        let (mut files, are_more) = self.files(commit, MOST_FILES).await?;
        let mut left_out = Vec::new();
        if are_more {
            left_out.push(format!("only the first {MOST_FILES} files were searched"));
        }
        files.retain(|file| !file.is_link && is_searched(&file.path));
        let before = files.len();
        files.retain(|file| file.size <= LARGEST_FILE);
        if files.len() < before {
            let count = before - files.len();
            left_out.push(format!(
                "{} of more than {LARGEST_FILE} bytes {} not searched",
                counted(count, "file"),
                agreeing(count, "was", "were")
            ));
        }
        let matching = Matching {
            expression: pattern.expression.clone(),
            limit,
            redactor: Arc::clone(redactor),
            is_given_up: Arc::default(),
        };
        let (lines, is_whole) = self.lines_of(commit, files, matching).await?;
        if !is_whole {
            let seconds = LONGEST_SEARCH.as_secs();
            left_out.push(format!(
                "the search was ended after {seconds} s; look for something simpler"
            ));
        }
        Ok(SearchResult { lines, left_out })
    }

    /// Returns the matches, and whether the search ended in time.
    async fn lines_of(
        &self,
        commit: &CommitId,
        files: Vec<TreeEntry>,
        matching: Matching,
    ) -> Result<(Vec<String>, bool), RepositoryError> {
        if files.is_empty() {
            return Ok((Vec::new(), true));
        }
        let what = format!("searching {commit}");
        let ids: Vec<&str> = files.iter().map(|file| file.object.as_str()).collect();
        let git = self.git(&what).args(["cat-file", "--batch", "--buffer"]);
        let (mut child, _group, input) = git.input(ids.join("\n") + "\n").start()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        // Not read: an object that git could not print is missing in its output.
        drop(child.stderr.take());
        // Matching blocks for as long as the pattern takes, so it runs off the async threads.
        let is_given_up = Arc::clone(&matching.is_given_up);
        let (sender, receiver) = mpsc::channel(2);
        let matching = tokio::task::spawn_blocking(move || matching.over(receiver));
        let reading = async { tokio::join!(feed(stdin, input), read_each(stdout, files, sender)).1 };
        let read = timeout(LONGEST_SEARCH, reading).await;
        let is_whole = read.is_ok();
        let lost = |reason: String| RepositoryError::Unexpected { what, reason };
        if let Ok(Err(error)) = read {
            is_given_up.store(true, Ordering::Relaxed);
            return Err(lost(format!("git broke off: {error}")));
        }
        if !is_whole {
            is_given_up.store(true, Ordering::Relaxed);
        }
        let lines = matching.await.map_err(|error| lost(error.to_string()))?;
        Ok((lines, is_whole))
    }
}

/// Sends each file's content, until the last or until the receiver is closed.
async fn read_each(
    stdout: Option<ChildStdout>,
    files: Vec<TreeEntry>,
    sender: mpsc::Sender<(TreeEntry, Vec<u8>)>,
) -> std::io::Result<()> {
    let Some(stdout) = stdout else { return Ok(()) };
    let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
    let mut head = String::new();
    for file in files {
        head.clear();
        stdout.read_line(&mut head).await?;
        let size = head
            .trim_end()
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse::<u64>().ok());
        let Some(size) = size.filter(|size| *size <= LARGEST_FILE) else {
            return Err(std::io::Error::other(format!("{}: '{}'", file.path, head.trim_end())));
        };
        let mut content = Vec::new();
        (&mut stdout).take(size).read_to_end(&mut content).await?;
        stdout.read_u8().await?;
        if sender.send((file, content)).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Matches lines, on a blocking thread.
struct Matching {
    expression: Regex,
    limit: usize,
    redactor: Arc<Redactor>,
    is_given_up: Arc<AtomicBool>,
}

impl Matching {
    fn over(self, mut files: mpsc::Receiver<(TreeEntry, Vec<u8>)>) -> Vec<String> {
        let mut found = Vec::new();
        while let Some((file, content)) = files.blocking_recv() {
            if content.iter().take(LOOKED_AT_FOR_ZERO).any(|byte| *byte == 0) {
                continue;
            }
            let mut clean: Option<Vec<String>> = None;
            for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
                if found.len() == self.limit || self.is_given_up.load(Ordering::Relaxed) {
                    return found;
                }
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let is_after_end = number > 0 && line.is_empty() && content.ends_with(b"\n");
                if !is_after_end && self.expression.is_match(&line[..line.len().min(LONGEST_LINE)]) {
                    // The whole file is cleaned: nobody recognises the part of a secret that a cut
                    // leaves, and a line of a key is a part.
                    let lines = clean.get_or_insert_with(|| self.clean_lines(&content));
                    let line = lines.get(number).map_or("", |line| line.trim_end_matches('\r'));
                    let text: String = line.chars().take(SHOWN_OF_LINE).collect();
                    found.push(format!("{}:{}:{text}", file.path, number + 1));
                }
            }
        }
        found
    }

    fn clean_lines(&self, content: &[u8]) -> Vec<String> {
        let clean = self.redactor.clean_in_lines(&String::from_utf8_lossy(content));
        clean.as_str().split('\n').map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expressions that take gigabytes or minutes without bounds.
    const EXPLOSIVE: [&str; 6] = [
        "(((a{1,255}){1,255}){1,255})",
        "((a{1,32767}){1,32767})",
        "(((((x{1,9}){1,9}){1,9}){1,9}){1,9}){1,9}",
        "(\\w{1,250}){1,250}",
        "^(.*)(.*)(.*)(.*)\\1\\2\\3\\4b$",
        "((((((((((((((((((((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))))))))))))))))))))",
    ];

    #[test]
    fn what_would_explode_is_searched_as_plain_text() {
        for text in EXPLOSIVE {
            let pattern = Pattern::read(text).unwrap();
            assert!(pattern.why_plain().is_some(), "{text}");
            assert!(pattern.expression.is_match(text.as_bytes()), "{text}");
            assert!(!pattern.expression.is_match(b"aaaaaaaa"), "{text}");
        }
    }

    #[test]
    fn no_line_of_a_key_is_shown() {
        let line = "Ab3dEf6hIj9lMn2p".repeat(4);
        let frame = |word: &str| format!("-----{word} {}-----", "PRIVATE KEY");
        let key = format!(
            "{}\r\n{line}\r\n{line}\r\n{}\r\nend = 1\r\n",
            frame("BEGIN"),
            frame("END")
        );
        let file = TreeEntry {
            path: "key.pem".to_owned(),
            object: String::new(),
            size: 0,
            is_link: false,
        };
        let (sender, receiver) = mpsc::channel(1);
        sender.try_send((file, key.into_bytes())).unwrap();
        drop(sender);
        let matching = Matching {
            expression: Pattern::read("Mn2p|end").unwrap().expression,
            limit: 10,
            redactor: Arc::default(),
            is_given_up: Arc::default(),
        };
        assert_eq!(
            matching.over(receiver),
            [
                "key.pem:2:[redacted:private-key]",
                "key.pem:3:[redacted:private-key]",
                "key.pem:5:end = 1"
            ]
        );
    }

    #[test]
    fn usual_expressions_are_expressions() {
        for (text, line) in [
            ("fn [a-z_]+\\(", "    fn take_over("),
            ("^use .*;$", "use std::io;"),
            ("\\bTODO\\b|FIXME", "// TODO: x"),
            ("[[:alpha:]]{3}", "12abc"),
            ("\\<word\\>", "a word here"),
            ("gr(e|a)y{1,3}", "gray"),
        ] {
            let pattern = Pattern::read(text).unwrap();
            assert_eq!(pattern.why_plain(), None, "{text}");
            assert!(pattern.expression.is_match(line.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_searched_for_is_refused_with_a_remedy() {
        assert_eq!(Pattern::read("").unwrap_err(), PatternError::Empty);
        let error = Pattern::read(&"a".repeat(1_001)).unwrap_err().to_string();
        assert!(
            error.contains("1001 characters") && error.contains("a part of it"),
            "{error}"
        );
    }
}
