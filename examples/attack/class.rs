//! The sorts of attack, each a row of the table.

use crate::forge::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Repository,
    Commit,
    Branch,
    Item,
    Reply,
    Leak,
    Egress,
    Edit,
    Confidential,
    Discreet,
    Front,
    File,
}

impl Class {
    pub const ALL: [Self; 12] = [
        Self::Repository,
        Self::Commit,
        Self::Branch,
        Self::Item,
        Self::Reply,
        Self::Leak,
        Self::Egress,
        Self::Edit,
        Self::Confidential,
        Self::Discreet,
        Self::Front,
        Self::File,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Commit => "commit",
            Self::Branch => "branch",
            Self::Item => "item",
            Self::Reply => "reply",
            Self::Leak => "leak",
            Self::Egress => "egress",
            Self::Edit => "edits",
            Self::Confidential => "confidential",
            Self::Discreet => "discreet",
            Self::Front => "fronts",
            Self::File => "files",
        }
    }

    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Repository => "a hostile repository",
            Self::Commit => "a hostile commit from the container",
            Self::Branch => "names of branches",
            Self::Item => "a hostile item",
            Self::Reply => "a hostile model, looking for secrets",
            Self::Leak => "a secret that is known, on its way out",
            Self::Egress => "a container that wants out",
            Self::Edit => "a change after the label",
            Self::Confidential => "a confidential item",
            Self::Discreet => "a confidential item, with neutral names",
            Self::Front => "an allowed host as a front for others",
            Self::File => "files that run or are read elsewhere",
        }
    }

    /// The forges on which it is played: on both where the forge's own texts, names or people are the door.
    pub fn forges(self) -> &'static [Kind] {
        match self {
            Self::Branch | Self::Item | Self::Edit => &[Kind::GitHub, Kind::GitLab],
            Self::Confidential | Self::Discreet => &[Kind::GitLab],
            Self::Repository | Self::Commit | Self::Reply | Self::Leak | Self::Egress | Self::Front | Self::File => {
                &[Kind::GitHub]
            }
        }
    }
}
