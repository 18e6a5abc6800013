//! Secrets in files: `<key>_file` instead of `<key>`.

use std::path::Path;
use std::path::PathBuf;

use secrecy::SecretString;
use serde_json::Map;
use serde_json::Value;

use super::Config;
use super::fault::{self, Faults, KeyPath};
use super::variable::{Replaced, unused_sources};

/// Section and key of every secret. The variables of programs have names that the user chooses.
pub(super) const SECRETS: [(&[&str], &str); 15] = [
    (&["github"], "token"),
    (&["gitlab"], "token"),
    (&["llm", "openai"], "api_key"),
    (&["llm", "anthropic"], "api_key"),
    (&["llm", "models", ANY], "api_key"),
    (&["http", "users", ANY], "token"),
    (&["http", "webhooks", "github"], "secret"),
    (&["http", "webhooks", "gitlab"], "token"),
    (&["http", "webhooks", "gitlab"], "signing_secret"),
    (&["chat", "slack"], "app_token"),
    (&["chat", "slack"], "bot_token"),
    (&["chat", "slack"], "signing_secret"),
    (&["chat", "line"], "channel_secret"),
    (&["chat", "line"], "channel_access_token"),
    (&["store"], "password"),
];
/// Sections whose entries, under names that the user chooses, are programs with variables.
const NAMED_PROGRAMS: [[&str; 2]; 2] = [["llm", "models"], ["chat", "ops"]];
/// Stands in a path for each entry of a section whose names the user chooses.
pub(super) const ANY: &str = "*";
const ENDING: &str = "_file";
const LARGEST_FILE: u64 = 64 * 1024;

impl Config {
    /// Returns the secrets that the redactor removes from texts.
    ///
    /// The variables of programs are included only if their names suggest a secret: to blot out
    /// each `HOME=/root` would make every text unreadable.
    pub fn secrets(&self) -> Vec<SecretString> {
        let github = self.github.entries.iter().map(|host| &host.token);
        let tokens = github.chain(self.gitlab.entries.iter().map(|host| &host.token));
        let keys = [
            &self.llm.openai.api_key,
            &self.llm.anthropic.api_key,
            &self.store.password,
        ];
        let named = self.llm.models.values().map(|model| &model.api_key);
        let models = self.llm.all_models();
        let of_models = models.iter().flat_map(|model| &model.options.headers);
        let headers = of_models.chain(&self.traces.headers);
        let of_servers = self.mcp_servers.iter().flat_map(|server| &server.env);
        let of_programs = self.llm.models.values().flat_map(|model| &model.env);
        let of_operations = self.chat.ops.values().flat_map(|command| &command.env);
        let variables = of_servers.chain(of_programs).chain(of_operations);
        tokens
            .chain(keys)
            .chain(named)
            .flatten()
            .chain(
                variables
                    .chain(headers)
                    .filter(|(name, _)| speaks_of_a_secret(name))
                    .map(|(_, value)| value),
            )
            .chain(self.http.secrets())
            .chain(self.chat.secrets())
            .cloned()
            .collect()
    }
}

/// Returns the files below `folder` that hold secrets: those that `<key>_file` names, and the key
/// of a GitHub App. The paths are those of the text, before variables are replaced, so a path that
/// a variable holds is not among them.
pub(super) fn named(value: &Value, folder: &Path) -> Vec<PathBuf> {
    let in_sections = SECRETS.iter().flat_map(|(section, key)| {
        let sections = places(value, section)
            .into_iter()
            .filter_map(|place| value.pointer(&pointer(&place)));
        sections.filter_map(move |section| section.get(format!("{key}{ENDING}"))?.as_str())
    });
    let variables = variables_of_programs(value).flatten();
    let in_variables = variables.filter_map(|(name, file)| file.as_str().filter(|_| name.ends_with(ENDING)));
    let apps = places(value, &["github"]);
    let of_app = apps.iter().filter_map(|place| {
        value
            .pointer(&pointer(place))?
            .pointer("/app/private_key_file")?
            .as_str()
    });
    let named = in_sections.chain(in_variables).chain(of_app);
    named.map(|file| folder.join(file)).collect()
}

/// Tells whether the text itself holds a secret that is not a `${VARIABLE}`.
pub(super) fn is_in_text(value: &Value) -> bool {
    let is_written = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| !text.is_empty() && !text.contains("${"))
    };
    let in_sections = SECRETS.iter().any(|(section, key)| {
        let sections = places(value, section).into_iter();
        let mut sections = sections.filter_map(|place| value.pointer(&pointer(&place)));
        sections.any(|section| section.get(key).is_some_and(is_written))
    });
    in_sections
        || variables_of_programs(value)
            .flatten()
            .any(|(name, value)| speaks_of_a_secret(name) && !name.ends_with(ENDING) && is_written(value))
}

/// Adds a fault for each secret that is written as a shell writes a variable, which nothing
/// replaces here.
pub(super) fn check_spelling(value: &Value, replaced: &Replaced, faults: &mut Faults) {
    let unused = unused_sources(value);
    let is_used = |section: &[&'static str]| section.first().is_none_or(|first| !unused.contains(first));
    for (section, key) in SECRETS.into_iter().filter(|(section, _)| is_used(section)) {
        for place in places(value, section) {
            let path = [place.as_slice(), &[key.to_owned()]].concat();
            let text = value.pointer(&pointer(&path)).and_then(Value::as_str);
            if let Some(name) = text.and_then(variable_of_shell)
                && !replaced.contains(&path)
            {
                let reason = format!(
                    "is the text `${name}`; write `${{{name}}}` for the variable, or put a secret that begins so into a \
                     file and name that in `{key}{ENDING}`"
                );
                faults.add(path, reason);
            }
        }
    }
}

/// Returns the name of the variable of which the whole text is made, as in `$GITHUB_TOKEN`.
fn variable_of_shell(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix('$')?;
    let is_first = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let is_name = name.starts_with(is_first) && name.chars().all(|letter| is_first(letter) || letter.is_ascii_digit());
    is_name.then_some(name)
}

/// Returns the paths of a section: one, one for each place of a list, or one for each name.
fn places(value: &Value, section: &[&str]) -> Vec<KeyPath> {
    if let Some((&ANY, parent)) = section.split_last() {
        let parent: KeyPath = parent.iter().map(|&part| part.to_owned()).collect();
        let entries = value.pointer(&pointer(&parent)).and_then(Value::as_object);
        let names = entries.into_iter().flat_map(Map::keys);
        return names
            .map(|name| [parent.as_slice(), std::slice::from_ref(name)].concat())
            .collect();
    }
    let path: KeyPath = section.iter().map(|&part| part.to_owned()).collect();
    match value.pointer(&pointer(&path)) {
        Some(Value::Array(entries)) => {
            let entry = |index: usize| [path.as_slice(), &[index.to_string()]].concat();
            (0..entries.len()).map(entry).collect()
        }
        Some(_) => vec![path],
        None => Vec::new(),
    }
}

fn pointer(path: &[String]) -> String {
    format!("/{}", path.join("/"))
}

/// Returns the key that takes a file in the place of the secret at a path, if there is a secret.
pub(super) fn file_key(path: &[String]) -> Option<String> {
    let (key, section) = path.split_last()?;
    // Of a list of hosts the place of one stands between the section and the key.
    let section = match section.split_last() {
        Some((place, list)) if place.parse::<usize>().is_ok() => list,
        Some(_) | None => section,
    };
    let is_it = |known: &[&str]| {
        let mut parts = known.iter().zip(section);
        known.len() == section.len() && parts.all(|(known, part)| *known == ANY || *known == part.as_str())
    };
    let is_secret = SECRETS.into_iter().any(|(known, name)| name == key && is_it(known));
    is_secret.then(|| format!("{key}{ENDING}"))
}

/// Returns the variables of each program of the operator's that is started here: tool servers,
/// programs that answer for a model, and commands of the chat.
fn variables_of_programs(value: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let servers = value.get("mcp_servers").and_then(Value::as_array);
    let sections = NAMED_PROGRAMS.into_iter();
    let named = sections.filter_map(move |[first, second]| value.pointer(&format!("/{first}/{second}"))?.as_object());
    servers
        .into_iter()
        .flatten()
        .chain(named.flat_map(Map::values))
        .filter_map(|program| program.get("env")?.as_object())
}

/// Tells whether the name of a variable suggests that its value is a secret.
fn speaks_of_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET", "PASS", "CREDENTIAL", "AUTH"]
        .iter()
        .any(|word| name.contains(word))
}

/// Replaces each `<key>_file` by `<key>` with the file's content, and removes secrets that are
/// empty.
pub(super) fn read_all(value: &mut Value, folder: &Path, faults: &mut Faults) {
    for (section, key) in SECRETS {
        for place in places(value, section) {
            if let Some(map) = value.pointer_mut(&pointer(&place)).and_then(Value::as_object_mut) {
                read(map, key, &place, folder, faults);
                trim(map, key);
            }
        }
    }
    let servers = value.get_mut("mcp_servers").and_then(Value::as_array_mut);
    for (index, server) in servers.into_iter().flatten().enumerate() {
        let path = ["mcp_servers".to_owned(), index.to_string(), "env".to_owned()];
        read_variables(server, &path, folder, faults);
    }
    for [first, second] in NAMED_PROGRAMS {
        let programs = value.pointer_mut(&format!("/{first}/{second}"));
        let programs = programs.and_then(Value::as_object_mut);
        for (name, program) in programs.into_iter().flatten() {
            let path = [first, second, name.as_str(), "env"].map(str::to_owned);
            read_variables(program, &path, folder, faults);
        }
    }
}

/// Reads the files that variables of a program name.
fn read_variables(program: &mut Value, path: &[String], folder: &Path, faults: &mut Faults) {
    let Some(variables) = program.get_mut("env").and_then(Value::as_object_mut) else {
        return;
    };
    let names: Vec<String> = variables
        .keys()
        .filter_map(|name| name.strip_suffix(ENDING).map(str::to_owned))
        .collect();
    for name in names {
        read(variables, &name, path, folder, faults);
    }
}

fn read(map: &mut Map<String, Value>, key: &str, section: &[String], folder: &Path, faults: &mut Faults) {
    let file_key = format!("{key}{ENDING}");
    let path_of = |key: &str| [section, &[key.to_owned()]].concat();
    let file = match map.remove(&file_key) {
        None | Some(Value::Null) => return,
        Some(Value::String(file)) => folder.join(file),
        Some(_) => return faults.add(path_of(&file_key), "must be the path of a file"),
    };
    if map.get(key).is_some_and(|value| !value.is_null()) {
        let reason = format!("`{key}` is given too; leave one of them out");
        return faults.add(path_of(&file_key), reason);
    }
    match content(&file).and_then(|content| of_one_line(content, section)) {
        Ok(content) => {
            map.insert(key.to_owned(), content.into());
        }
        Err(reason) => {
            faults.add(path_of(&file_key), format!("the file {} {reason}", file.display()));
            // So that it is not reported as missing, too. A configuration with faults is never
            // returned.
            map.insert(key.to_owned(), "unreadable".into());
        }
    }
}

fn content(file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| fault::unreadable(&error);
    if std::fs::metadata(file).map_err(unreadable)?.len() > LARGEST_FILE {
        return Err("is larger than 64 KiB; this is not a secret".to_owned());
    }
    let content = std::fs::read_to_string(file).map_err(unreadable)?;
    match content.trim() {
        "" => Err("is empty".to_owned()),
        secret => Ok(secret.to_owned()),
    }
}

/// Refuses a secret of several lines. What the variables of programs hold is theirs.
fn of_one_line(content: String, section: &[String]) -> Result<String, String> {
    let is_variable = section.last().is_some_and(|name| name == "env");
    match content.lines().count() {
        lines if lines > 1 && !is_variable => Err(format!("has {lines} lines; a secret is one")),
        _ => Ok(content),
    }
}

/// Trims a secret, since a variable often ends with a line break, and removes an empty one.
fn trim(map: &mut Map<String, Value>, key: &str) {
    if let Some(Value::String(secret)) = map.get_mut(key) {
        *secret = secret.trim().to_owned();
        if secret.is_empty() {
            map.remove(key);
        }
    }
}
