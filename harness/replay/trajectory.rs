//! The recording of another agent's work on an issue: its commands, the result of each, and the
//! difference it ended with. Two forms are read: mini-swe-agent's (`.traj.json`, with commands in
//! code blocks, in `extra.actions`, or as native calls) and SWE-agent's (`.traj`).

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use crate::action::{self, Action};

/// The folder of the repository in the recorded container, unless the recording says another.
const USUAL_FOLDER: &str = "/testbed";

pub struct Trajectory {
    /// The name of the recording, such as `psf__requests-1142`.
    pub name: String,
    pub task: String,
    /// The folder of the repository in the recorded container.
    pub folder: String,
    pub steps: Vec<Step>,
    /// The difference that the recording ends with.
    pub submission: String,
}

/// One command and its recorded result.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub action: Action,
    pub recorded: Recorded,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The exit status; `None` where it was not recorded, as after a time-out.
    pub status: Option<i32>,
    pub output: String,
    /// The output behind a gap, where the recording left its middle out.
    pub tail: Option<String>,
}

impl Trajectory {
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split(".traj").next().unwrap_or_default();
        Self::parse(name, &text).with_context(|| format!("{} is no recording that can be played", path.display()))
    }

    /// Reads either form; `name` counts where the recording has none of its own.
    pub fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let said: Value = serde_json::from_str(text)?;
        let (task, folder, steps) = if said["trajectory"].is_array() {
            of_swe_agent(&said)
        } else {
            of_mini(&said)?
        };
        anyhow::ensure!(!steps.is_empty(), "it holds no command");
        Ok(Self {
            name: said["instance_id"].as_str().unwrap_or(name).to_owned(),
            task,
            folder,
            steps,
            submission: text_of(&said["info"]["submission"]),
        })
    }

    /// Returns `requests` for `psf__requests-1142`.
    pub fn repository(&self) -> &str {
        let name = self.name.rsplit("__").next().unwrap_or_default();
        name.rsplit_once('-').map_or(name, |(name, _)| name)
    }

    /// Returns `1142` for `psf__requests-1142`.
    pub fn number(&self) -> Option<u64> {
        self.name.rsplit_once('-')?.1.parse().ok()
    }
}

fn of_mini(said: &Value) -> anyhow::Result<(String, String, Vec<Step>)> {
    let messages = said["messages"].as_array().or(said.as_array());
    let messages = messages.context("it has neither `messages` nor `trajectory`")?;
    let of_role = |wanted: &str| messages.iter().find(|message| message["role"] == wanted);
    let task = of_role("user")
        .map(|message| text_of(&message["content"]))
        .unwrap_or_default();
    let folder = said["info"]["config"]["environment"]["cwd"].as_str();
    let folder = folder
        .filter(|folder| folder.len() > 1)
        .unwrap_or(USUAL_FOLDER)
        .to_owned();
    let mut steps = Vec::new();
    for (place, message) in messages.iter().enumerate() {
        if message["role"] != "assistant" {
            continue;
        }
        let mut answers = messages[place + 1..]
            .iter()
            .take_while(|next| next["role"] != "assistant");
        for command in commands_of(message) {
            let Some(answer) = answers.next() else { break };
            let (command, recorded) = match command.split_once(SUBMITS) {
                None => (command.as_str(), observed(answer)),
                // What was said to it is the difference.
                Some((before, _)) => (before_echo(before), Recorded::default()),
            };
            if !command.is_empty() {
                let action = Action::Call("workspace/execute_command", json!({ "command": command }));
                steps.push(Step { action, recorded });
            }
        }
    }
    Ok((task_in(&task), folder, steps))
}

/// The word with which mini-swe-agent hands its work in, by `echo`. Other commands may come before.
const SUBMITS: &str = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// Returns the commands before the `echo` that the text ends with.
fn before_echo(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '"', '\'']);
    let text = text.strip_suffix("echo").unwrap_or(text);
    text.trim_end_matches([' ', '&', ';', '\n'])
}

/// Returns the commands of a reply. Other than one code block was refused by the agent, and never
/// run.
fn commands_of(message: &Value) -> Vec<String> {
    let acted = message["extra"]["actions"].as_array();
    if let Some(actions) = acted.filter(|actions| !actions.is_empty()) {
        let command = |action: &Value| text_of(action.get("command").unwrap_or(action));
        return actions.iter().map(command).collect();
    }
    if let Some(calls) = message["tool_calls"].as_array() {
        let command = |call: &Value| {
            let arguments = call["function"]["arguments"].as_str()?;
            let arguments: Value = serde_json::from_str(arguments).ok()?;
            Some(arguments["command"].as_str()?.to_owned())
        };
        return calls.iter().filter_map(command).collect();
    }
    let text = text_of(&message["content"]);
    let mut blocks = ["```bash\n", "```mswea_bash_command\n"]
        .iter()
        .flat_map(|fence| text.split(fence).skip(1))
        .filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block.trim().to_owned()));
    match (blocks.next(), blocks.next()) {
        (Some(only), None) => vec![only],
        _ => Vec::new(),
    }
}

/// Reads the recorded result of a command.
fn observed(message: &Value) -> Recorded {
    let text = text_of(&message["content"]);
    let between = |open: &str, close: &str| {
        let (_, rest) = text.split_once(open)?;
        let (inside, _) = rest.rsplit_once(close)?;
        // The line behind the tag is the form's, and further empty ones are the output's.
        Some(inside.strip_prefix('\n').unwrap_or(inside).to_owned())
    };
    let status = between("<returncode>", "</returncode>").and_then(|status| status.trim().parse().ok());
    let head = between("<output_head>", "</output_head>");
    Recorded {
        status,
        tail: head.as_ref().and_then(|_| between("<output_tail>", "</output_tail>")),
        output: head.or_else(|| between("<output>", "</output>")).unwrap_or(text),
    }
}

fn of_swe_agent(said: &Value) -> (String, String, Vec<Step>) {
    let trajectory = said["trajectory"].as_array().cloned().unwrap_or_default();
    let folder = trajectory.iter().find_map(|step| folder_in(&step["state"]));
    let history = said["history"].as_array().into_iter().flatten();
    let asked = history
        .filter(|message| message["role"] == "user" && message["is_demo"] != true)
        .map(|message| text_of(&message["content"]));
    let task = asked.into_iter().next().unwrap_or_default();
    let mut steps = Vec::new();
    for step in &trajectory {
        let written = step["action"].as_str().unwrap_or_default().trim();
        if written.is_empty() || written.split_whitespace().next() == Some("submit") {
            continue;
        }
        let recorded = Recorded {
            status: None,
            output: text_of(&step["observation"]),
            tail: None,
        };
        let action = action::of_swe_agent(written);
        steps.push(Step { action, recorded });
    }
    (task_in(&task), folder.unwrap_or_else(|| USUAL_FOLDER.to_owned()), steps)
}

/// Returns the folder that the shell was in, from a state that is an object or one in a string.
fn folder_in(state: &Value) -> Option<String> {
    let read = state.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let folder = read.as_ref().unwrap_or(state)["working_dir"].as_str()?;
    (folder.len() > 1).then(|| folder.to_owned())
}

/// Returns the issue's text in the message that asked for the work, which has instructions around
/// it that are another agent's.
fn task_in(message: &str) -> String {
    let marks = [
        ("<pr_description>", "</pr_description>"),
        ("<issue>", "</issue>"),
        ("ISSUE:", "INSTRUCTIONS:"),
        ("Please solve this issue:", "<instructions>"),
    ];
    let inside = marks.iter().find_map(|(open, close)| {
        let (_, rest) = message.split_once(open)?;
        Some(rest.split_once(close).map_or(rest, |(inside, _)| inside))
    });
    let text = inside.unwrap_or(message).trim();
    let text = text
        .strip_prefix("Consider the following PR description:")
        .unwrap_or(text);
    text.trim().to_owned()
}

/// Returns a text that came as one, or in parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text_of(&part["text"])).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(trajectory: &Trajectory) -> Vec<String> {
        let commands = trajectory.steps.iter().map(|step| match &step.action {
            Action::Call(_, arguments) => text_of(&arguments["command"]),
            Action::Unknown(text) => text.clone(),
        });
        commands.collect()
    }

    #[test]
    fn code_blocks_are_read_with_what_they_gave() {
        let said = json!({
            "instance_id": "acme__widgets-7",
            "info": { "submission": "diff", "config": { "environment": { "cwd": "/src" } } },
            "messages": [
                { "role": "system", "content": "s" },
                { "role": "user", "content": "<pr_description>\nConsider the following PR description:\nBroken.\n</pr_description>\nDo." },
                { "role": "assistant", "content": "Look.\n\n```bash\nls\n```" },
                { "role": "user", "content": "<returncode>2</returncode>\n<output>\n\na\nb\n</output>" },
                { "role": "assistant", "content": "```bash\none\n```\n```bash\ntwo\n```" },
                { "role": "user", "content": "Please always provide EXACTLY ONE action" },
                { "role": "assistant", "content": "```bash\ncat big\n```" },
                { "role": "user", "content": "<returncode>0</returncode>\n<output_head>\nfirst\n</output_head>\n<elided_chars>\n9\n</elided_chars>\n<output_tail>\nlast\n</output_tail>" },
                { "role": "assistant", "content": "```bash\nrm b\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```" },
                { "role": "user", "content": "diff" },
            ],
        });
        let read = Trajectory::parse("file", &said.to_string()).unwrap();
        assert_eq!((read.name.as_str(), read.repository()), ("acme__widgets-7", "widgets"));
        assert_eq!(read.number(), Some(7));
        assert_eq!(
            (read.task.as_str(), read.folder.as_str(), read.submission.as_str()),
            ("Broken.", "/src", "diff")
        );
        assert_eq!(commands(&read), ["ls", "cat big", "rm b"]);
        assert_eq!(
            (read.steps[0].recorded.status, read.steps[0].recorded.output.as_str()),
            (Some(2), "\na\nb\n")
        );
        assert_eq!(read.steps[1].recorded.tail.as_deref(), Some("last\n"));
    }

    #[test]
    fn native_calls_are_read_one_by_one() {
        let call = |command: &str| json!({ "function": { "name": "bash", "arguments": json!({ "command": command }).to_string() } });
        let said = json!({
            "info": {},
            "messages": [
                { "role": "user", "content": "Please solve this issue: Mend it." },
                { "role": "assistant", "content": "", "tool_calls": [call("one"), call("two")] },
                { "role": "tool", "content": "<returncode>0</returncode>\n<output>\n1\n</output>" },
                { "role": "tool", "content": "<returncode>1</returncode>\n<output>\n2\n</output>" },
            ],
        });
        let read = Trajectory::parse("acme__widgets-8", &said.to_string()).unwrap();
        assert_eq!(commands(&read), ["one", "two"]);
        assert_eq!(read.steps[1].recorded.status, Some(1));
        assert_eq!(
            (read.task.as_str(), read.name.as_str()),
            ("Mend it.", "acme__widgets-8")
        );
    }

    #[test]
    fn the_other_form_has_no_status() {
        let said = json!({
            "trajectory": [
                { "action": "ls -a\n", "observation": "x\n", "state": "{\"working_dir\": \"/acme__widgets\"}" },
                { "action": "goto 12", "observation": "[File]", "state": {} },
                { "action": "submit", "observation": "", "state": {} },
            ],
            "history": [{ "role": "user", "content": "ISSUE:\nMend it.\n\nINSTRUCTIONS:\nNow" }],
            "info": { "submission": "\ndiff" },
        });
        let read = Trajectory::parse("acme__widgets-9", &said.to_string()).unwrap();
        assert_eq!(
            (read.task.as_str(), read.folder.as_str()),
            ("Mend it.", "/acme__widgets")
        );
        assert_eq!(commands(&read), ["ls -a", "goto 12"]);
        assert_eq!(read.steps[0].recorded.status, None);
    }

    #[test]
    fn what_is_no_recording_says_so() {
        let error = Trajectory::parse("x", "{}").err().unwrap().to_string();
        assert!(error.contains("neither `messages` nor `trajectory`"), "{error}");
        let error = Trajectory::parse("x", r#"{"messages":[]}"#).err().unwrap().to_string();
        assert!(error.contains("no command"), "{error}");
    }
}
