//! The six file tools: their effects on the project folder, and their answers.

mod suggestion; // what there is instead of a path that does not exist
mod beneath; // reads and writes that stay in the project folder
mod listing; // the text of a listed folder
mod history; // what files were before they were edited
mod meant; // what a model means by text that does not occur word for word

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::executor::Options;
use crate::executor::blocking::Blocking;
use crate::executor::changes::Look;
use crate::executor::fault::Fault;
use crate::executor::text::{self, Replaced};
use crate::plain::counted;
use beneath::{Existing, Parents, Root, Target};
use history::{Edit, History};
use listing::Listing;

/// The end of the sentence on a file that was written with the text that it had.
pub const UNCHANGED: &str = "is as it was; nothing changed";

const ITEMS: usize = 500;
const MOST_ITEMS: usize = 10_000;

/// The project's files, and the edits that can be undone.
pub(super) struct Files {
    pub(super) root: Root,
    blocking: Blocking,
    max_shown_bytes: usize,
    /// Held for a whole edit: of two concurrent edits of a file, the second one sees the result of
    /// the first.
    history: Mutex<History>,
    /// The project's folder, for looks at all its files.
    folder: PathBuf,
    /// The last look; `None` if a file tool has changed something since.
    last_look: Mutex<Option<Arc<Look>>>,
    /// Set once a look found too many files, so that no other is tried.
    has_too_many: AtomicBool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFiles {
    path: String,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    extensions: Vec<String>,
    max_items: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    path: String,
    view_range: Option<(i64, i64)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    path: String,
    content: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Create,
    Overwrite,
    Append,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StrReplace {
    path: String,
    old: String,
    new: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Insert {
    path: String,
    line: i64,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoEdit {
    path: String,
}

/// The answer of a file tool.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    /// Size of the file that was read, or its new size.
    pub(super) size: Option<usize>,
    /// The lines of the file that the text ends by naming; `None` if it is all of them.
    pub(super) lines: Option<ShownLines>,
}

/// The lines of a file that an answer shows, where these are not all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownLines {
    pub first: usize,
    pub last: usize,
    /// The number of lines that the file has.
    pub of: usize,
}

impl fmt::Display for ShownLines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[lines {} to {} of {}]", self.first, self.last, self.of)
    }
}

impl Answer {
    fn on(size: usize, text: String) -> Self {
        Self {
            text,
            size: Some(size),
            lines: None,
        }
    }
}

impl Files {
    pub(super) fn open(options: &Options, blocking: Blocking) -> std::io::Result<Self> {
        Ok(Self {
            blocking,
            root: Root::open(&options.root, options.max_file_bytes, &options.allowed_extensions)?,
            max_shown_bytes: options.max_output_bytes,
            history: Mutex::default(),
            folder: options.root.clone(),
            last_look: Mutex::default(),
            has_too_many: AtomicBool::default(),
        })
    }

    /// Looks at the project's files before a command; `None` if there are too many. The last look
    /// is not enough, because other programs, such as the checks, work here in between.
    pub(super) async fn look(self: &Arc<Self>) -> Option<Arc<Look>> {
        let last = self.last_look.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.look_anew(last).await
    }

    /// Returns the changes since `before`; null if they cannot be determined.
    pub(super) async fn changes_since(self: &Arc<Self>, before: Arc<Look>) -> Value {
        let now = self.look_anew(Some(Arc::clone(&before))).await;
        now.map_or(Value::Null, |now| now.since(&before))
    }

    async fn look_anew(self: &Arc<Self>, before: Option<Arc<Look>>) -> Option<Arc<Look>> {
        if self.has_too_many.load(Ordering::Relaxed) {
            return None;
        }
        let files = Arc::clone(self);
        let look = move || Look::take(&files.folder, before.as_deref());
        let look = self.blocking.run(look).await.ok().flatten().map(Arc::new);
        self.has_too_many.store(look.is_none(), Ordering::Relaxed);
        self.last_look
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&look);
        look
    }

    pub(super) fn list(&self, wanted: &ListFiles) -> Result<Answer, Fault> {
        let folder = self.root.open_folder(&wanted.path)?;
        // Models write 0 or -1 where they want no limit.
        let max_items = wanted.max_items.and_then(|most| usize::try_from(most).ok());
        let listing = Listing {
            is_recursive: wanted.recursive,
            endings: listing::endings(&wanted.extensions),
            max_items: max_items.filter(|most| *most > 0).unwrap_or(ITEMS).min(MOST_ITEMS),
        };
        let text = listing.of(folder).map_err(|error| Fault::at(&wanted.path, &error))?;
        Ok(Answer {
            text,
            size: None,
            lines: None,
        })
    }

    /// Returns the text without line numbers, since models copy the numbers into their edits.
    pub(super) fn read(&self, wanted: &ReadFile) -> Result<Answer, Fault> {
        let whole = self.root.read(&wanted.path)?;
        let text = text::shown(&whole);
        if text.is_empty() {
            return Ok(Answer::on(whole.len(), "[empty file]".to_owned()));
        }
        let (first, last) = wanted.view_range.unwrap_or((1, -1));
        let first = usize::try_from(first).unwrap_or_default().max(1);
        let last = usize::try_from(last)
            .ok()
            .filter(|last| *last > 0)
            .unwrap_or(usize::MAX);
        let Some(view) = text::view(&text, first, last, self.max_shown_bytes) else {
            let lines = text.lines().count();
            return Err(Fault::NotFound(format!(
                "{} has the lines 1 to {lines}; ask for a view_range within them",
                wanted.path
            )));
        };
        if view.last - view.first + 1 == view.of {
            return Ok(Answer::on(whole.len(), view.text));
        }
        let line_end = if view.text.ends_with('\n') { "" } else { "\n" };
        let lines = ShownLines {
            first: view.first,
            last: view.last,
            of: view.of,
        };
        Ok(Answer {
            lines: Some(lines),
            ..Answer::on(whole.len(), format!("{}{line_end}{lines}", view.text))
        })
    }

    pub(super) fn write(&self, wanted: &WriteFile) -> Result<Answer, Fault> {
        let path = &wanted.path;
        self.edit(path, Parents::Make, |existing| match (wanted.mode, existing) {
            (Mode::Create, Some(_)) => Err(Fault::Exists(format!(
                "{path} is there already; use mode overwrite or append, or str_replace"
            ))),
            (_, None) => Ok((wanted.content.clone(), format!("wrote {path}"))),
            (Mode::Overwrite, Some(before)) => {
                let text = text::in_place_of(before, &wanted.content);
                let answer = if text == before {
                    format!("{path} {UNCHANGED}")
                } else {
                    format!("overwrote {path}")
                };
                Ok((text, answer))
            }
            (Mode::Append, Some(before)) => {
                let text = format!("{before}{}", text::with_line_ends_of(before, &wanted.content));
                Ok((text, format!("appended to {path}")))
            }
        })
    }

    pub(super) fn str_replace(&self, wanted: &StrReplace) -> Result<Answer, Fault> {
        let path = &wanted.path;
        if wanted.old.is_empty() {
            return Err(Fault::NotFound(
                "old is empty; give the text to replace, or use insert".to_owned(),
            ));
        }
        self.edit(path, Parents::MustExist, |existing| {
            let before = existing.ok_or_else(|| missing(path))?;
            match meant::replace(before, &wanted.old, &wanted.new) {
                Replaced::Once { text, line } => Ok((text, format!("replaced at line {line} of {path}"))),
                Replaced::Nowhere => Err(nowhere(path, before, wanted)),
                Replaced::Several(lines) => Err(Fault::Exists(format!(
                    "old occurs {} times in {path}, at the lines {}; add lines around it until it is unique",
                    lines.len(),
                    listed(&lines)
                ))),
            }
        })
    }

    pub(super) fn insert(&self, wanted: &Insert) -> Result<Answer, Fault> {
        let path = &wanted.path;
        self.edit(path, Parents::MustExist, |existing| {
            let before = existing.ok_or_else(|| missing(path))?;
            let (_, shown) = text::split_mark(before);
            let lines = shown.lines().count();
            let all = counted(lines, "line");
            // As in a view_range, -1 is the end.
            let line = usize::try_from(wanted.line).unwrap_or(lines);
            let text = text::insert_after(before, line, &wanted.text)
                .ok_or_else(|| Fault::NotFound(format!("{path} has {all}; insert after line 0 to {lines}")))?;
            Ok((text, format!("inserted after line {line} of {path}")))
        })
    }

    pub(super) fn undo(&self, wanted: &UndoEdit) -> Result<Answer, Fault> {
        let path = &wanted.path;
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let target = self.root.target(path, Parents::MustExist)?;
        let edit = history
            .last(&target.path)
            .ok_or_else(|| Fault::NotFound(format!("there is no edit of {path} left to undo")))?;
        let existing = self.root.existing(path, &target)?;
        if existing.as_ref().map(|existing| &existing.text) != Some(&edit.after) {
            return Err(Fault::Exists(format!(
                "{path} was changed by something else since the edit; read it and edit it again instead"
            )));
        }
        let answer = if let Some(before) = &edit.before {
            self.root.put(path, &target, existing.as_ref(), before)?;
            Answer::on(before.len(), format!("took back the last edit of {path}"))
        } else {
            target.remove(path)?;
            Answer::on(0, format!("took back the last edit of {path}: it is gone again"))
        };
        history.forget_last(&target.path);
        self.forget_look();
        Ok(answer)
    }

    fn forget_look(&self) {
        *self.last_look.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Edits a file: `change` turns its text (or nothing) into the new text and the answer.
    fn edit(
        &self,
        path: &str,
        parents: Parents,
        change: impl FnOnce(Option<&str>) -> Result<(String, String), Fault>,
    ) -> Result<Answer, Fault> {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let target: Target = self.root.target(path, parents)?;
        let existing: Option<Existing> = self.root.existing(path, &target)?;
        let (text, answer) = change(existing.as_ref().map(|existing| existing.text.as_str()))?;
        self.root.put(path, &target, existing.as_ref(), &text)?;
        self.forget_look();
        let answer = Answer::on(text.len(), answer);
        history.push(Edit {
            path: target.path,
            before: existing.map(|existing| existing.text),
            after: text,
        });
        Ok(answer)
    }
}

/// Returns the refusal of a text that does not occur, with what there is instead.
fn nowhere(path: &str, whole: &str, wanted: &StrReplace) -> Fault {
    let shown = text::shown(whole);
    Fault::NotFound(match meant::closest(&shown, &wanted.old) {
        Some(closest) => {
            format!("old does not occur in {path}; copy it exactly. The closest lines, with their numbers:{closest}")
        }
        None => format!("old does not occur in {path}, nor anything like it; read the file and copy the text exactly"),
    })
}

fn missing(path: &str) -> Fault {
    Fault::NotFound(format!("{path} does not exist; make it with write_file"))
}

fn listed(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(20).map(ToString::to_string).collect();
    let more = if lines.len() > shown.len() { ", ..." } else { "" };
    shown.join(", ") + more
}
