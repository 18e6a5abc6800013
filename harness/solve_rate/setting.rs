//! The conditions of a measurement, as the variables of the environment name them. They are stored
//! with each outcome, so that outcomes are only put beside those that they can be compared with.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The folder of the project.
const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Everything that the program is made of.
const PROGRAM: [&str; 4] = ["src", "Cargo.toml", "Cargo.lock", "system_prompt.txt"];
/// The window that a file is loaded with, unless `WINDOW` says another.
const WINDOW: u64 = 8_192;
/// The time that a worker has at most beyond its limit and its last reply: for set-up, checks and
/// delivery. In the short form it is as long as the limit.
const GRACE: Duration = Duration::from_mins(3);

/// The most that one task may take, of the program and of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub turns: u32,
    pub minutes: u32,
    /// The window that the model was loaded with, where it is loaded here.
    pub window: Option<u64>,
}

/// The form in which the model changes files, as `llm.edits` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edits {
    Exact,
    Auto,
    Whole,
}

/// The conditions that one outcome came about under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    #[serde(flatten)]
    pub limits: Limits,
    pub plan: bool,
    /// `None` for whoever is not the program.
    pub edits: Option<Edits>,
    /// The name that was given to the round, or else the version of whoever worked.
    pub round: String,
}

/// The number of tasks that are measured, and the time for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Short,
    Usual,
    Full,
}

/// The outcomes that are measured once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anew {
    Nothing,
    /// The program's, in this setting.
    Program,
    /// The floor's and the peer's, too.
    All,
}

/// A measurement, or a comparison of two rounds, as the variables of the environment ask for it.
#[derive(Debug)]
pub struct Wanted {
    pub size: Size,
    pub half: Option<String>,
    /// Parts of names of tasks; all where there are none.
    pub names: Vec<String>,
    pub anew: Anew,
    /// The rounds that are put side by side, instead of a measurement.
    pub compare: Option<(String, String)>,
    pub is_with_peer: bool,
    /// The setting of the program.
    pub setting: Setting,
}

/// Returns what a variable says, if it is set to something.
pub fn said(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Limits {
    /// Returns the longest reply of the model in tokens, for the program, the floor and the peer. In
    /// the short form, whose tasks have files of less than 200 tokens, a model that writes without an
    /// end comes to it within seconds, and not to the limit of its task.
    pub fn longest_reply(self) -> u64 {
        if self.minutes < 10 { 512 } else { 2_048 }
    }

    /// Returns the longest time of one reply.
    pub fn reply(self) -> Duration {
        Duration::from_mins(self.minutes.min(10).into())
    }

    /// Returns the time after which a worker that has not ended by itself is ended.
    pub fn patience(self) -> Duration {
        let limit = Duration::from_mins(self.minutes.into());
        limit + self.reply() + GRACE.min(limit)
    }
}

impl Edits {
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Auto => "auto",
            Self::Whole => "whole",
        }
    }

    fn read(said: Option<&str>, is_file: bool) -> anyhow::Result<Self> {
        Ok(match said {
            Some("exact") => Self::Exact,
            Some("auto") => Self::Auto,
            Some("whole") => Self::Whole,
            Some(other) => anyhow::bail!("EDITS is exact, auto or whole, not {other}"),
            // Models that fit into such a file cannot copy a text word for word.
            None if is_file => Self::Whole,
            None => Self::Auto,
        })
    }
}

impl Anew {
    /// Returns the command that goes on with a measurement that has begun. With `ANEW`, the one
    /// that began it takes out what it has measured, too.
    pub fn going_on(self) -> &'static str {
        match self {
            Self::Nothing => "the same command",
            Self::Program | Self::All => "the same command without ANEW",
        }
    }
}

impl Setting {
    /// Returns the setting of whoever is not the program: it is shared by all rounds with the same
    /// limits.
    pub fn baseline(limits: Limits, version: &str) -> Self {
        Self {
            limits,
            plan: false,
            edits: None,
            round: version.to_owned(),
        }
    }

    /// Returns the name of the round with what is unusual about it, such as
    /// `whole-form/whole/plan`.
    pub fn label(&self) -> String {
        let edits = self.edits.map(|edits| format!("/{}", edits.name())).unwrap_or_default();
        let plan = if self.plan { "/plan" } else { "" };
        format!("{}{edits}{plan}", self.round)
    }
}

impl Size {
    /// Returns the limits of a task. In the short form eight tasks of three workers fit into half an
    /// hour also where each of them comes to its limit, as with a model that writes without an end.
    fn limits(self, window: Option<u64>) -> Limits {
        let (turns, minutes) = match self {
            Self::Short => (10, 1),
            Self::Usual | Self::Full => (25, 20),
        };
        Limits { turns, minutes, window }
    }

    /// Returns the longest time of the whole measurement: half an hour and three hours, less the
    /// time in which the last result is judged.
    pub fn time(self) -> Option<Duration> {
        match self {
            Self::Short => Some(Duration::from_mins(27)),
            Self::Usual => Some(Duration::from_mins(175)),
            Self::Full => None,
        }
    }
}

impl Wanted {
    pub fn of_environment(names: Vec<String>) -> anyhow::Result<Self> {
        let size = match (said("SHORT"), said("FULL")) {
            (Some(_), _) => Size::Short,
            (None, Some(_)) => Size::Full,
            (None, None) => Size::Usual,
        };
        let half = said("HALF");
        if let Some(half) = &half {
            anyhow::ensure!(["a", "b"].contains(&half.as_str()), "HALF is a or b, not {half}");
        }
        let anew = match said("ANEW").as_deref() {
            None => Anew::Nothing,
            Some("all") => Anew::All,
            Some(_) => Anew::Program,
        };
        let compare = match said("COMPARE") {
            Some(said) => {
                let rounds = said.split_once(',');
                let rounds = rounds.filter(|(one, other)| !one.trim().is_empty() && !other.trim().is_empty());
                let Some((one, other)) = rounds else {
                    anyhow::bail!("COMPARE names two rounds, as in COMPARE=before,after; not {said}");
                };
                Some((one.trim().to_owned(), other.trim().to_owned()))
            }
            None => None,
        };
        let is_file = said("MODEL_FILE").is_some();
        let window = match said("WINDOW") {
            _ if !is_file => None,
            None => Some(WINDOW),
            Some(window) => Some(
                window
                    .parse()
                    .map_err(|_| anyhow::anyhow!("WINDOW is no number: {window}"))?,
            ),
        };
        let setting = Setting {
            limits: size.limits(window),
            plan: said("PLAN").is_some(),
            edits: Some(Edits::read(said("EDITS").as_deref(), is_file)?),
            round: said("ROUND").unwrap_or_else(version),
        };
        let is_with_peer = said("WITHOUT_PEER").is_none();
        Ok(Self {
            size,
            half,
            names,
            anew,
            compare,
            is_with_peer,
            setting,
        })
    }
}

/// Returns the program's version: the last commit that changed it, and a digest of what was changed
/// since. A commit to anything else begins no new round.
fn version() -> String {
    let commit = git(&[&["log", "-1", "--format=%h", "--"], &PROGRAM[..]].concat());
    let Some(commit) = commit.filter(|commit| !commit.is_empty()) else {
        return env!("CARGO_PKG_VERSION").to_owned();
    };
    let mut changed = git(&[&["diff", "HEAD", "--"], &PROGRAM[..]].concat()).unwrap_or_default();
    let new = git(&[&["ls-files", "--others", "--exclude-standard", "--"], &PROGRAM[..]].concat());
    for path in new.unwrap_or_default().lines() {
        let content = std::fs::read(Path::new(PROJECT).join(path)).unwrap_or_default();
        let _ = writeln!(changed, "{path} {}", digest(&content));
    }
    if changed.is_empty() {
        return commit;
    }
    format!("{commit}+{}", digest(changed.as_bytes()))
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let begin = [digest[0], digest[1], digest[2], digest[3]];
    format!("{:08x}", u32::from_be_bytes(begin))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*"])
        .args(arguments)
        .current_dir(PROJECT)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_models_write_whole_files_unless_told_otherwise() {
        assert_eq!(Edits::read(None, true).unwrap(), Edits::Whole);
        assert_eq!(Edits::read(None, false).unwrap(), Edits::Auto);
        assert_eq!(Edits::read(Some("exact"), true).unwrap(), Edits::Exact);
        let error = Edits::read(Some("all"), true).unwrap_err().to_string();
        assert!(error.contains("exact, auto or whole"), "{error}");
    }

    #[test]
    fn no_worker_takes_longer_than_the_short_form_has_for_it() {
        let short = Size::Short.limits(None);
        assert_eq!(short.reply(), Duration::from_mins(1));
        assert_eq!(short.patience(), Duration::from_mins(3));
        assert_eq!(short.longest_reply(), 512);
        let usual = Size::Usual.limits(None);
        assert_eq!(usual.reply(), Duration::from_mins(10));
        assert_eq!(usual.patience(), Duration::from_mins(33));
        assert_eq!(usual.longest_reply(), 2_048);
    }

    #[test]
    fn a_setting_tells_its_round_and_how_it_was_measured() {
        let setting = Setting {
            limits: Size::Short.limits(Some(4_096)),
            plan: true,
            edits: Some(Edits::Whole),
            round: "before".to_owned(),
        };
        assert_eq!(setting.label(), "before/whole/plan");
        let line = serde_json::to_string(&setting).unwrap();
        assert_eq!(serde_json::from_str::<Setting>(&line).unwrap(), setting);
        assert_eq!(Setting::baseline(setting.limits, "2.4.6").label(), "2.4.6");
    }
}
