//! Commands at the beginning of a line.

use super::Route;
use super::text::{folded, own_lines};

/// A command of a message in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatCommand {
    Route(Route),
    /// From now on only models on this machine or in a private network are asked.
    LocalOnly,
    /// Models elsewhere may be asked again.
    Anywhere,
}

/// The commands by their names.
const COMMANDS: [(&str, ChatCommand); 8] = [
    ("/code", ChatCommand::Route(Route::Code)),
    ("/analyze", ChatCommand::Route(Route::Analyze)),
    ("/plan", ChatCommand::Route(Route::Plan)),
    ("/ops", ChatCommand::Route(Route::Ops)),
    ("/research", ChatCommand::Route(Route::Research)),
    ("/chat", ChatCommand::Route(Route::Chat)),
    ("/local", ChatCommand::LocalOnly),
    ("/cloud", ChatCommand::Anywhere),
];

/// A command with the message that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commanded {
    pub command: ChatCommand,
    /// The name of the command.
    pub name: &'static str,
    /// The message without the command.
    pub rest: String,
}

/// Returns the first command of a message. It stands at the very beginning of a line, is a word by
/// itself, and is the sender's own: in a quotation or in code it is somebody else's.
pub fn read(text: &str) -> Option<Commanded> {
    own_lines(text).into_iter().find_map(|(number, line)| {
        let (name, command, end) = at_the_beginning(line)?;
        let rest: Vec<&str> = text
            .lines()
            .enumerate()
            .map(|(place, other)| {
                if place == number {
                    line[end..].trim_start()
                } else {
                    other
                }
            })
            .collect();
        Some(Commanded {
            command,
            name,
            rest: rest.join("\n").trim().to_owned(),
        })
    })
}

/// Returns the command at the beginning of a line: its name, the command, and where it ends.
fn at_the_beginning(line: &str) -> Option<(&'static str, ChatCommand, usize)> {
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    let word = folded(&line[..end]);
    let (name, command) = *COMMANDS.iter().find(|(name, _)| *name == word)?;
    Some((name, command, end))
}

/// Returns the route that a message commands, if it does.
pub fn commanded(text: &str) -> Option<Route> {
    match read(text)?.command {
        ChatCommand::Route(route) => Some(route),
        ChatCommand::LocalOnly | ChatCommand::Anywhere => None,
    }
}

/// Returns what a message says of the models of its conversation: true where only near ones are
/// asked from now on, false where others may be again. `/local` counts behind other commands, too:
/// where only the first command of a message did, the message would go elsewhere all the same.
pub fn local_only(text: &str) -> Option<bool> {
    let commands = own_lines(text)
        .into_iter()
        .filter_map(|(_, line)| at_the_beginning(line));
    let commands: Vec<ChatCommand> = commands.map(|(_, command, _)| command).collect();
    if commands.contains(&ChatCommand::LocalOnly) {
        return Some(true);
    }
    (commands.first() == Some(&ChatCommand::Anywhere)).then_some(false)
}

/// Returns the name at the beginning of what follows `/code` that is one of `models`, and the rest.
pub fn named_model<'rest>(rest: &'rest str, models: &[String]) -> (Option<String>, &'rest str) {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    match models.iter().find(|model| **model == rest[..end]) {
        Some(model) => (Some(model.clone()), rest[end..].trim_start()),
        None => (None, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(text: &str) -> Option<(ChatCommand, String)> {
        read(text).map(|commanded| (commanded.command, commanded.rest))
    }

    #[test]
    fn a_command_stands_alone_at_the_beginning_of_a_line() {
        let code = |rest: &str| Some((ChatCommand::Route(Route::Code), rest.to_owned()));
        assert_eq!(route("/code fix it"), code("fix it"));
        assert_eq!(route("／ｃｏｄｅ　直して"), code("直して"));
        assert_eq!(route("/CODE"), code(""));
        assert_eq!(route("please\n/code fix it\nsoon"), code("please\nfix it\nsoon"));
        assert_eq!(route("/local"), Some((ChatCommand::LocalOnly, String::new())));
        for none in [
            "",
            " /code fix it",
            "use /code",
            "/coding",
            "/code/src/main.rs is broken",
            "/code: fix",
            "> /code fix it",
            "＞ /code fix it",
            ">>> he said\n/code fix it",
            "```\n/code fix it\n```",
            "~~~\n/ops\n~~~\nwhat does this do",
            "`/code` fixes it",
        ] {
            assert_eq!(route(none), None, "{none}");
        }
    }

    #[test]
    fn the_first_of_several_commands_counts() {
        assert_eq!(
            route("/plan a\n/code b"),
            Some((ChatCommand::Route(Route::Plan), "a\n/code b".to_owned()))
        );
        assert_eq!(
            route("> /plan a\n/code b"),
            Some((ChatCommand::Route(Route::Code), "> /plan a\nb".to_owned()))
        );
    }

    #[test]
    fn a_message_says_which_models_are_asked() {
        for (text, expected) in [
            ("/local", Some(true)),
            ("/local what is this", Some(true)),
            ("what is this\n/cloud", Some(false)),
            ("/code fix it\n/cloud", None),
            ("/analyze it\n/local", Some(true)),
            ("/cloud\n/local", Some(true)),
            ("/analyze it\n> /local", None),
            ("> /cloud", None),
            ("what does /cloud do", None),
        ] {
            assert_eq!(local_only(text), expected, "{text}");
        }
    }

    #[test]
    fn a_model_is_named_behind_the_command() {
        let models = ["cloud".to_owned()];
        assert_eq!(
            named_model("cloud fix it", &models),
            (Some("cloud".to_owned()), "fix it")
        );
        assert_eq!(named_model("clouds fix it", &models), (None, "clouds fix it"));
        assert_eq!(named_model("fix cloud", &models), (None, "fix cloud"));
    }
}
