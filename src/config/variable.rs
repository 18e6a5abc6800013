//! Replaces `${NAME}` and `${NAME:-default}` in values, and `~/` at the beginning of paths.
//!
//! They are replaced after the YAML was read, so a value may hold quotes, colons and line breaks.
//! `$${` stands for `${`. Replaced text is not searched again.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Variables;
use super::fault::Faults;
use super::fault::KeyPath;

/// Paths of the values in which a variable was replaced: their text may be meant as a number or a
/// truth value.
#[derive(Debug, Default)]
pub(super) struct Replaced(BTreeSet<KeyPath>);

impl Replaced {
    pub(super) fn contains(&self, path: &[String]) -> bool {
        self.0.contains(path)
    }
}

/// A variable need not be set in the section of a source of tasks that is not used: the shipped
/// example names the token of one that many people do not have. Its value is empty then.
///
/// `file_key` names the key that takes a file in the place of a secret: whoever lacks a secret's
/// variable is not told to write a default, which would be a secret in the configuration.
pub(super) fn replace(
    value: &mut Value,
    environment: Variables<'_>,
    file_key: impl Fn(&[String]) -> Option<String>,
    faults: &mut Faults,
) -> Replaced {
    let unused = unused_sources(value);
    let mut replaced = Replaced::default();
    walk(
        value,
        &mut Vec::new(),
        &mut |path, text| match expand(text, environment, file_key(path).as_deref()) {
            Ok(Some(expanded)) => {
                if let Some(name) = whole_variable(text).filter(|_| expanded.trim().is_empty()) {
                    faults.note_empty(path.clone(), name);
                }
                replaced.0.insert(path.clone());
                *text = expanded;
            }
            Ok(None) => {}
            Err(_) if path.first().is_some_and(|section| unused.contains(&section.as_str())) => text.clear(),
            Err(reason) => faults.add(path.clone(), reason),
        },
    );
    replaced
}

/// Replaces `~/` at the beginning of a path by the home of the user, as a shell does.
pub(super) fn expand_home(value: &mut Value, environment: Variables<'_>, faults: &mut Faults) {
    let home = environment("HOME").filter(|home| !home.is_empty());
    walk(value, &mut Vec::new(), &mut |path, text| {
        let Some(below) = text.strip_prefix("~/").filter(|_| is_path(path)) else {
            return;
        };
        match &home {
            Some(home) => *text = format!("{home}/{below}"),
            None => faults.add(
                path.clone(),
                "begins with `~/`, and HOME is not set; write the whole path",
            ),
        }
    });
}

/// Tells whether the value of a key is a path of this machine.
fn is_path(path: &[String]) -> bool {
    const PATHS: [&[&str]; 4] = [
        &["state_dir"],
        &["logs", "directory"],
        &["command_executor", "executor_path"],
        &["environment", "kubernetes", "kubeconfig"],
    ];
    let is_file = match path {
        [.., section, key] => key.ends_with("_file") || key == "dockerfile" || section == "persona_files",
        [key] => key.ends_with("_file"),
        [] => false,
    };
    // What stands in `extra_body` is the model server's.
    let is_own = !path.iter().any(|part| part == "extra_body");
    is_own && (is_file || PATHS.iter().any(|known| path == *known))
}

/// Returns the sections of sources that `task_sources` leaves out; none where a variable in it may
/// name them.
pub(super) fn unused_sources(value: &Value) -> Vec<&'static str> {
    let named: Vec<&str> = match value.get("task_sources").and_then(Value::as_array) {
        Some(named) => named.iter().filter_map(Value::as_str).collect(),
        None => return Vec::new(),
    };
    if named.iter().any(|name| name.contains("${")) {
        return Vec::new();
    }
    let sections = ["github", "gitlab"].into_iter();
    sections.filter(|section| !named.contains(section)).collect()
}

fn walk(value: &mut Value, path: &mut KeyPath, visit: &mut dyn FnMut(&KeyPath, &mut String)) {
    match value {
        Value::String(text) => visit(path, text),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                path.push(index.to_string());
                walk(item, path, visit);
                path.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                path.push(key.clone());
                walk(item, path, visit);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the name of the variable of which the whole text is made.
fn whole_variable(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("${")?.strip_suffix('}')?;
    let name = inside.split_once(":-").map_or(inside, |(name, _)| name);
    is_name(name).then_some(name)
}

/// Returns the text with its variables replaced, or `None` if it has none. `file_key` is the key
/// that takes a file in the place of the text, if it is a secret.
fn expand(text: &str, environment: Variables<'_>, file_key: Option<&str>) -> Result<Option<String>, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            expanded.push_str(&rest[..start - 1]);
            expanded.push_str("${");
            rest = &rest[start + 2..];
            continue;
        }
        expanded.push_str(&rest[..start]);
        let Some((inside, after)) = rest[start + 2..].split_once('}') else {
            return Err("`${` has no closing `}`; write `$${` where you mean the characters themselves".to_owned());
        };
        expanded.push_str(&value_of(inside, environment, file_key)?);
        rest = after;
    }
    if rest.len() == text.len() {
        return Ok(None);
    }
    expanded.push_str(rest);
    Ok(Some(expanded))
}

fn value_of(inside: &str, environment: Variables<'_>, file_key: Option<&str>) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) {
        return Err(format!(
            "`${{{inside}}}` is not a variable; write `${{NAME}}` or `${{NAME:-default}}`, or `$${{` for the characters themselves"
        ));
    }
    // As in the shell: with a default, empty counts as unset.
    match (environment(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(match file_key {
            Some(key) => format!(
                "the environment variable {name} is not set; set it, or name a file that holds the secret in `{key}`"
            ),
            None => {
                format!("the environment variable {name} is not set; set it, or give a default: `${{{name}:-default}}`")
            }
        }),
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.chars().all(is_part) && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Option<&str>, &str>) {
        let environment = |name: &str| match name {
            "NAME" => Some("a \"b\": ${c}\n".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        match (expand(text, &environment, None), expected) {
            (Ok(expanded), Ok(expected)) => assert_eq!(expanded.as_deref(), expected),
            (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{reason}"),
            (result, expected) => panic!("{text} gave {result:?} and not {expected:?}"),
        }
    }

    #[test]
    fn variables_are_replaced_wherever_they_stand() {
        check("x${NAME}y", Ok(Some("xa \"b\": ${c}\ny")));
        check("${EMPTY}", Ok(Some("")));
        check("${EMPTY:-x}${UNSET:-y:-z}", Ok(Some("xy:-z")));
        check("${UNSET:-}", Ok(Some("")));
        check("$NAME costs 5$", Ok(None));
        check("$${NAME} ${EMPTY}", Ok(Some("${NAME} ")));
    }

    #[test]
    fn what_cannot_be_replaced_is_explained() {
        check("${UNSET}", Err("UNSET is not set"));
        check("${NAME", Err("no closing"));
        check("${1 + 1}", Err("is not a variable"));
        check("${}", Err("is not a variable"));
    }
}
