//! Recorded edits by the shell, as calls of the file tools: `EDITS_AS_TOOLS=1` tries these on what
//! real agents write. Only what means the same is changed: a file that a heredoc writes as it
//! stands, and a word for word replacement in a line that the commit has exactly once.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use crate::action::Action;
use crate::trajectory::Step;

/// A heredoc without anything before or behind it: `cat > path <<'END'`, in either order.
static HEREDOC: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let target =
        r"(?:cat\s*>\s*(?P<first>[\w./-]+)\s*<<\s*(?P<mark>\S+)|cat\s*<<\s*(?P<other>\S+)\s*>\s*(?P<second>[\w./-]+))";
    Regex::new(&format!(
        r"^(?:cd (?P<folder>[\w./-]+) && )?{target}\n(?s:(?P<rest>.*))$"
    ))
    .ok()
});
/// `sed -i 's/old/new/' path`, with any sign between.
static SED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?:cd (?P<folder>[\w./-]+) && )?sed -i '(?:\d+)?s(?P<script>[^'\n]+)'\s+(?P<path>[\w./-]+)$").ok()
});
/// Signs with a meaning of their own in a pattern of sed, or in what takes its place.
const SPECIAL: &str = "\\.*[]^$&+?(){}|";

/// Returns the steps with edits as calls of file tools. `content_of` tells what a file of the
/// commit has; one that was touched before is left to the shell.
pub fn as_tools(steps: &[Step], folder: &str, content_of: impl Fn(&str) -> Option<String>) -> Vec<Step> {
    let mut touched: HashSet<String> = HashSet::new();
    let steps = steps.iter().map(|step| {
        let command = step.action.command().unwrap_or_default().trim();
        let action = written(command, folder).or_else(|| {
            let path = path_of_sed(command, folder)?;
            let is_fresh = !touched.contains(path.rsplit('/').next()?);
            replaced(command, folder, &content_of(&path)?).filter(|_| is_fresh)
        });
        // Whoever names a file may change it.
        touched.extend(words(command));
        Step {
            action: action.unwrap_or_else(|| step.action.clone()),
            recorded: step.recorded.clone(),
        }
    });
    steps.collect()
}

/// Returns the last parts of all paths that a command names.
fn words(command: &str) -> impl Iterator<Item = String> {
    let is_edge = |letter: char| !letter.is_alphanumeric() && !"._-".contains(letter);
    command.split(is_edge).map(str::to_owned)
}

fn relative(folder: &str, from: Option<&str>, path: &str) -> Option<String> {
    let path = match from {
        Some(from) if !path.starts_with('/') => format!("{}/{path}", from.trim_end_matches('/')),
        _ => path.to_owned(),
    };
    let path = path.strip_prefix(folder).unwrap_or(&path).trim_start_matches('/');
    let path = path.trim_start_matches("./");
    let is_within = !path.is_empty() && !path.split('/').any(|part| part == "..");
    is_within.then(|| path.to_owned())
}

fn written(command: &str, folder: &str) -> Option<Action> {
    let found = HEREDOC.as_ref()?.captures(command)?;
    let named = |one: &str, other: &str| found.name(one).or_else(|| found.name(other)).map(|part| part.as_str());
    let (path, mark) = (named("first", "second")?, named("mark", "other")?);
    let bare = mark.trim_matches(['\'', '"']);
    let rest = &found["rest"];
    // The end of the command is the end of the heredoc.
    let content = rest.strip_suffix(bare)?;
    let is_whole = content.is_empty() || content.ends_with('\n');
    let ends_earlier = content.lines().any(|line| line == bare);
    let is_plain = bare != mark || !content.contains(['$', '`', '\\']);
    let is_outside = path.starts_with('/') && !path.starts_with(folder);
    if !is_whole || ends_earlier || !is_plain || is_outside {
        return None;
    }
    let path = relative(folder, found.name("folder").map(|part| part.as_str()), path)?;
    let arguments = json!({ "path": path, "content": content, "mode": "overwrite" });
    Some(Action::Call("workspace/write_file", arguments))
}

fn path_of_sed(command: &str, folder: &str) -> Option<String> {
    let found = SED.as_ref()?.captures(command)?;
    relative(folder, found.name("folder").map(|part| part.as_str()), &found["path"])
}

fn replaced(command: &str, folder: &str, content: &str) -> Option<Action> {
    let found = SED.as_ref()?.captures(command)?;
    let script = &found["script"];
    let sign = script.chars().next()?;
    let parts: Vec<&str> = script.split(sign).collect();
    let ["", old, new, "" | "g"] = parts.as_slice() else {
        return None;
    };
    let is_literal = |text: &str| !text.chars().any(|letter| SPECIAL.contains(letter));
    let is_once = !old.is_empty() && content.matches(old).count() == 1;
    if !is_once || !is_literal(old) || new.contains(['\\', '&']) {
        return None;
    }
    let arguments = json!({ "path": path_of_sed(command, folder)?, "old": old, "new": new });
    Some(Action::Call("workspace/str_replace", arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trajectory::Recorded;

    fn converted(commands: &[&str]) -> Vec<Action> {
        let step = |command: &&str| Step {
            action: Action::Call("workspace/execute_command", json!({ "command": command })),
            recorded: Recorded {
                status: Some(0),
                output: String::new(),
                tail: None,
            },
        };
        let steps: Vec<Step> = commands.iter().map(step).collect();
        let content_of = |path: &str| (path == "src/a.py").then(|| "x = 1\ny = 2\ny = 3\n".to_owned());
        let steps = as_tools(&steps, "/testbed", content_of);
        steps.into_iter().map(|step| step.action).collect()
    }

    fn is_shell(action: &Action) -> bool {
        action.command().is_some()
    }

    #[test]
    fn a_heredoc_becomes_a_written_file() {
        for command in [
            "cat > src/new.py <<'EOF'\nprint(\"$x\")\nEOF",
            "cat <<'EOF' > /testbed/src/new.py\nprint(\"$x\")\nEOF",
            "cd /testbed && cat > src/new.py << \"EOF\"\nprint(\"$x\")\nEOF",
        ] {
            let wanted = json!({ "path": "src/new.py", "content": "print(\"$x\")\n", "mode": "overwrite" });
            assert_eq!(
                converted(&[command]),
                [Action::Call("workspace/write_file", wanted)],
                "{command}"
            );
        }
        for command in [
            "cat > a.py <<EOF\n$HOME\nEOF",
            "cat > a.py <<'EOF'\nx\nEOF\npython a.py",
            "cat > /tmp/a.py <<'EOF'\nx\nEOF",
            "cat >> a.py <<'EOF'\nx\nEOF",
        ] {
            assert!(is_shell(&converted(&[command])[0]), "{command}");
        }
    }

    #[test]
    fn a_replacement_word_for_word_becomes_an_edit() {
        let wanted = json!({ "path": "src/a.py", "old": "x = 1", "new": "x = 2" });
        let wanted = Action::Call("workspace/str_replace", wanted);
        assert_eq!(
            converted(&["sed -i 's/x = 1/x = 2/' src/a.py"]),
            std::slice::from_ref(&wanted)
        );
        assert_eq!(
            converted(&["cd /testbed/src && sed -i 's|x = 1|x = 2|g' a.py"]),
            [wanted]
        );
        for command in [
            "sed -i 's/y/z/' src/a.py",
            "sed -i 's/x.*/z/' src/a.py",
            "sed -i '2d' src/a.py",
            "sed -i 's/x = 1/x = 2/' src/other.py",
        ] {
            assert!(is_shell(&converted(&[command])[0]), "{command}");
        }
        let twice = ["sed -i 's/x = 1/x = 2/' src/a.py", "sed -i 's/y = 2/y = 4/' src/a.py"];
        assert!(is_shell(&converted(&twice)[1]));
    }
}
