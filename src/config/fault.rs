//! A fault in a configuration: a sentence that says what is wrong, where, and how to fix it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::path::PathBuf;

/// Path of a value: keys from the top down, items of a list by their number.
pub(super) type KeyPath = Vec<String>;

/// One fault in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub origin: ConfigSource,
    /// Position in the file; `None` if there is nothing to point at.
    pub place: Option<Place>,
    /// The key, e.g. `mcp_servers[0].command`, or the variable that the value of a key came from
    /// where there is no file; empty for the file as a whole.
    pub key: String,
    pub reason: String,
}

/// The place that a configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigSource {
    File(PathBuf),
    Environment,
}

/// A position in the file; line and column count from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl Fault {
    pub(super) fn of_file(path: &Path, reason: String) -> Self {
        Self {
            origin: ConfigSource::File(path.to_owned()),
            place: None,
            key: String::new(),
            reason,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            ConfigSource::File(path) => write!(formatter, "{}", path.display())?,
            ConfigSource::Environment => formatter.write_str("environment")?,
        }
        if let Some(Place { line, column }) = self.place {
            write!(formatter, ":{line}:{column}")?;
        }
        if !self.key.is_empty() {
            write!(formatter, ": {}", self.key)?;
        }
        write!(formatter, ": {}", self.reason)
    }
}

/// Returns why a file could not be read, to stand behind its name.
pub(super) fn unreadable(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::InvalidData {
        "is not UTF-8; save it as UTF-8".to_owned()
    } else {
        format!("cannot be read: {error}")
    }
}

/// Collects the faults of one configuration.
pub(super) struct Faults {
    origin: ConfigSource,
    found: Vec<(KeyPath, Fault)>,
    /// Keys whose values are variables that are empty, with the names of the variables.
    empty: BTreeMap<KeyPath, String>,
}

impl Faults {
    pub(super) fn new(origin: &ConfigSource) -> Self {
        Self {
            origin: origin.clone(),
            found: Vec::new(),
            empty: BTreeMap::new(),
        }
    }

    /// Notes that the value of a key is an empty variable. That is a fault only where the value is
    /// needed: Docker Compose hands on as empty what nobody has set.
    pub(super) fn note_empty(&mut self, path: KeyPath, variable: &str) {
        self.empty.insert(path, variable.to_owned());
    }

    /// Adds the fault that a secret is missing at a path written with dots. Of one that is an empty
    /// variable that is said instead: the key stands in the file.
    pub(super) fn missing(&mut self, path: &str, reason: &str) {
        let path = keys(path);
        let reason = match self.empty.get(&path) {
            Some(name) => format!("the environment variable {name} is empty; set it (for docker compose in ./.env)"),
            None => reason.to_owned(),
        };
        self.add(path, reason);
    }

    /// Adds a fault, unless there is already one at `path`, above or below it: one mistake gives
    /// one sentence.
    pub(super) fn add(&mut self, path: KeyPath, reason: impl Into<String>) {
        let is_known = |(known, _): &(KeyPath, Fault)| known.starts_with(&path) || path.starts_with(known);
        if self.found.iter().any(is_known) {
            return;
        }
        let fault = Fault {
            origin: self.origin.clone(),
            place: None,
            key: shown(&path),
            reason: reason.into(),
        };
        self.found.push((path, fault));
    }

    /// Adds a fault at a path written with dots.
    pub(super) fn at(&mut self, path: &str, reason: impl Into<String>) {
        self.add(keys(path), reason);
    }

    pub(super) fn of_text(&self, place: Option<Place>, reason: String) -> Fault {
        Fault {
            origin: self.origin.clone(),
            place,
            key: String::new(),
            reason,
        }
    }

    /// Finds the place of each fault, or of the section it belongs to.
    pub(super) fn locate(&mut self, place_of: impl Fn(&[String]) -> Option<Place>) {
        for (path, fault) in &mut self.found {
            fault.place = (1..=path.len()).rev().find_map(|length| place_of(&path[..length]));
        }
    }

    /// Tells whether there is no file.
    pub(super) fn are_of_environment(&self) -> bool {
        self.origin == ConfigSource::Environment
    }

    /// Returns the configuration if there is no fault, else the faults in the order of the file.
    pub(super) fn into_result<T>(self, config: Option<T>) -> Result<T, Vec<Fault>> {
        match config {
            Some(config) if self.found.is_empty() => Ok(config),
            _ => {
                let mut faults: Vec<Fault> = self.found.into_iter().map(|(_, fault)| fault).collect();
                faults.sort_by_key(|fault| fault.place);
                Err(faults)
            }
        }
    }
}

/// Returns a path with dots in the form that people are shown.
pub(super) fn written(path: &str) -> String {
    shown(&keys(path))
}

fn keys(path: &str) -> KeyPath {
    path.split('.').map(str::to_owned).collect()
}

fn shown(path: &[String]) -> String {
    let mut text = String::new();
    for key in path {
        if key.parse::<usize>().is_ok() {
            text.push('[');
            text.push_str(key);
            text.push(']');
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(key);
        }
    }
    text
}
