//! Examination of a host by `doctor`: the program's credentials, each repository, its labels.

use std::collections::BTreeSet;

use crate::finding::{Finding, Verdict};
use crate::forge::GitRemote;
use crate::forge::host::Host;
use crate::forge::http::failure::Failure;
use crate::forge::platform::{Platform, Right};
use crate::forge::settings::source::Source;
use crate::task::id::ItemKind;

/// Maximum number of an owner's repositories whose labels are looked at.
const MOST_LABELLED: usize = 3;

impl<P: Platform> Host<P> {
    pub(crate) async fn examine_all(&self) -> Vec<Finding> {
        let title = &self.platform.settings().title;
        let subject = format!("{title} {}", self.platform.proof());
        let verdict = self.platform.examine_proof().await;
        let verdict = verdict.unwrap_or_else(|failure| no_proof::<P>(&subject, &failure));
        let mut findings = vec![Finding::new(subject, verdict)];
        if findings[0].is_bad() {
            // Every other answer would only repeat this one.
            return findings;
        }
        findings.extend(self.platform.examine_grants().await);
        findings.extend(self.examine_accounts().await);
        let mut examined = self.named();
        for source in &self.platform.settings().sources {
            match source {
                Source::Repository(name) => findings.extend(self.examine_one(name).await),
                Source::All(owner) => {
                    let verdict = match self.items_of(source).await {
                        Ok(items) => self.platform.examine_all(owner, items.len()).await,
                        Err(failure) => Err(failure),
                    };
                    let verdict = verdict.unwrap_or_else(|failure| bad::<P>(owner, &failure));
                    let all = Finding::new(format!("{title} {}", P::subject_of_all(owner)), verdict);
                    let is_bad = all.is_bad();
                    findings.push(all);
                    if !is_bad {
                        findings.extend(self.examine_labels_of(owner, &mut examined).await);
                    }
                }
            }
        }
        findings
    }

    /// Returns the repositories that are named one by one, in lower case.
    fn named(&self) -> BTreeSet<String> {
        let sources = self.platform.settings().sources.iter();
        sources
            .filter_map(|source| match source {
                Source::Repository(name) => Some(name.to_lowercase()),
                Source::All(_) => None,
            })
            .collect()
    }

    /// Examines the labels of an owner's first repositories, but for those that were `examined`.
    async fn examine_labels_of(&self, owner: &str, examined: &mut BTreeSet<String>) -> Vec<Finding> {
        // That they cannot be listed is told of the owner.
        let names = self.platform.workable(owner).await.unwrap_or_default();
        let mut findings = Vec::new();
        for name in names.iter().take(MOST_LABELLED) {
            if examined.insert(name.to_lowercase()) {
                findings.push(self.labels_finding(name).await);
            }
        }
        findings
    }

    /// Returns what git needs for the repositories that can be read, each once; the others are
    /// reported elsewhere. Of all repositories of an owner it is the one that work waits in, or
    /// else the first that can be worked on.
    pub(super) async fn remotes(&self) -> Vec<GitRemote> {
        let mut remotes = Vec::new();
        let mut seen = BTreeSet::new();
        for source in &self.platform.settings().sources {
            let name = match source {
                Source::Repository(name) => Some(name.clone()),
                Source::All(owner) => self.one_of(source, owner).await,
            };
            if let Some(name) = name
                && seen.insert(name.to_lowercase())
            {
                remotes.extend(self.remote_of(&name).await);
            }
        }
        remotes
    }

    async fn one_of(&self, source: &Source, owner: &str) -> Option<String> {
        let items = self.items_of(source).await.unwrap_or_default();
        if let Some(item) = items.first().and_then(|found| found.task.item()) {
            return Some(item.repository.clone());
        }
        self.platform.workable(owner).await.ok()?.into_iter().next()
    }

    /// Returns what git needs for a repository, if it can be read.
    pub(super) async fn remote_of(&self, name: &str) -> Option<GitRemote> {
        // First, since what it asks for has the address as well.
        let repository = self.platform.full_name(name).await.ok()?;
        let url = self.platform.clone_url(name).await.ok()?;
        let credentials = self.platform.credentials(name).await.ok()?;
        Some(GitRemote {
            subject: format!("{} git of {name}", self.platform.settings().title),
            repository,
            url,
            credentials,
            is_gitlab: P::CHANGE == ItemKind::MergeRequest,
        })
    }

    /// Examines one repository, and its labels if it can be worked with.
    async fn examine_one(&self, name: &str) -> Vec<Finding> {
        let title = &self.platform.settings().title;
        let verdict = self.platform.examine_repository(name).await;
        let verdict = verdict.unwrap_or_else(|failure| bad::<P>(name, &failure));
        let repository = Finding::new(format!("{title} {} {name}", P::TERMS.repository), verdict);
        if repository.is_bad() {
            return vec![repository];
        }
        vec![repository, self.labels_finding(name).await]
    }

    async fn labels_finding(&self, name: &str) -> Finding {
        let verdict = self.examine_labels(name).await;
        let verdict = verdict.unwrap_or_else(|failure| bad::<P>(name, &failure));
        Finding::new(format!("{} labels in {name}", self.platform.settings().title), verdict)
    }

    /// Reports whose account each entry of `allowed_users` is. A question that the forge does not
    /// answer is skipped: the list works without it.
    async fn examine_accounts(&self) -> Vec<Finding> {
        let settings = self.platform.settings();
        let mut findings = Vec::new();
        for entry in settings.allowed_users.entries() {
            let Ok(found) = self.platform.account(entry).await else {
                continue;
            };
            let found = found.as_ref().map(|(login, id)| (login.as_str(), *id));
            let subject = format!("{} allowed_users", settings.title);
            findings.push(Finding::new(subject, entry.told(P::TERMS.section, found)));
        }
        findings
    }

    async fn examine_labels(&self, name: &str) -> Result<Verdict, Failure> {
        let known = self.known_labels(name).await?;
        let settings = self.platform.settings();
        let all = settings.labels.all();
        let missing: Vec<&str> = all
            .iter()
            .copied()
            .filter(|label| !known.contains(&P::label_key(label)))
            .collect();
        Ok(verdict_of(&missing, &settings.labels.trigger))
    }
}

/// Returns the verdict on the labels that are missing. The program makes a label where it puts it
/// on, and the trigger is put on by people.
fn verdict_of(missing: &[&str], trigger: &str) -> Verdict {
    let others: Vec<&str> = missing.iter().copied().filter(|label| *label != trigger).collect();
    let is_trigger_missing = others.len() < missing.len();
    let detail = match (is_trigger_missing, others.is_empty()) {
        (false, true) => "are there".to_owned(),
        (false, false) => format!("{} will be made when they are needed", others.join(", ")),
        (true, true) => format!("'{trigger}' is for you to create"),
        (true, false) => format!("'{trigger}' is for you to create; the others will be made when they are needed"),
    };
    if is_trigger_missing {
        Verdict::doubtful(detail, "create that label there: work begins where people put it on")
    } else {
        Verdict::Good { detail }
    }
}

/// Returns the verdict on credentials that could not be examined. An API tells each token whose it
/// is, so where nothing is found there may be no API.
fn no_proof<P: Platform>(subject: &str, failure: &Failure) -> Verdict {
    if failure.is_missing() && !failure.is_page() {
        let remedy = format!("{}; if it is, {}", check_address::<P>(), P::TERMS.renew);
        return Verdict::bad(failure, remedy);
    }
    bad::<P>(subject, failure)
}

fn check_address<P: Platform>() -> String {
    let words = P::TERMS;
    format!("check that {}.api_url is the address of {}", words.section, words.api)
}

fn bad<P: Platform>(what: &str, failure: &Failure) -> Verdict {
    let words = P::TERMS;
    let remedy = match failure {
        Failure::Answered { .. } if failure.is_page() => match failure.to_string().split_once("; ") {
            // The page may be that of a proxy, which is named then.
            Some((what, remedy)) => return Verdict::bad(what, format!("{remedy}; else {}", check_address::<P>())),
            None => check_address::<P>(),
        },
        Failure::Answered { status, .. } if status.as_u16() == 401 => words.renew.to_owned(),
        Failure::Answered { .. } => P::remedy(Right::ReadIssues, what),
        Failure::Limited { .. } => "wait until then".to_owned(),
        // Some reasons say what to do themselves.
        Failure::Down { reason } => match &reason.remedy {
            Some(remedy) => return Verdict::bad(&reason.what, remedy),
            None => format!("check {}.api_url and the network", words.section),
        },
        Failure::Unreadable { .. } => check_address::<P>(),
        Failure::Unprepared { remedy, .. } => remedy.clone(),
    };
    Verdict::bad(failure, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_of_the_labels_that_are_missing_and_only_the_trigger_is_theirs_to_create() {
        let missing: [&[&str]; 4] = [&[], &["done"], &["go"], &["go", "done"]];
        let told = missing.map(|missing| match verdict_of(missing, "go") {
            Verdict::Good { detail } => format!("good: {detail}"),
            Verdict::Doubtful { detail, remedy } => format!("doubtful: {detail} -> {remedy}"),
            Verdict::Bad { detail, remedy } => format!("bad: {detail} -> {remedy}"),
        });
        insta::assert_snapshot!(told.join("\n"), @"
        good: are there
        good: done will be made when they are needed
        doubtful: 'go' is for you to create -> create that label there: work begins where people put it on
        doubtful: 'go' is for you to create; the others will be made when they are needed -> create that label there: work begins where people put it on
        ");
    }
}
