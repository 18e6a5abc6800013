//! The line of a command's result that tells the model which files the command changed.
//!
//! A command that only looks says nothing if it changed nothing.

use serde_json::Value;

use crate::conversation::ToolCall;
use crate::plain::printable;
use crate::tool::ToolOutput;

/// Longest path that is shown, in characters.
const LONGEST: usize = 120;
/// Most changes that are shown; the executor names fewer.
const MOST: usize = 20;

/// Programs that only read.
const LOOKING: [&str; 21] = [
    "cat", "false", "test", "true", "cd", "du", "echo", "file", "find", "git", "grep", "head", "ls", "nl", "pwd", "rg",
    "sort", "tail", "tree", "wc", "which",
];

/// Returns the line for a command of the model; `None` if there is nothing to say.
pub(crate) fn line(call: &ToolCall, output: &ToolOutput) -> Option<String> {
    let report = output.structured.as_ref()?.get("changed")?;
    let changes: Vec<String> = report["changes"]
        .as_array()?
        .iter()
        .take(MOST)
        .filter_map(words)
        .collect();
    if changes.is_empty() {
        let command = call.args.get("command").and_then(Value::as_str).unwrap_or_default();
        return (!only_looks(command)).then(|| "[no file changed]".to_owned());
    }
    let more = match report["more"].as_u64() {
        Some(more @ 1..) => format!(", and {more} more"),
        _ => String::new(),
    };
    Some(format!("[changed: {}{more}]", changes.join(", ")))
}

/// Returns `output` with `line` above its last line, which says how the command ended.
pub(crate) fn above_ending(output: &str, line: &str) -> String {
    match output.rsplit_once('\n') {
        Some((said, ending)) => format!("{said}\n{line}\n{ending}"),
        None => format!("{line}\n{output}"),
    }
}

/// Returns a change in words: `src/a.py +3 -1`. The text comes from the container.
fn words(change: &Value) -> Option<String> {
    let path: String = change["path"].as_str()?.chars().take(LONGEST).collect();
    let path = printable(&path);
    let how = match change["how"].as_str()? {
        "changed" => String::new(),
        "mode" => return Some(format!("mode of {path}")),
        "new" => "new ".to_owned(),
        _ => "deleted ".to_owned(),
    };
    let lines: String = [("added", '+'), ("removed", '-')]
        .iter()
        .filter_map(|(field, sign)| {
            change[*field]
                .as_u64()
                .filter(|count| *count > 0)
                .map(|count| format!(" {sign}{count}"))
        })
        .collect();
    Some(format!("{how}{path}{lines}"))
}

/// Tells whether, as far as its text shows, a command only reads.
fn only_looks(command: &str) -> bool {
    let command = ["2>&1", ">&2", "2>/dev/null", ">/dev/null"]
        .iter()
        .fold(command.to_owned(), |command, stream| command.replace(stream, ""));
    if command.contains('>')
        || command.contains("-exec")
        || command.contains("-delete")
        || command.contains('`')
        || command.contains("$(")
    {
        return false;
    }
    command.split(['|', ';', '&', '\n']).all(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            []
            | ["sed", "-n", ..]
            | [
                "git",
                "status" | "log" | "diff" | "show" | "blame" | "grep" | "ls-files",
                ..,
            ] => true,
            ["git", ..] => false,
            [program, ..] => LOOKING.contains(program),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(command: &str, changed: &Value) -> Option<String> {
        let call = ToolCall {
            id: String::new(),
            tool: "workspace/execute_command".to_owned(),
            args: serde_json::Map::from_iter([("command".to_owned(), command.into())]),
        };
        let output = ToolOutput {
            text: String::new(),
            is_error: false,
            structured: Some(json!({ "exit_code": 0, "changed": changed })),
        };
        line(&call, &output)
    }

    #[test]
    fn changes_are_one_line() {
        let changes = json!({ "changes": [
            { "path": "a.py", "how": "changed", "added": 3, "removed": 1 },
            { "path": "b\n.txt", "how": "new", "added": 10, "removed": 0 },
            { "path": "c.png", "how": "deleted" },
            { "path": "run.sh", "how": "mode" },
        ], "more": 2 });
        assert_eq!(
            said("make", &changes).unwrap(),
            "[changed: a.py +3 -1, new b\u{fffd}.txt +10, deleted c.png, mode of run.sh, and 2 more]"
        );
        assert_eq!(said("make", &Value::Null), None);
        assert_eq!(
            above_ending("out\n[exit code 0, 1 ms]", "[x]"),
            "out\n[x]\n[exit code 0, 1 ms]"
        );
        assert_eq!(above_ending("[exit code 0, 1 ms]", "[x]"), "[x]\n[exit code 0, 1 ms]");
    }

    #[test]
    fn that_nothing_changed_is_said_of_commands_that_could_have() {
        let nothing = || json!({ "changes": [], "more": 0 });
        for command in [
            "sed -i s/a/b/ x",
            "echo a > b",
            "git checkout x",
            "find . -delete",
            "python3 fix.py",
            "cat `x`",
        ] {
            assert_eq!(
                said(command, &nothing()).as_deref(),
                Some("[no file changed]"),
                "{command}"
            );
        }
        for command in [
            "ls -la",
            "cd src && cat a.py | head -3",
            "sed -n 1,5p a",
            "git diff; git log -1 2>/dev/null",
            "grep -rn x .",
        ] {
            assert_eq!(said(command, &nothing()), None, "{command}");
        }
    }
}
