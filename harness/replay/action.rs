//! A recorded command, as a call of one of the program's tools.

use serde_json::{Value, json};

/// Commands of SWE-agent's first versions that work on a window into a file. The program has no
/// such window, so they cannot be played.
const WINDOW: [&str; 9] = [
    "open",
    "goto",
    "scroll_up",
    "scroll_down",
    "edit",
    "create",
    "search_dir",
    "search_file",
    "find_file",
];

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A tool with its arguments.
    Call(&'static str, Value),
    /// A command of the other agent that no tool of ours is like.
    Unknown(String),
}

impl Action {
    /// Returns the shell command, if it is one.
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::Call("workspace/execute_command", arguments) => arguments["command"].as_str(),
            _ => None,
        }
    }

    /// Returns it in a line, for a list.
    pub fn in_words(&self) -> String {
        match self {
            Self::Call(tool, arguments) => self
                .command()
                .map_or_else(|| format!("{tool} {arguments}"), str::to_owned),
            Self::Unknown(text) => text.clone(),
        }
    }

    /// Returns the same, with a folder listed that was to be shown as if it were a file: the other
    /// agent's editor shows both.
    pub fn listing_folders(self, is_folder: impl Fn(&str) -> bool) -> Self {
        match &self {
            Self::Call("workspace/read_file", arguments) if arguments["path"].as_str().is_some_and(is_folder) => {
                Self::Call("workspace/list_files", json!({ "path": arguments["path"] }))
            }
            _ => self,
        }
    }

    /// Returns the same on a repository that lies elsewhere.
    pub fn moved(&self, from: &str, to: &str) -> Self {
        match self {
            Self::Call(tool, arguments) => {
                let mut arguments = arguments.clone();
                for value in arguments.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
                    if let Value::String(text) = value {
                        *text = text.replace(from, to);
                    }
                }
                Self::Call(tool, arguments)
            }
            Self::Unknown(text) => Self::Unknown(text.clone()),
        }
    }
}

/// Reads a command of SWE-agent: its editor becomes our file tools, its window is unknown, and all
/// else is the shell's.
pub fn of_swe_agent(written: &str) -> Action {
    let first = written.split_whitespace().next().unwrap_or_default();
    if first == "str_replace_editor" {
        return edit(&words(written)).unwrap_or_else(|| Action::Unknown(written.to_owned()));
    }
    if WINDOW.contains(&first) {
        return Action::Unknown(written.to_owned());
    }
    Action::Call("workspace/execute_command", json!({ "command": written }))
}

/// Reads `str_replace_editor COMMAND PATH --option value ...`.
fn edit(words: &[String]) -> Option<Action> {
    let [_, command, path, rest @ ..] = words else {
        return None;
    };
    let option = |name: &str| {
        let place = rest.iter().position(|word| word == name)?;
        rest.get(place + 1).map(String::as_str)
    };
    let number = |name: &str| option(name)?.parse::<i64>().ok();
    Some(match command.as_str() {
        "view" => {
            let range = rest.iter().position(|word| word == "--view_range");
            let range = range.and_then(|place| {
                let numbers = rest.get(place + 1..place + 3)?;
                numbers
                    .iter()
                    .map(|word| word.parse::<i64>().ok())
                    .collect::<Option<Vec<_>>>()
            });
            match range {
                Some(range) => Action::Call("workspace/read_file", json!({ "path": path, "view_range": range })),
                None => Action::Call("workspace/read_file", json!({ "path": path })),
            }
        }
        "create" => Action::Call(
            "workspace/write_file",
            json!({ "path": path, "content": option("--file_text")?, "mode": "overwrite" }),
        ),
        "str_replace" => Action::Call(
            "workspace/str_replace",
            json!({ "path": path, "old": option("--old_str")?, "new": option("--new_str").unwrap_or_default() }),
        ),
        "insert" => Action::Call(
            "workspace/insert",
            json!({ "path": path, "line": number("--insert_line")?, "text": option("--new_str")? }),
        ),
        "undo_edit" => Action::Call("workspace/undo_edit", json!({ "path": path })),
        _ => return None,
    })
}

/// Splits a command line as a shell does, without anything that a shell would put in.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => word
                .get_or_insert_default()
                .extend(letters.by_ref().take_while(|next| *next != '\'')),
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(next) = letters.next().filter(|next| *next != '"') {
                    match (next, letters.clone().next()) {
                        ('\\', Some(after @ ('"' | '\\' | '$' | '`'))) => {
                            word.push(after);
                            letters.next();
                        }
                        _ => word.push(next),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            letter if letter.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_editor_becomes_our_file_tools() {
        let view = of_swe_agent("str_replace_editor view /src/a.py --view_range 3 9");
        assert_eq!(
            view.moved("/src", "/there"),
            Action::Call(
                "workspace/read_file",
                json!({ "path": "/there/a.py", "view_range": [3, 9] })
            )
        );
        let replace =
            of_swe_agent("str_replace_editor str_replace /a.py --old_str 'it'\\''s \"a\"' --new_str \"b \\\"c\\\"\"");
        assert_eq!(
            replace,
            Action::Call(
                "workspace/str_replace",
                json!({ "path": "/a.py", "old": "it's \"a\"", "new": "b \"c\"" })
            )
        );
        assert_eq!(replace.command(), None);
    }

    #[test]
    fn a_folder_that_is_viewed_is_listed() {
        let view = |path: &str| {
            let action = of_swe_agent(&format!("str_replace_editor view {path}"));
            action.listing_folders(|path| path == "/src")
        };
        assert_eq!(
            view("/src"),
            Action::Call("workspace/list_files", json!({ "path": "/src" }))
        );
        assert_eq!(
            view("/src/a.py"),
            Action::Call("workspace/read_file", json!({ "path": "/src/a.py" }))
        );
    }

    #[test]
    fn all_else_is_the_shells_but_for_the_window() {
        let shell = of_swe_agent("grep -n 'x y' a.py | head");
        assert_eq!(shell.command(), Some("grep -n 'x y' a.py | head"));
        assert_eq!(of_swe_agent("goto 12"), Action::Unknown("goto 12".to_owned()));
        assert_eq!(
            of_swe_agent("str_replace_editor dance /a"),
            Action::Unknown("str_replace_editor dance /a".to_owned())
        );
    }
}
