//! The conditions that a finished task must meet, whatever happened before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use coding_agent::conversation::Message;
use coding_agent_harness::installation::Installation;

use crate::fake::model::{Request, Said};
use crate::job::Job;
use crate::model::{files, is_review, is_work, reviewed_file, subject};
use crate::site::Site;
use crate::store::{Run, Store};

/// The time in which guards notice that their worker is gone and end their servers, and git gives a
/// dead connection up.
const LAST_BREATH: Duration = Duration::from_secs(15);

/// Returns what is wrong with a task that should be finished.
pub async fn task(site: &Site, job: &Job, store: &Store, is_gated: bool) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let labels = job.labels();
    if labels != ["coding agent done"] {
        wrong.push(format!("the labels are {labels:?}"));
    }
    changes(site, job, is_gated, &mut wrong);
    comments(&job.told(site), &mut wrong);
    let runs: Vec<Run> = store
        .runs()
        .await?
        .into_iter()
        .filter(|run| run.task == job.task())
        .collect();
    match runs.as_slice() {
        [run] if run.is_finished && run.state == "done" => {
            conversation(&store.conversation(run).await?, site, &job.name, &mut wrong);
        }
        runs => wrong.push(format!("the store holds {runs:?}")),
    }
    Ok(wrong
        .into_iter()
        .map(|text| format!("{}: {text}", job.task()))
        .collect())
}

/// Checks that there is one branch and one change request, with all of the work in it and nothing
/// twice.
fn changes(site: &Site, job: &Job, is_gated: bool, wrong: &mut Vec<String>) {
    let branches = job.branches(site);
    if branches.len() != usize::from(job.kind.is_issue()) {
        wrong.push(format!("the branches are {branches:?}"));
    }
    let changes = job.changes(site);
    let [change] = changes.as_slice() else {
        wrong.push(format!("there are {} change requests", changes.len()));
        return;
    };
    if change.is_draft {
        wrong.push("the change request is a draft".to_owned());
    }
    let reviewed = is_gated.then(|| reviewed_file(&job.name));
    for (file, content) in files(&job.name).into_iter().chain(reviewed) {
        let is = change.file(&file);
        if is.as_deref() != Some(content) {
            wrong.push(format!("{file} holds {is:?}"));
        }
    }
    let own = subject(&job.name);
    let count = change.subjects.iter().filter(|subject| **subject == own).count();
    let most = if job.kind.is_issue() { 2 } else { 3 } + usize::from(is_gated);
    if count > 1 || change.subjects.len() > most {
        wrong.push(format!("the commits are {:?}", change.subjects));
    }
}

/// Returns the deliveries of a task that waits for people.
pub fn undelivered(site: &Site, job: &Job) -> Vec<String> {
    let mut wrong = Vec::new();
    let branches = job.branches(site);
    if !branches.is_empty() {
        wrong.push(format!("while it waits there are branches {branches:?}"));
    }
    let (file, _) = reviewed_file(&job.name);
    if job.changes(site).iter().any(|change| change.file(&file).is_some()) {
        wrong.push(format!("while it waits {file} is delivered"));
    }
    wrong
}

/// Checks what reviews and approvals promise: no work before the plan is allowed, and no judgement
/// paid for twice, but for the one that a KILL took along.
pub fn gate(site: &Site, kills: usize, wrong: &mut Vec<String>) {
    let unallowed = site.unallowed.load(Ordering::SeqCst);
    if unallowed > 0 {
        wrong.push(format!(
            "the model was asked to work {unallowed} times before anybody allowed its plan"
        ));
    }
    let asked: Vec<String> = site
        .model
        .requests()
        .iter()
        .filter(|request| is_review(request))
        .map(Request::first_user_message)
        .collect();
    let different: BTreeSet<&String> = asked.iter().collect();
    if different.len() < 4 || asked.len() > different.len() + kills {
        wrong.push(format!(
            "{} judgements of {} documents were asked for, with {kills} kills",
            asked.len(),
            different.len()
        ));
    }
}

/// Checks that every comment bears a mark, and that none bears another's.
fn comments(told: &[String], wrong: &mut Vec<String>) {
    let mut marks = BTreeMap::new();
    for text in told {
        let mark = text
            .rsplit_once("<!-- coding-agent:")
            .and_then(|(_, rest)| rest.split(" -->").next());
        match mark {
            Some(mark) => *marks.entry(mark).or_insert(0) += 1,
            None => wrong.push(format!("a comment without a mark: {text}")),
        }
    }
    for (mark, count) in &marks {
        if *count > 1 {
            wrong.push(format!("{count} comments bear the mark {mark}"));
        }
    }
    for kind in [":progress", ":final"] {
        let count = marks.keys().filter(|mark| mark.ends_with(kind)).count();
        if count != 1 {
            wrong.push(format!("{count} comments are {kind}"));
        }
    }
}

/// Checks that every call is answered once, by the message behind it, and that the store holds what
/// the model saw last.
fn conversation(stored: &[Message], site: &Site, name: &str, wrong: &mut Vec<String>) {
    if !matches!(stored, [Message::System { .. }, Message::User { .. }, ..]) {
        wrong.push("the conversation does not begin with the system prompt and the task".to_owned());
    }
    for pair in stored.windows(2) {
        match pair {
            [Message::Assistant { calls, .. }, Message::Results { results }] => {
                let are_answered = calls.iter().eq(results.iter().map(|result| &result.call));
                let fault = || format!("the calls {calls:?} are answered by {results:?}");
                wrong.extend((!are_answered).then(fault));
            }
            [Message::Assistant { calls, .. }, next] if !calls.is_empty() => {
                wrong.push(format!("the calls {calls:?} are followed by {next:?}"));
            }
            [before, Message::Results { results }] => {
                wrong.push(format!("{before:?} is followed by the results {results:?}"));
            }
            [Message::Assistant { .. }, Message::Assistant { .. }] => {
                wrong.push("two replies in a row".to_owned());
            }
            _ => {}
        }
    }
    let is_working = |messages: &&Vec<Said>| matches!(messages.get(1), Some(Said::User(text)) if text.contains(&format!(" {name} ")));
    let requests: Vec<Vec<Said>> = site
        .model
        .requests()
        .into_iter()
        .filter(is_work)
        .map(|request| request.messages)
        .collect();
    let Some(last) = requests.iter().rfind(is_working) else {
        wrong.push("the model was never asked to work".to_owned());
        return;
    };
    let sent = last.iter().filter_map(|said| match said {
        Said::Assistant(_, calls) => Some(calls.len()),
        _ => None,
    });
    let kept = stored.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls.len()),
        _ => None,
    });
    let (sent, kept) = (sent.count(), kept.count());
    if kept != sent + 1 {
        wrong.push(format!("{kept} replies are stored, and the last request held {sent}"));
    }
}

/// Returns what is left over of anything, when no program runs any more.
pub async fn leftovers(site: &Site) -> anyhow::Result<Vec<String>> {
    let mut wrong = site.model.violations();
    wrong.extend(left_behind(site, &site.containers().await?).await);
    let unknown = [site.github.unknown_requests(), site.gitlab.unknown_requests()].concat();
    if !unknown.is_empty() {
        wrong.push(format!("the forge does not know {unknown:?}"));
    }
    Ok(wrong)
}

/// Returns what is left over on a machine: of these containers, and of what the program keeps while
/// it runs.
pub async fn left_behind(installation: &Installation, containers: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    if !containers.is_empty() {
        wrong.push(format!("containers are left: {containers:?}"));
    }
    let waiting = async {
        while !installation.processes().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(LAST_BREATH, waiting).await.is_err() {
        wrong.push(format!("processes are left: {:?}", installation.processes()));
    }
    let names = |folder| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect::<Vec<_>>()
    };
    let mut locks = names(installation.state_dir().join("workers"));
    locks.retain(|name| name != "opening");
    if !locks.is_empty() {
        wrong.push(format!("locks are left: {locks:?}"));
    }
    let temporary = names(installation.temporary());
    if !temporary.is_empty() {
        wrong.push(format!("temporary files are left: {temporary:?}"));
    }
    wrong
}
