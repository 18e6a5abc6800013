//! Items that change after somebody who may write has read them and put the label on.

use crate::attempt::{Attempt, End};
use crate::class::Class;
use crate::fake::gitlab::Access;
use crate::forge::{Kind, STRANGER};

/// A word that a stranger puts into a text, and that the model must not be shown.
pub const CHANGED: &str = "CHANGEDORDER";

/// An account that may write.
const MEMBER: &str = "alice";

const BRANCH: &str = "help";

pub fn all() -> Vec<Attempt> {
    let mut attacks = words();
    attacks.extend(hidden());
    attacks.extend(heads());
    attacks.extend(on_gitlab());
    attacks.extend(labels());
    attacks
}

fn edit(name: &'static str) -> Attempt {
    Attempt::new(Class::Edit, name, End::Refused)
}

fn by_stranger(name: &'static str) -> Attempt {
    edit(name).tells(STRANGER)
}

/// Returns the attacks by one change of a text, before the admission and after it, told by the
/// forge or not.
fn words() -> Vec<Attempt> {
    vec![
        by_stranger("text")
            .then(|_, _, item| item.rewrite_by(STRANGER, CHANGED))
            .short(),
        by_stranger("title").then(|_, _, item| item.rename_by(STRANGER, CHANGED)),
        by_stranger("title-and-text").then(|_, _, item| {
            item.rename_by(STRANGER, CHANGED);
            item.rewrite_by(STRANGER, CHANGED);
        }),
        by_stranger("admitted-text")
            .then(|forge, _, item| forge.once_admitted(item, |item| item.rewrite_by(STRANGER, CHANGED)))
            .short(),
        by_stranger("admitted-title")
            .then(|forge, _, item| forge.once_admitted(item, |item| item.rename_by(STRANGER, CHANGED))),
        edit("silent-text")
            .tells("does not tell who changed it")
            .then(|forge, _, item| forge.once_admitted(item, |item| item.body(CHANGED))),
        Attempt {
            only_on: Some(Kind::GitHub),
            head: Some(BRANCH.to_owned()),
            prepare: |repository, _| drop(repository.commit("old", "Old", &[(CHANGED, "x")])),
            ..by_stranger("other-target").then(|_, _, item| {
                if let Some(pull) = item.github() {
                    pull.retarget_by(STRANGER, "old");
                }
            })
        },
    ]
}

/// Returns the attacks by a change that somebody who may write follows with one of their own.
fn hidden() -> Vec<Attempt> {
    vec![
        by_stranger("hidden-by-title")
            .then(|_, _, item| {
                item.rewrite_by(STRANGER, CHANGED);
                item.rename_by(MEMBER, "Attack hidden-by-title now, please");
            })
            .short(),
        by_stranger("hidden-by-text").then(|_, _, item| {
            item.rename_by(STRANGER, CHANGED);
            item.rewrite_by(MEMBER, "Please greet the reader.");
        }),
        by_stranger("hidden-between").then(|forge, _, item| {
            item.rewrite_by(STRANGER, CHANGED);
            forge.once_admitted(item, |item| item.rename_by(MEMBER, "Attack hidden-between now, please"));
        }),
        by_stranger("hidden-twice").then(|_, _, item| {
            item.rewrite_by(MEMBER, "Please greet the reader.");
            item.rewrite_by(STRANGER, CHANGED);
            item.rename_by(MEMBER, "Attack hidden-twice now, please");
        }),
    ]
}

/// Returns the attacks by commits that are pushed to the branch of a change request.
fn heads() -> Vec<Attempt> {
    let head = |name| Attempt {
        head: Some(BRANCH.to_owned()),
        ..by_stranger(name)
    };
    vec![
        head("head")
            .then(|forge, repository, _| {
                repository
                    .fork_of_stranger(forge)
                    .commit(BRANCH, "More", &[(CHANGED, "x")]);
            })
            .short(),
        head("head-twice").then(|forge, repository, item| {
            repository
                .fork_of_stranger(forge)
                .commit(BRANCH, "More", &[(CHANGED, "x")]);
            item.rename_by(MEMBER, "Attack head-twice now, please");
        }),
        head("admitted-head").then(|forge, repository, item| {
            let fork = repository.fork_of_stranger(forge);
            forge.once_admitted(item, move |_| {
                fork.commit(BRANCH, "More", &[(CHANGED, "x")]);
            });
        }),
    ]
}

/// Returns the attacks by people whom only GitLab lets change what others wrote, and by its silence
/// about a text with a ticked box.
fn on_gitlab() -> Vec<Attempt> {
    const BOX: &str = "- [ ] I searched\n\nPlease greet the reader.";
    const TICKED: &str = "- [x] I searched\n\nCHANGEDORDER";
    let boxed = |name| Attempt {
        body: BOX.to_owned(),
        only_on: Some(Kind::GitLab),
        ..by_stranger(name)
    };
    let member = |name| Attempt {
        only_on: Some(Kind::GitLab),
        ..by_stranger(name)
    };
    vec![
        boxed("ticked-box")
            .then(|_, _, item| item.rewrite_by(STRANGER, TICKED))
            .short(),
        boxed("admitted-ticked-box")
            .then(|forge, _, item| forge.once_admitted(item, |item| item.rewrite_by(STRANGER, TICKED))),
        boxed("ticked-and-renamed").then(|_, _, item| {
            item.rewrite_by(STRANGER, TICKED);
            item.rename_by(MEMBER, "Attack ticked-and-renamed now, please");
        }),
        member("reporter").then(|_, repository, item| {
            repository
                .gitlab()
                .map(|project| project.member(STRANGER, Access::Reporter));
            item.rewrite_by(STRANGER, CHANGED);
        }),
        member("planner").then(|_, repository, item| {
            repository
                .gitlab()
                .map(|project| project.member(STRANGER, Access::Planner));
            item.rename_by(STRANGER, CHANGED);
        }),
        member("assignee").then(|_, repository, item| {
            repository
                .gitlab()
                .map(|project| project.member(STRANGER, Access::Guest));
            item.gitlab().map(|item| item.assign(&[STRANGER]));
            item.rewrite_by(STRANGER, CHANGED);
        }),
    ]
}

/// Returns the attacks by labels that get the trigger's name only after somebody put them on.
fn labels() -> Vec<Attempt> {
    let renamed = |name| Attempt {
        label: Some("needs-info"),
        body: CHANGED.to_owned(),
        only_on: Some(Kind::GitLab),
        ..Attempt::new(Class::Edit, name, End::Untouched)
    };
    vec![
        renamed("label-renamed")
            .then(|_, repository, item| {
                item.by(STRANGER);
                item.an_hour_passes();
                repository
                    .gitlab()
                    .map(|project| project.rename_label("needs-info", "coding agent"));
            })
            .short(),
        renamed("label-exchanged").then(|_, repository, item| {
            item.by(STRANGER);
            item.an_hour_passes();
            let Some(project) = repository.gitlab() else { return };
            project
                .open_issue("Ordinary")
                .label("coding agent")
                .unlabel("coding agent");
            project
                .rename_label("coding agent", "retired")
                .rename_label("needs-info", "coding agent");
        }),
        renamed("label-recreated").then(|_, repository, item| {
            item.by(STRANGER);
            item.an_hour_passes();
            let Some(project) = repository.gitlab() else { return };
            project.open_issue("Ordinary").label("coding agent");
            project
                .delete_label("coding agent")
                .rename_label("needs-info", "coding agent");
        }),
    ]
}
