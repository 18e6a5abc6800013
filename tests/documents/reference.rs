//! The reference is what the program itself says: `docs/reference/commands.md` its help, and
//! `docs/reference/keys.md` the schema of config.yaml. `make reference` writes both anew.

use std::fmt::Write;

use clap::CommandFactory;
use coding_agent::cli::arguments::Arguments;
use coding_agent::config::Config;
use serde_json::Value;

use crate::{read, root};

/// Levels of sections within sections beyond which the schema would be going round in a circle.
const DEEPEST: usize = 8;

/// Compares a page with what it should be; with `UPDATE_REFERENCE` writes it.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever changed the program asks for the new page"
)]
fn compare(path: &str, page: &str) {
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(root().join(path), page).unwrap();
    }
    assert!(
        read(path) == page,
        "{path} is not what the program says: `make reference` writes it anew"
    );
}

// --- commands ------------------------------------------------------------------------------------

fn describe(command: &mut clap::Command, name: &str, page: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(page, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n").trim_end()).unwrap();
    for inner in command.get_subcommands_mut() {
        // That of `help` is every other command again.
        if !inner.is_hide_set() && inner.get_name() != "help" {
            let name = format!("{name} {}", inner.get_name());
            describe(inner, &name, page);
        }
    }
}

#[test]
fn the_reference_of_commands_is_their_help() {
    let mut program = Arguments::command().term_width(100);
    program.build();
    let mut page = "# Commands\n\nWhat `coding-agent COMMAND --help` prints. `coding-agent manual` writes the same as manual pages, and\n\
        [operations](../operations.md) says when to use what.\n"
        .to_owned();
    describe(&mut program, "coding-agent", &mut page);
    compare("docs/reference/commands.md", &page);
}

// --- keys of config.yaml -------------------------------------------------------------------------

/// Follows a reference, and takes what is not null where null is allowed, too. What the place itself
/// says (description, default) counts more than what its type says.
fn resolved(schema: &Value, node: &Value) -> Value {
    let mut found = node.clone();
    for alternatives in ["anyOf", "oneOf"] {
        let first = found[alternatives].as_array().and_then(|all| {
            let is_value = |one: &Value| one.get("const").is_some() || one.get("enum").is_some();
            let is_real = |one: &&Value| one["type"] != "null" && !is_value(one);
            all.iter().find(is_real).cloned()
        });
        if let Some(first) = first {
            found.as_object_mut().unwrap().remove(alternatives);
            merge(&mut found, &first);
        }
    }
    if let Some(target) = found["$ref"].as_str().map(str::to_owned) {
        found.as_object_mut().unwrap().remove("$ref");
        let target = schema.pointer(target.trim_start_matches('#')).unwrap();
        merge(&mut found, &resolved(schema, target));
    }
    found
}

fn merge(found: &mut Value, other: &Value) {
    let found = found.as_object_mut().unwrap();
    for (key, value) in other.as_object().unwrap() {
        found.entry(key).or_insert_with(|| value.clone());
    }
}

/// Returns the values that a key may have.
fn kind(schema: &Value, node: &Value) -> String {
    let named = |value: &Value| format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    // Values with a description stand alone, those without one together.
    let alternatives = node["oneOf"].as_array().into_iter().flatten();
    let values: Vec<String> = alternatives
        .chain([node])
        .flat_map(|one| one["enum"].as_array().into_iter().flatten().chain(one.get("const")))
        .filter(|value| !value.is_null())
        .map(named)
        .collect();
    if !values.is_empty() {
        return values.join(", ");
    }
    let types: Vec<&str> = match &node["type"] {
        Value::Array(types) => types
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| *name != "null")
            .collect(),
        Value::String(name) => vec![name],
        _ => vec!["any"],
    };
    if types == ["array"] {
        return format!("list of {}", kind(schema, &resolved(schema, &node["items"])));
    }
    if types == ["object"] {
        return "map".to_owned();
    }
    types.join(" or ")
}

/// Returns a text as code within a line. One with backticks of its own stands between pairs of
/// them: single ones would end at the first, and the rest be read as Markdown and HTML.
fn code(text: &str) -> String {
    assert!(!text.contains("``"), "{text:?} wants more backticks around it");
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

/// A text as one cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

/// Tells whether `section` cannot be without `key`.
fn requires(section: &Value, key: &str) -> bool {
    section["required"]
        .as_array()
        .is_some_and(|keys| keys.iter().any(|one| one == key))
}

/// Tells whether the schema has a key be left empty.
fn may_be_empty(node: &Value) -> bool {
    let alternatives = node["anyOf"].as_array().into_iter().flatten();
    alternatives.chain([node]).any(|one| match &one["type"] {
        Value::Array(types) => types.iter().any(|name| name == "null"),
        name => name == "null",
    })
}

/// Returns what counts where a key is left out. Fails for a key whose default the schema leaves
/// out, which happens where its type cannot be serialized.
fn default(node: &Value, path: &str, is_required: bool) -> String {
    match node.get("default") {
        Some(value) if !value.is_null() => code(&value.to_string()),
        _ if is_required => "*required*".to_owned(),
        _ => {
            assert!(may_be_empty(node), "the schema does not say the default of {path}");
            "*none*".to_owned()
        }
    }
}

/// Writes a row for each key below `node` that holds no section.
fn rows(schema: &Value, node: &Value, path: &str, is_required: bool, page: &mut String) {
    assert!(path.split('.').count() < DEEPEST, "{path} is too deep");
    let found = resolved(schema, node);
    if let Some(keys) = found["properties"].as_object() {
        for (key, inner) in keys {
            rows(schema, inner, &format!("{path}.{key}"), requires(&found, key), page);
        }
        return;
    }
    for (inner, name) in [(&found["items"], "[]"), (&found["additionalProperties"], ".NAME")] {
        if inner.is_object() && resolved(schema, inner)["properties"].is_object() {
            return rows(schema, inner, &format!("{path}{name}"), is_required, page);
        }
    }
    let description = found["description"].as_str().unwrap_or_default();
    writeln!(
        page,
        "| `{path}` | {} | {} | {} |",
        cell(&kind(schema, &found)),
        cell(&default(node, path, is_required)),
        cell(description)
    )
    .unwrap();
}

#[test]
fn the_reference_of_keys_is_the_schema() {
    let schema = Config::schema();
    let mut page = "# Keys of config.yaml\n\nWhat `coding-agent config schema` prints, as tables. `[]` stands for each entry of a list, `NAME` for a name of your own.\n\
        A key that is left out has its default. *none*: it then has no value, and where that means more than doing without, the description\n\
        says so. *required*: its section cannot be written without it.\n\
        [Configuration](../configuration.md) explains the sections, and [`config.yaml.example`](../../config.yaml.example) has them all in one file.\n"
        .to_owned();
    for (key, node) in schema["properties"].as_object().unwrap() {
        let found = resolved(&schema, node);
        write!(page, "\n## `{key}`\n\n").unwrap();
        if found["properties"].is_object() {
            writeln!(page, "{}\n", cell(found["description"].as_str().unwrap_or_default())).unwrap();
        }
        page.push_str("| key | values | default | meaning |\n|---|---|---|---|\n");
        rows(&schema, node, key, requires(&schema, key), &mut page);
    }
    compare("docs/reference/keys.md", &page);
}
