//! The sorts of attack, each a row of the table.

use crate::forge::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Repository,
    Commit,
    Messages,
    Branch,
    Fork,
    Approval,
    Item,
    Edit,
    Rights,
    Confidential,
    Discreet,
    Comments,
    Reply,
    Planted,
    File,
    Leak,
    Egress,
    Front,
    SetUp,
    Pattern,
    Hose,
    Pod,
    Delta,
    Review,
    Plan,
    Automatic,
    Start,
    Near,
    Personal,
    Claim,
}

impl Class {
    pub const ALL: [Self; 30] = [
        Self::Repository,
        Self::Commit,
        Self::Messages,
        Self::Branch,
        Self::Fork,
        Self::Approval,
        Self::Item,
        Self::Edit,
        Self::Rights,
        Self::Confidential,
        Self::Discreet,
        Self::Comments,
        Self::Reply,
        Self::Planted,
        Self::File,
        Self::Leak,
        Self::Egress,
        Self::Front,
        Self::SetUp,
        Self::Pattern,
        Self::Hose,
        Self::Pod,
        Self::Delta,
        Self::Review,
        Self::Plan,
        Self::Automatic,
        Self::Start,
        Self::Near,
        Self::Personal,
        Self::Claim,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Repository => "repository",
            Self::Commit => "commit",
            Self::Messages => "messages",
            Self::Branch => "branch",
            Self::Fork => "forks",
            Self::Approval => "approvals",
            Self::Item => "item",
            Self::Edit => "edits",
            Self::Rights => "rights",
            Self::Confidential => "confidential",
            Self::Discreet => "discreet",
            Self::Comments => "comments",
            Self::Reply => "reply",
            Self::Planted => "planted",
            Self::File => "files",
            Self::Leak => "leak",
            Self::Egress => "egress",
            Self::Front => "fronts",
            Self::SetUp => "setups",
            Self::Pattern => "patterns",
            Self::Hose => "hoses",
            Self::Pod => "pods",
            Self::Delta => "deltas",
            Self::Review => "reviews",
            Self::Plan => "plans",
            Self::Automatic => "automatic",
            Self::Start => "starts",
            Self::Near => "near",
            Self::Personal => "personal",
            Self::Claim => "claims",
        }
    }

    /// Returns the class in words for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Repository => "a hostile repository",
            Self::Commit => "a hostile commit from the container",
            Self::Messages => "messages of commits",
            Self::Branch => "names of branches",
            Self::Fork => "a stranger's fork, on its way into the repository",
            Self::Approval => "an approval that covers more than was seen",
            Self::Item => "a hostile item",
            Self::Edit => "a change after the label",
            Self::Rights => "people without rights, and what looks like a command",
            Self::Confidential => "a confidential item",
            Self::Discreet => "a confidential item, with neutral names",
            Self::Comments => "words in the bot's comments",
            Self::Reply => "a hostile model, looking for secrets",
            Self::Planted => "checks that pass without passing",
            Self::File => "files that run or are read elsewhere",
            Self::Leak => "a secret that is known, on its way out",
            Self::Egress => "a container that wants out",
            Self::Front => "an allowed host as a front for others",
            Self::SetUp => "a kept set-up with files of others",
            Self::Pattern => "patterns for the planner's search",
            Self::Hose => "a flood in the streams of a container",
            Self::Pod => "a container that wants into its cluster",
            Self::Delta => "a small pack that unfolds to gigabytes",
            Self::Review => "a reviewer that lies, or is lied to",
            Self::Plan => "words that must not approve a plan",
            Self::Automatic => "a result outside of what may pass by itself",
            Self::Start => "mentions and assignments that start nothing",
            Self::Near => "confidential work, with far models in every role",
            Self::Personal => "personal data, on its way to a far model",
            Self::Claim => "a claim on an item that nobody made",
        }
    }

    /// The forges on which it is played: on both where the forge's own texts, names or people are
    /// the door.
    pub fn forges(self) -> &'static [Kind] {
        match self {
            Self::Branch
            | Self::Fork
            | Self::Approval
            | Self::Item
            | Self::Edit
            | Self::Rights
            | Self::Comments
            | Self::Plan
            | Self::Start
            | Self::Claim => &[Kind::GitHub, Kind::GitLab],
            Self::Confidential | Self::Discreet => &[Kind::GitLab],
            Self::Repository
            | Self::Commit
            | Self::Messages
            | Self::Reply
            | Self::Planted
            | Self::File
            | Self::Leak
            | Self::Egress
            | Self::Front
            | Self::SetUp
            | Self::Pattern
            | Self::Hose
            | Self::Pod
            | Self::Delta
            | Self::Review
            | Self::Automatic
            | Self::Near
            | Self::Personal => &[Kind::GitHub],
        }
    }
}
