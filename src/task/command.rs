//! Commands of people to a run, in its thread or on the command line.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::approval::digest::Beginning;

/// The word that begins a command in a comment.
const WORD: &str = "/agent";

/// A comment taken apart: what it tells the program, and what it tells the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said<'a> {
    /// The command on its first line, if that is one.
    pub command: Option<Command>,
    /// The lines for the model: all of them, or those below the command. The reason of a `deny` is
    /// among them.
    pub words: Cow<'a, str>,
}

impl<'a> Said<'a> {
    /// Splits a comment into command and text. A command stands, after empty lines, at the very
    /// beginning of the first line: text that is indented, quoted or in a code block is shown to
    /// people as an example and must not be executed.
    pub fn of(body: &'a str) -> Self {
        let mut text = body;
        let (line, below) = loop {
            let (line, below) = text.split_once('\n').unwrap_or((text, ""));
            if !line.trim().is_empty() || below.is_empty() {
                break (line, below);
            }
            text = below;
        };
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if !word.eq_ignore_ascii_case(WORD) {
            return Self {
                command: None,
                words: Cow::Borrowed(body),
            };
        }
        let command = Command::read(rest.trim());
        let below = below.trim_end();
        let words = match &command {
            Command::Deny {
                reason: Some(reason), ..
            } => Cow::Owned(format!("{reason}\n{below}").trim_end().to_owned()),
            _ if below.trim().is_empty() => Cow::Borrowed(""),
            _ => Cow::Borrowed(below),
        };
        Self {
            command: Some(command),
            words,
        }
    }
}

/// A command of a person to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// End it for good, at once.
    Stop,
    /// Set it aside, at the next safe point.
    Pause,
    Resume,
    /// Allow what waits for it, or that which the digest names.
    Approve(Option<Beginning>),
    /// Refuse what waits for approval, or that which the digest names, with the reason if one is
    /// given.
    Deny {
        digest: Option<Beginning>,
        reason: Option<String>,
    },
    /// Let nothing pass any more without a person, in all tasks.
    AutoApproveOff,
    /// Allow so many more tokens, and go on if the budget was what stopped it.
    Budget(u64),
    Help,
    /// Began like a command and is none.
    Unknown(String),
}

impl Command {
    /// Returns the denial with these words: a reason, before which the digest may stand.
    pub fn deny(text: &str) -> Self {
        let text = text.trim();
        let (first, behind) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let digest: Option<Beginning> = first.parse().ok();
        let reason = if digest.is_some() { behind.trim() } else { text };
        Self::Deny {
            digest,
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
        }
    }

    fn read(text: &str) -> Self {
        let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let unknown = || Self::Unknown(text.to_owned());
        let alone = |command: Self| if rest.is_empty() { command } else { unknown() };
        match verb.to_ascii_lowercase().as_str() {
            "stop" => alone(Self::Stop),
            "pause" => alone(Self::Pause),
            "resume" => alone(Self::Resume),
            "approve" if rest.is_empty() => Self::Approve(None),
            "approve" => rest
                .parse()
                .map_or_else(|_| unknown(), |digest| Self::Approve(Some(digest))),
            "deny" => Self::deny(rest),
            "auto-approve" if rest.eq_ignore_ascii_case("off") => Self::AutoApproveOff,
            "budget" => tokens(rest).map_or_else(unknown, Self::Budget),
            "help" | "" => alone(Self::Help),
            _ => unknown(),
        }
    }
}

/// Parses a number of tokens as people write it: `500000`, `500,000`, `500_000`, `500k`, `2M`.
pub fn tokens(text: &str) -> Option<u64> {
    let text: String = text.chars().filter(|sign| !matches!(sign, ',' | '_')).collect();
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => text
            .strip_suffix(['m', 'M'])
            .map_or((text.as_str(), 1), |digits| (digits, 1_000_000)),
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(factor).filter(|tokens| *tokens > 0)
}

/// Formats the command as it is written after `/agent`, and passed between processes.
impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop => formatter.write_str("stop"),
            Self::Pause => formatter.write_str("pause"),
            Self::Resume => formatter.write_str("resume"),
            Self::Approve(None) => formatter.write_str("approve"),
            Self::Approve(Some(digest)) => write!(formatter, "approve {digest}"),
            Self::Deny { digest, reason } => {
                formatter.write_str("deny")?;
                if let Some(digest) = digest {
                    write!(formatter, " {digest}")?;
                }
                if let Some(reason) = reason {
                    write!(formatter, " {reason}")?;
                }
                Ok(())
            }
            Self::AutoApproveOff => formatter.write_str("auto-approve off"),
            Self::Budget(tokens) => write!(formatter, "budget {tokens}"),
            Self::Help => formatter.write_str("help"),
            Self::Unknown(text) => formatter.write_str(text),
        }
    }
}

impl FromStr for Command {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::read(text.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_line_of_a_comment_may_be_a_command() {
        let unknown = |text: &str| Some(Command::Unknown(text.to_owned()));
        let deny = |digest: &str, reason: &str| {
            let (digest, reason) = (digest.parse().ok(), (!reason.is_empty()).then(|| reason.to_owned()));
            Some(Command::Deny { digest, reason })
        };
        for (body, expected) in [
            ("/agent stop", Some(Command::Stop)),
            ("/AGENT  Pause \nplease, it is late", Some(Command::Pause)),
            (" \r\n\n\t\n/agent stop", Some(Command::Stop)),
            ("    /agent stop", None),
            (" /agent stop", None),
            ("\t/agent stop", None),
            ("\u{a0}/agent stop", None),
            ("> /agent stop", None),
            ("```\n/agent stop\n```", None),
            ("- /agent stop", None),
            ("<!-- -->/agent stop", None),
            ("/agent resume\r\n", Some(Command::Resume)),
            ("/agent budget 500k", Some(Command::Budget(500_000))),
            ("/agent budget 1,500,000", Some(Command::Budget(1_500_000))),
            ("/agent budget 2M", Some(Command::Budget(2_000_000))),
            ("/agent budget", unknown("budget")),
            ("/agent budget 0", unknown("budget 0")),
            (
                "/agent budget 99999999999999999999",
                unknown("budget 99999999999999999999"),
            ),
            ("/agent budget 99999999999999999k", unknown("budget 99999999999999999k")),
            ("/agent deny", deny("", "")),
            ("/agent deny too big", deny("", "too big")),
            ("/agent deny 0123ABCD", deny("0123abcd", "")),
            ("/agent deny 0123ABCD  too big", deny("0123abcd", "too big")),
            ("/agent deny 0123abc is too big", deny("", "0123abc is too big")),
            ("/agent deny 0123abcd: too big", deny("", "0123abcd: too big")),
            ("/agent approve", Some(Command::Approve(None))),
            (
                "/agent approve 0123ABCD",
                Some(Command::Approve("0123abcd".parse().ok())),
            ),
            ("/agent approve 0123abc", unknown("approve 0123abc")),
            ("/agent approve it, please", unknown("approve it, please")),
            ("/agent auto-approve off", Some(Command::AutoApproveOff)),
            ("/agent auto-approve on", unknown("auto-approve on")),
            ("/agent", Some(Command::Help)),
            ("/agent help", Some(Command::Help)),
            ("/agent dance", unknown("dance")),
            ("/agent stop that", unknown("stop that")),
            ("/agents stop", None),
            ("please /agent stop", None),
            ("Hello\n/agent stop", None),
            ("", None),
        ] {
            assert_eq!(Said::of(body).command, expected, "{body:?}");
        }
    }

    #[test]
    fn what_stands_below_a_command_is_for_the_model() {
        for (body, expected) in [
            ("/agent resume", ""),
            ("/agent resume\n \n", ""),
            (
                "\n/agent resume\r\n\r\nMake it blue.\n  Not red.\n",
                "\r\nMake it blue.\n  Not red.",
            ),
            ("/agent deny too big", "too big"),
            ("/agent deny too big\nSplit it.", "too big\nSplit it."),
            ("/agent deny 0123abcd too big\nSplit it.", "too big\nSplit it."),
            ("/agent deny 0123abcd", ""),
            ("/agent dance\nMake it blue.", "Make it blue."),
            ("Make it blue.\n/agent stop", "Make it blue.\n/agent stop"),
            ("    /agent stop", "    /agent stop"),
            ("", ""),
        ] {
            assert_eq!(Said::of(body).words, expected, "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_of_a_stranger_is_too_strange(body in ".{0,200}") {
            let said = Said::of(&body);
            prop_assert!(said.words.len() <= body.len());
        }

        #[test]
        fn what_is_written_is_read_back(tokens in 1_u64.., reason in "[g-z]{1,9}( [a-z]{1,9}){0,3}") {
            let digest = || "0123456789abcdef".parse::<Beginning>().ok();
            for command in [
                Command::Stop,
                Command::Pause,
                Command::Resume,
                Command::Approve(None),
                Command::Approve(digest()),
                Command::Deny { digest: None, reason: None },
                Command::Deny { digest: digest(), reason: None },
                Command::Deny { digest: None, reason: Some(reason.clone()) },
                Command::Deny { digest: digest(), reason: Some(reason) },
                Command::AutoApproveOff,
                Command::Budget(tokens),
                Command::Help,
            ] {
                prop_assert_eq!(command.to_string().parse(), Ok(command));
            }
        }
    }
}
