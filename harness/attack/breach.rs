//! The rules, and the breaches of them that were found.

use std::fmt;

use crate::site::Target;

/// A rule that no attack may break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nothing of a stranger runs on the worker's machine.
    HostRan,
    /// The program writes into its state and log folders only.
    HostFiles,
    /// Branches of people stay as they are.
    Branches,
    /// No commit and no file of a stranger's fork gets onto a branch of the repository that the
    /// fork was made of.
    Foreign,
    /// The mirror holds the forge's branches, and nothing of anybody else's.
    Mirror,
    /// Everything delivered can be checked out anywhere, bears our author and one trailer.
    Delivery,
    /// No secret is written or sent.
    Secret,
    /// The bot calls nobody and commands nothing.
    Echo,
    /// Comments of the bot are shown as words: no link, picture, formula or element of anybody
    /// else's.
    Rendered,
    /// Messages of delivered commits close nothing, call nobody, switch nothing off and name
    /// nobody.
    Message,
    /// Nothing is left running.
    Leftover,
    /// Every run ends.
    Stuck,
    /// Honest work arrives, hostile work does not.
    End,
    /// The model gets no words of strangers, and nothing that the page hides.
    Prompt,
    /// A run begins without what others left.
    SetUp,
    /// The worker and its children take bounded memory.
    Memory,
    /// A day's log has a bounded size.
    Logs,
    /// Containers reach what the configuration names, and nothing else.
    Egress,
    /// The model gets no words and no commits that were changed by somebody who may not write,
    /// after the label.
    Changed,
    /// Confidential words are in no branch, commit or change request, and internal notes reach
    /// no model.
    Confided,
    /// A host that is allowed gets nothing that was meant for another one.
    Front,
    /// No other user of the machine can read what the program wrote.
    Modes,
    /// A result that does not work is a draft, or people are told what to look at.
    Verdict,
    /// Confidential work reaches no model that is not near.
    Wall,
    /// A model that is not near gets no personal data.
    Personal,
}

impl Rule {
    pub const ALL: [Self; 25] = [
        Self::HostRan,
        Self::HostFiles,
        Self::Branches,
        Self::Foreign,
        Self::Mirror,
        Self::Delivery,
        Self::Secret,
        Self::Echo,
        Self::Rendered,
        Self::Message,
        Self::Leftover,
        Self::Stuck,
        Self::End,
        Self::Prompt,
        Self::Egress,
        Self::Changed,
        Self::Confided,
        Self::Front,
        Self::Modes,
        Self::Verdict,
        Self::SetUp,
        Self::Memory,
        Self::Logs,
        Self::Wall,
        Self::Personal,
    ];
}

#[derive(Debug, Clone)]
pub struct Breach {
    pub rule: Rule,
    /// The name of the attack, where it can be told.
    pub attempt: Option<&'static str>,
    pub what: String,
}

impl Breach {
    pub fn of(rule: Rule, target: Option<&Target>, what: impl Into<String>) -> Self {
        Self {
            rule,
            attempt: target.map(|target| target.attempt.name),
            what: what.into(),
        }
    }

    pub fn by(target: &Target, rule: Rule, what: String) -> Self {
        Self::of(rule, Some(target), what)
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = self.attempt.unwrap_or("some attack");
        write!(formatter, "{attempt}: {:?}: {}", self.rule, self.what)
    }
}
