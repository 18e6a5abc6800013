//! The six file tools: their effects on the project folder, and their answers.

use serde::Deserialize;
use std::sync::{Mutex, PoisonError};

use super::Options;
use super::beneath::{Existing, Parents, Root, Target};
use super::fault::Fault;
use super::history::{Edit, History};
use super::listing::{self, Depth};
use super::text::{self, Replaced};

const ITEMS: usize = 500;
const MOST_ITEMS: usize = 10_000;

/// The project's files, and the edits that can be undone.
pub(super) struct Files {
    pub(super) root: Root,
    max_shown_bytes: usize,
    /// Held for a whole edit: of two concurrent edits of a file, the second one sees the result of
    /// the first.
    history: Mutex<History>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFiles {
    path: String,
    #[serde(default)]
    recursive: bool,
    max_items: Option<usize>,
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
    line: usize,
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
}

impl Answer {
    fn on(size: usize, text: String) -> Self {
        Self { text, size: Some(size) }
    }
}

impl Files {
    pub(super) fn open(options: &Options) -> std::io::Result<Self> {
        Ok(Self {
            root: Root::open(&options.root, options.max_file_bytes, &options.allowed_extensions)?,
            max_shown_bytes: options.max_output_bytes,
            history: Mutex::default(),
        })
    }

    pub(super) fn list(&self, wanted: &ListFiles) -> Result<Answer, Fault> {
        let depth = if wanted.recursive {
            Depth::EveryFolder
        } else {
            Depth::ThisFolder
        };
        let folder = self.root.open_folder(&wanted.path)?;
        let max_items = wanted.max_items.unwrap_or(ITEMS).clamp(1, MOST_ITEMS);
        let text = listing::list(folder, depth, max_items).map_err(|error| Fault::at(&wanted.path, &error))?;
        Ok(Answer { text, size: None })
    }

    /// Shows plain text without line numbers: models copy the numbers into their edits.
    pub(super) fn read(&self, wanted: &ReadFile) -> Result<Answer, Fault> {
        let whole = self.root.read(&wanted.path)?;
        let text = text::shown(&whole);
        if text.is_empty() {
            return Ok(Answer::on(0, "[empty file]".to_owned()));
        }
        let (first, last) = wanted.view_range.unwrap_or((1, -1));
        let first = usize::try_from(first).unwrap_or_default();
        let last = usize::try_from(last).unwrap_or(usize::MAX);
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
        let text = format!(
            "{}{line_end}[lines {} to {} of {}]",
            view.text, view.first, view.last, view.of
        );
        Ok(Answer::on(whole.len(), text))
    }

    pub(super) fn write(&self, wanted: &WriteFile) -> Result<Answer, Fault> {
        let path = &wanted.path;
        self.edit(path, Parents::Make, |existing| match (wanted.mode, existing) {
            (Mode::Create, Some(_)) => Err(Fault::Exists(format!(
                "{path} is there already; use mode overwrite or append, or str_replace"
            ))),
            (_, None) => Ok((wanted.content.clone(), format!("wrote {path}"))),
            (Mode::Overwrite, Some(before)) => {
                let text = text::with_line_ends_of(before, &wanted.content);
                Ok((text, format!("overwrote {path}")))
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
            match text::replace_once(before, &wanted.old, &wanted.new) {
                Replaced::Once { text, line } => Ok((text, format!("replaced at line {line} of {path}"))),
                Replaced::Nowhere => Err(Fault::NotFound(format!(
                    "old does not occur in {path}; read the file and copy the text exactly, with its white space"
                ))),
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
            let text = text::insert_after(before, wanted.line, &wanted.text).ok_or_else(|| {
                let lines = before.lines().count();
                Fault::NotFound(format!("{path} has {lines} lines; insert after line 0 to {lines}"))
            })?;
            Ok((text, format!("inserted after line {} of {path}", wanted.line)))
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
        Ok(answer)
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
        let answer = Answer::on(text.len(), answer);
        history.push(Edit {
            path: target.path,
            before: existing.map(|existing| existing.text),
            after: text,
        });
        Ok(answer)
    }
}

fn missing(path: &str) -> Fault {
    Fault::NotFound(format!("{path} does not exist; make it with write_file"))
}

fn listed(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(20).map(ToString::to_string).collect();
    let more = if lines.len() > shown.len() { ", ..." } else { "" };
    shown.join(", ") + more
}
