//! Checks of what each new pull/merge request gets.

use crate::config::Config;
use crate::config::fault::Faults;

/// Each name costs a request when a change request is opened.
const MOST_NAMES: usize = 20;
const LONGEST_LABEL: usize = 50;
/// GitLab's longest name of an account.
const LONGEST_ACCOUNT: usize = 255;

/// Refuses names that no label or account has, and labels that the program itself goes by: a
/// request with the label of a trigger would start a run on itself.
pub(super) fn check(config: &Config, faults: &mut Faults) {
    let requests = &config.change_requests;
    check_names("labels", &requests.labels, LONGEST_LABEL, faults);
    for (index, label) in requests.labels.iter().enumerate() {
        if is_own_label(config, label) {
            let reason = "is one of the labels by which the program goes; take another";
            faults.at(&format!("change_requests.labels.{index}"), reason);
        }
    }
    for (list, names) in [("assignees", &requests.assignees), ("reviewers", &requests.reviewers)] {
        check_names(list, names, LONGEST_ACCOUNT, faults);
        for (index, _) in names.iter().enumerate().filter(|(_, name)| name.starts_with('@')) {
            let reason = "must be the name of an account without the '@'";
            faults.at(&format!("change_requests.{list}.{index}"), reason);
        }
    }
}

fn check_names(list: &str, names: &[String], longest: usize, faults: &mut Faults) {
    let list = format!("change_requests.{list}");
    if names.len() > MOST_NAMES {
        faults.at(&list, format!("must not have more than {MOST_NAMES} entries"));
    }
    for (index, name) in names.iter().enumerate() {
        let key = format!("{list}.{index}");
        if name.trim().is_empty() || name.trim() != name || name.contains(',') || name.contains(char::is_control) {
            faults.at(&key, "must be a name, without a comma and without blanks around it");
        } else if name.chars().count() > longest {
            faults.at(&key, format!("must not be longer than {longest} characters"));
        }
    }
}

fn is_own_label(config: &Config, name: &str) -> bool {
    let on_github = config.github.entries.iter().map(|host| &host.labels);
    let mut all = on_github.chain(config.gitlab.entries.iter().map(|host| &host.labels));
    all.any(|labels| {
        labels
            .all()
            .into_iter()
            .any(|label| label.to_lowercase() == name.to_lowercase())
    })
}
