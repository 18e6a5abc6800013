//! Decides whether a script can end in more than one way.

use super::shell::{Chain, Command, Joint, Pipeline, Script};

/// The ways in which a check can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PossibleEnds {
    /// It passes or fails.
    Open,
    /// It passes, and there is nothing in it that could fail.
    Trivial,
    /// It passes whatever its commands find.
    Masked,
}

/// Programs that succeed whatever they are given.
const ALWAYS: [&str; 10] = [
    "true", ":", "echo", "printf", "sleep", "pwd", "date", "whoami", "env", "clear",
];
/// Programs at the end of a pipeline that succeed whatever comes in.
const FILTERS: [&str; 13] = [
    "head", "tail", "tee", "cat", "sort", "uniq", "wc", "sed", "tr", "cut", "less", "column", "nl",
];

/// Returns how a check can end that expects this exit code.
pub(super) fn of(script: &Script, expected: i32) -> PossibleEnds {
    if decides_earlier(script) || script_status(script) != Some(expected == 0) {
        return PossibleEnds::Open;
    }
    // What fails in only one way is known only as a failure: `exit 3` is looked at no further.
    let is_bare = script.0.iter().all(|chain| {
        let mut pipelines = std::iter::once(&chain.first).chain(chain.rest.iter().map(|(_, pipeline)| pipeline));
        pipelines.all(|pipeline| {
            pipeline
                .commands
                .iter()
                .all(|command| command_status(command).is_some())
        })
    });
    if is_bare {
        PossibleEnds::Trivial
    } else {
        PossibleEnds::Masked
    }
}

/// Tells whether another command than the last may decide: `set -e` and `pipefail` make every one
/// count, and `exit` ends the script.
fn decides_earlier(script: &Script) -> bool {
    let pipelines = script
        .0
        .iter()
        .flat_map(|chain| std::iter::once(&chain.first).chain(chain.rest.iter().map(|(_, pipeline)| pipeline)));
    let mut commands = pipelines.flat_map(|pipeline| &pipeline.commands);
    commands.any(|command| match command {
        Command::Simple(words) => match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["exit", "0"] => false,
            ["set" | "shopt" | "trap" | "exit" | "return" | "exec", ..] => true,
            _ => false,
        },
        Command::Group(script) => decides_earlier(script),
        Command::Other => true,
    })
}

/// Tells whether the script always succeeds or always fails; `None` if that is open.
fn script_status(script: &Script) -> Option<bool> {
    let ends = script.0.iter().find(|chain| {
        matches!(&chain.first.commands[..], [Command::Simple(words)] if chain.rest.is_empty() && words[..] == ["exit".to_owned(), "0".to_owned()])
    });
    chain_status(ends.or(script.0.last())?)
}

fn chain_status(chain: &Chain) -> Option<bool> {
    if chain.in_background {
        return Some(true);
    }
    let mut status = pipeline_status(&chain.first);
    for (joint, pipeline) in &chain.rest {
        let next = pipeline_status(pipeline);
        status = match (joint, status) {
            (Joint::And, Some(false)) | (Joint::Or, Some(true)) => status,
            (Joint::And, Some(true)) | (Joint::Or, Some(false)) => next,
            (Joint::And, None) => next.filter(|passes| !passes),
            (Joint::Or, None) => next.filter(|passes| *passes),
        };
    }
    status
}

fn pipeline_status(pipeline: &Pipeline) -> Option<bool> {
    let last = pipeline.commands.last()?;
    let status = match last {
        Command::Simple(words) if pipeline.commands.len() > 1 && is_filter(words) => Some(true),
        command => command_status(command),
    };
    status.map(|passes| passes != pipeline.is_negated)
}

fn is_filter(words: &[String]) -> bool {
    let is_known = words.first().is_some_and(|program| FILTERS.contains(&program.as_str()));
    // With a file it can fail, and sed has an exit of its own.
    let has_quit = words.iter().any(|word| word.contains('q') && words[0] == "sed");
    is_known && !has_quit
}

fn command_status(command: &Command) -> Option<bool> {
    match command {
        Command::Simple(words) => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            // Assignments before a command; one that runs a command ends as that does.
            let runs_another = words
                .iter()
                .any(|word| word.contains("$(") || word.contains('`') || word.starts_with("<("));
            if runs_another {
                return words
                    .first()
                    .filter(|word| ["echo", "printf"].contains(word))
                    .map(|_| true);
            }
            let behind = words
                .iter()
                .position(|word| !is_assignment(word))
                .unwrap_or(words.len());
            simple_status(&words[behind..])
        }
        Command::Group(script) => script_status(script),
        Command::Other => None,
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

fn simple_status(words: &[&str]) -> Option<bool> {
    match words {
        [] | ["exit" | "return", "0"] | ["ls" | "set" | "export"] | ["git", "status" | "log" | "branch", ..] => {
            Some(true)
        }
        ["false"] => Some(false),
        ["env" | "date", _, ..] => None,
        ["git", "diff", options @ ..] => {
            let decides = |option: &&str| ["--exit-code", "--quiet", "--check"].contains(option);
            (!options.iter().any(decides)).then_some(true)
        }
        ["test", left, "=" | "==" | "-eq", right] | ["[", left, "=" | "==" | "-eq", right, "]"] => {
            let is_plain = |word: &&str| !word.contains(['$', '*', '`']);
            (is_plain(left) && left == right).then_some(true)
        }
        [program, ..] => ALWAYS.contains(program).then_some(true),
    }
}
