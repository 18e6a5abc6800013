//! The history of an item of a fake forge, and its form for people.

use std::fmt::Write as _;

use chrono::DateTime;
use chrono::Utc;

/// Something that somebody did to an item. `P` is how the forge names the place of an item.
#[derive(Clone, Debug)]
pub struct Happening<P> {
    pub id: u64,
    pub actor: String,
    pub what: What<P>,
    pub when: DateTime<Utc>,
}

/// Whatever can happen to an item. Some of it happens on one of the forges only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What<P> {
    Opened,
    Labeled(String),
    Unlabeled(String),
    Assigned(String),
    Unassigned(String),
    Commented(u64),
    CommentEdited(u64),
    CommentDeleted,
    Reacted {
        comment: u64,
        content: String,
    },
    Renamed {
        from: String,
        to: String,
    },
    TextEdited,
    BaseChanged,
    MadeDraft,
    MadeReady,
    Closed,
    Reopened,
    Locked,
    Deleted,
    /// Mentioned in the text of another item.
    Mentioned(P),
    Pushed {
        commit: String,
        subject: String,
        is_forced: bool,
    },
    BranchDeleted,
    Reviewed(u64),
    LineCommented(u64),
    Merged,
}

/// Tells a history below its heading, with a line for each deed and the text that belongs to it.
/// A progress comment is edited all the time: of equal edits only the last one is told.
pub fn told<P: PartialEq>(
    heading: &str,
    history: &[Happening<P>],
    author_of: impl Fn(u64) -> String,
    own_deed: impl Fn(&What<P>) -> (String, String),
) -> String {
    let mut story = format!("{heading}\n");
    for (index, happening) in history.iter().enumerate() {
        let mut later = history.iter().skip(index + 1);
        let is_edit = matches!(happening.what, What::CommentEdited(_));
        if is_edit && later.any(|later| later.what == happening.what) {
            continue;
        }
        let plain = plain_deed(&happening.what, &author_of);
        let (deed, text) = plain.map_or_else(|| own_deed(&happening.what), |deed| (deed, String::new()));
        let _ = writeln!(story, "  {} {deed}", happening.actor);
        for line in text.lines() {
            let _ = writeln!(story, "{}", format!("    | {line}").trim_end());
        }
    }
    story
}

/// Tells what needs no more than its own words. The rest is told by each forge.
fn plain_deed<P>(what: &What<P>, author_of: impl Fn(u64) -> String) -> Option<String> {
    let told = match what {
        What::Labeled(label) => format!("added the label \"{label}\""),
        What::Unlabeled(label) => format!("removed the label \"{label}\""),
        What::Assigned(name) => format!("assigned {name}"),
        What::Unassigned(name) => format!("unassigned {name}"),
        What::CommentDeleted => "deleted a comment".to_owned(),
        What::Reacted { comment, content } => {
            format!("reacted with :{content}: to the comment of {}", author_of(*comment))
        }
        What::Renamed { from, .. } => format!("changed the title from \"{from}\""),
        What::TextEdited => "changed the description".to_owned(),
        What::BaseChanged => "changed the base branch".to_owned(),
        What::MadeDraft => "made this a draft".to_owned(),
        What::MadeReady => "marked this as ready for review".to_owned(),
        What::Closed => "closed this".to_owned(),
        What::Reopened => "reopened this".to_owned(),
        What::Locked => "locked the conversation".to_owned(),
        What::Deleted => "deleted this".to_owned(),
        What::Merged => "merged this".to_owned(),
        What::BranchDeleted => "deleted the branch".to_owned(),
        What::Pushed { subject, is_forced, .. } => {
            format!("{} \"{subject}\"", if *is_forced { "force-pushed" } else { "pushed" })
        }
        What::CommentEdited(_)
        | What::Opened
        | What::Commented(_)
        | What::Mentioned(_)
        | What::Reviewed(_)
        | What::LineCommented(_) => return None,
    };
    Some(told)
}
