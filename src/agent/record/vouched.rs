//! Snapshot of what a person vouches for by setting the label: the item's text, and the head commit
//! of a change request.
//!
//! Forges do not report every edit in every version, and rarely who pushed a commit. So a digest of
//! the text and the head commit are recorded when the label is accepted, and compared before
//! planning.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::forge::{Edit, EditedPart, Item};

/// An item as it was when its label was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VouchedItem {
    /// Digest of the title, the text and the target branch.
    words: String,
    /// The commit at the head of a change request.
    head: Option<String>,
    /// Time of the item's last change when the label was accepted, by the forge's clock.
    at: DateTime<Utc>,
}

impl VouchedItem {
    pub fn of(item: &Item) -> Self {
        Self {
            words: words(item),
            head: item.change.as_ref().and_then(|change| change.head_commit.clone()),
            at: item.updated_at,
        }
    }

    /// Returns true if the text of `item` differs from the accepted one and none of `edits`
    /// accounts for the change.
    pub(crate) fn words_changed_silently(&self, item: &Item, edits: &[Edit]) -> bool {
        let is_told = |edit: &Edit| edit.what == EditedPart::Text && edit.event.at >= self.at;
        words(item) != self.words && !edits.iter().any(is_told)
    }

    /// Returns true if the head of the change request differs from the accepted one.
    pub(crate) fn has_another_head(&self, commit: &str) -> bool {
        self.head.as_deref().is_some_and(|head| head != commit)
    }
}

fn words(item: &Item) -> String {
    let target = item.change.as_ref().map_or("", |change| change.base_branch.as_str());
    let mut digest = Sha256::new();
    // The length precedes each part, so that moving text from one part to the next changes the
    // digest.
    for part in [item.title.as_str(), item.body.as_str(), target] {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    format!("{:x}", digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::{ChangeHead, Discretion, ItemEvent, PushRight};
    use chrono::TimeDelta;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn item(title: &str, body: &str, base: Option<&str>) -> Item {
        Item {
            task: "github:acme/widgets#1".parse().unwrap(),
            title: title.to_owned(),
            body: body.to_owned(),
            author: "mallory".to_owned(),
            author_id: None,
            labels: Vec::new(),
            assignees: Vec::new(),
            is_open: true,
            is_merged: false,
            created_at: at(0),
            updated_at: at(5),
            url: String::new(),
            clone_url: String::new(),
            default_branch: None,
            change: base.map(|base| ChangeHead {
                head_branch: "fix".to_owned(),
                base_branch: base.to_owned(),
                head_commit: Some("aaa".to_owned()),
                head_clone_url: String::new(),
                head_repository: None,
                is_fork: true,
                is_draft: false,
                push: PushRight::Given,
            }),
            discretion: Discretion::NotNeeded,
            is_public: false,
        }
    }

    #[test]
    fn every_part_of_the_words_counts_and_none_runs_into_the_next() {
        let vouched = VouchedItem::of(&item("Greet", "Say hello", Some("main")));
        let changed = |title, body, base| vouched.words_changed_silently(&item(title, body, Some(base)), &[]);
        assert!(!changed("Greet", "Say hello", "main"));
        for (title, body, base) in [
            ("Greets", "Say hello", "main"),
            ("Greet", "Say hello.", "main"),
            ("Greet", "Say hello", "old"),
            ("GreetSay", " hello", "main"),
            ("", "GreetSay hello", "main"),
        ] {
            assert!(changed(title, body, base), "{title} {body} {base}");
        }
    }

    #[test]
    fn an_edit_of_the_words_since_then_explains_another_text_and_nothing_else_does() {
        let vouched = VouchedItem::of(&item("Greet", "", None));
        let edit = |what, minute| Edit {
            what,
            event: ItemEvent {
                by: "alice".to_owned(),
                by_id: None,
                at: at(minute),
            },
        };
        let is_silent = |edits: &[Edit]| vouched.words_changed_silently(&item("Leave", "", None), edits);
        assert!(is_silent(&[edit(EditedPart::Text, 4), edit(EditedPart::Head, 6)]));
        assert!(!is_silent(&[edit(EditedPart::Text, 5)]));
    }

    #[test]
    fn a_head_that_was_not_noted_is_no_other_one() {
        let vouched = VouchedItem::of(&item("Greet", "", Some("main")));
        assert_eq!(["aaa", "bbb"].map(|head| vouched.has_another_head(head)), [false, true]);
        assert!(!VouchedItem::of(&item("Greet", "", None)).has_another_head("bbb"));
    }
}
