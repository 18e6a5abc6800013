//! Statements and rows as every engine takes and gives them.
//!
//! Three kinds of values are enough for the store: texts (ids and documents among them), whole
//! numbers (times are microseconds since 1970 in UTC) and bytes. A statement is SQL that all
//! engines understand, with `$1`, `$2` … for its values.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::StoreError;
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// A value in a statement or a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Text(String),
    Number(i64),
    Bytes(Vec<u8>),
}

/// SQL with the values for its places.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: &'static str,
    pub(super) values: Vec<Cell>,
}

impl Statement {
    pub(super) fn new(text: &'static str) -> Self {
        Self {
            text,
            values: Vec::new(),
        }
    }

    /// Adds the value of the next parameter.
    pub(super) fn with(mut self, value: impl Into<Cell>) -> Self {
        self.values.push(value.into());
        self
    }
}

/// Returns a time as the store keeps it, in microseconds.
pub(super) fn micros(time: DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Cell {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

/// Numbers beyond `i64` do not occur: they count tokens and facts.
impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::Number(number.cast_signed())
    }
}

impl From<DateTime<Utc>> for Cell {
    fn from(time: DateTime<Utc>) -> Self {
        Self::Number(micros(time))
    }
}

impl From<&TaskId> for Cell {
    fn from(task: &TaskId) -> Self {
        Self::Text(task.to_string())
    }
}

impl From<RunId> for Cell {
    fn from(run: RunId) -> Self {
        Self::Text(run.to_string())
    }
}

impl From<Uuid> for Cell {
    fn from(id: Uuid) -> Self {
        Self::Text(id.to_string())
    }
}

impl From<State> for Cell {
    fn from(state: State) -> Self {
        Self::Text(state.to_string())
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row of an answer; its columns are told apart by their places.
#[derive(Debug)]
pub(super) struct Row {
    /// The store it came from, for the sentence about a row that cannot be read.
    pub(super) store: Arc<str>,
    pub(super) cells: Vec<Cell>,
}

impl Row {
    /// Returns the text in a column.
    pub(super) fn text(&self, column: usize) -> Result<&str, StoreError> {
        match self.cells.get(column) {
            Some(Cell::Text(text)) => Ok(text),
            _ => Err(self.unreadable(&format!("no text in column {column}"))),
        }
    }

    /// Returns the text in a column, if there is one.
    pub(super) fn text_if_any(&self, column: usize) -> Result<Option<&str>, StoreError> {
        match self.cells.get(column) {
            Some(Cell::Null) => Ok(None),
            _ => self.text(column).map(Some),
        }
    }

    /// Returns the bytes in a column.
    pub(super) fn bytes(mut self, column: usize) -> Result<Vec<u8>, StoreError> {
        match self.cells.get_mut(column) {
            Some(Cell::Bytes(bytes)) => Ok(std::mem::take(bytes)),
            _ => Err(self.unreadable(&format!("no bytes in column {column}"))),
        }
    }

    /// Returns the number in a column.
    pub(super) fn number(&self, column: usize) -> Result<i64, StoreError> {
        self.number_if_any(column)?
            .ok_or_else(|| self.unreadable(&format!("no number in column {column}")))
    }

    fn number_if_any(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.cells.get(column) {
            Some(Cell::Number(number)) => Ok(Some(*number)),
            Some(Cell::Null) => Ok(None),
            _ => Err(self.unreadable(&format!("no number in column {column}"))),
        }
    }

    /// Returns the time in a column, if there is one.
    pub(super) fn time(&self, column: usize) -> Result<Option<DateTime<Utc>>, StoreError> {
        Ok(self.number_if_any(column)?.and_then(DateTime::from_timestamp_micros))
    }

    /// Parses the text in a column.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&self, column: usize) -> Result<T, StoreError> {
        self.text(column)?.parse().map_err(|error| self.unreadable(&error))
    }

    /// Parses the JSON document in a column.
    pub(super) fn document<T: DeserializeOwned>(&self, column: usize) -> Result<T, StoreError> {
        serde_json::from_str(self.text(column)?).map_err(|error| self.unreadable(&error))
    }

    /// Returns the error for a row that this program did not write in this form, named by its first
    /// column.
    fn unreadable(&self, error: &dyn Display) -> StoreError {
        let row = match self.cells.first() {
            Some(Cell::Text(text)) => text.clone(),
            Some(Cell::Number(number)) => number.to_string(),
            _ => "without a name".to_owned(),
        };
        StoreError::Unusable {
            store: self.store.to_string(),
            reason: format!(
                "the entry '{row}' cannot be read ({error}); was it written by a newer version of the program? \
                 Update the program, or restore the store from a backup"
            ),
        }
    }
}
