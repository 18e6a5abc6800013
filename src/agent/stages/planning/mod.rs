//! The first stage: read the item, explore the repository, and have the model plan.

mod best_places; // what the code index shows the planner at once
mod better_plan; // what the planner is told of a plan that was sent back
mod comment_filter; // comments that the model may read
mod earlier_runs; // earlier runs on the same item
mod evidence; // the places that a plan rests on
mod environment_choice; // the environment of the run
pub(crate) mod kept_plans; // plans that are made once for the same input
mod set_up_inputs; // the files of the base that decide what a set-up installs
pub(crate) mod shown_files; // the project's files, as the model first sees them
mod making; // the conversation with the planner

use chrono::Utc;

use crate::agent::approval::plan_question;
use crate::agent::claim::Claim;
use crate::agent::dialogue::room;
use crate::agent::pictures;
use crate::agent::prompt::{self, Remarks};
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction::CleanExcerpts;
use crate::agent::reporter::Carried;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::agent::stages::follow_up;
use crate::agent::stages::planning::comment_filter::FilteredComments;
use crate::agent::stages::project_rules;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::large_files;
use crate::agent::workspace::open;
use crate::agent::workspace::source;
use crate::agent::workspace::source::Source;
use crate::agent::workspace::source::push_right::may_be_pushed;
use crate::agent::workspace::submodules;
use crate::forge::Item;
use crate::journal::fact::Fact;
use crate::markdown::visible;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::task::state::{Signal, State};
use crate::workspace::base::Base;
use crate::workspace::set_up::dependencies::Dependencies;

/// Percentage of the window by which the task is measured: its text, and what was said of it.
const TASK_SHARE: u64 = 40;
const HISTORY_IS_CUT: &str = "\nOnly the newest commits of the project's history are there.\n";

/// Plans the run: saves base, plan, environment and the task's text in the record.
pub(crate) async fn plan(run: &mut Run) -> Result<Signal, Interruption> {
    run.claim.record.planned.started_at.get_or_insert_with(Utc::now);
    let source = if run.claim.record.reviewed.is_plan_sent_back() {
        // What was read of the item is in the record, with all that people said since.
        let item = run.reporter.item(&mut run.claim).await?;
        source::source(run, item.as_ref()).await?
    } else {
        run.claim.record.reviewed.plan.begin_anew();
        run.claim.record.reviewed.faults.clear();
        match run.reporter.item(&mut run.claim).await? {
            Some(item) => read_item(run, &item).await?,
            None => read_folder(run).await?,
        }
    };
    if run.claim.services.settings.planning.enabled {
        run.claim.record.planned.plan = Some(making::make_plan(run, source.mirror.clone()).await?);
        run.claim.record.reviewed.is_plan_faulty = false;
        if let Some(base) = choose_base(&mut run.claim, &source.mirror).await? {
            large_files::fetch(run, &source, &base).await?;
            submodules::fetch(run, &source, &base).await?;
        }
    }
    environment_choice::choose_environment(&mut run.claim);
    let planned = &run.claim.record.planned;
    let plan = planned.plan.as_ref();
    run.claim.note(Fact::Planned {
        environment: planned.environment.clone().unwrap_or_default(),
        subtasks: plan.map_or(0, |plan| plan.task_decomposition.subtasks.len()),
        input: planned.input.clone().unwrap_or_default(),
        digest: plan.map(kept_plans::digest).unwrap_or_default(),
    });
    run.claim.note_plan();
    // A review comes first: people see what it says.
    if !run.claim.services.settings.review.config.plan.enabled && plan_question::needs_approval(run).await? {
        return Ok(Signal::ApprovalNeeded);
    }
    Ok(Signal::Finished)
}

/// Reads the item, with all that the model may read of it, and fetches its repository: saves the
/// task's text, its pictures and the base in the record.
async fn read_item(run: &mut Run, item: &Item) -> Result<Source, Interruption> {
    // Usually the producer set the labels already, but it may have been interrupted: the state in
    // the store decides, and the labels follow it.
    run.reporter
        .show_label(&mut run.claim, State::Planning, Carried::Read(&item.labels))
        .await?;
    run.reporter.take_trigger_off(item).await?;
    let rule = run
        .claim
        .services
        .models
        .local_only_rule(item.task.repository(), &item.labels);
    run.claim.record.request.local_only = run.claim.record.request.local_only.take().or(rule);
    confidentiality::keep_discretion(&mut run.claim, item)?;
    may_be_pushed(&run.claim, &run.reporter, item).await?;
    let ReportTarget::Item { forge, .. } = &run.reporter.destination else {
        return Err(Interruption::failed("a local task has no item"));
    };
    let comments = forge.comments(&item.task).await?;
    let words = follow_up::words_of_round(run, &comments).await?;
    let comments = run.inbox.begin_to_listen(&mut run.claim, comments).await;
    let may_be_read = comment_filter::require_vouched(run, item).await?;
    let said = match &words {
        // The comments of a follow-up round were filtered already.
        Some(_) => FilteredComments::default(),
        None => comment_filter::filter_comments(run, comments).await?,
    };
    let source = source::source(run, Some(item)).await?;
    let base = source::find_base(&run.claim, &run.reporter, item, &source.mirror).await?;
    comment_filter::require_vouched_head(run, item, &base.commit).await?;
    project_rules::read_rules(&mut run.claim, &mut run.reporter, item, &source.mirror).await?;
    let memory = earlier_runs::recall(&run.claim).await?;
    let remarks = Remarks {
        comments: &said.comments,
        others: &said.others,
        since: memory.ended_at(),
    };
    let own = may_be_read.then_some((item.author.as_str(), item.body.as_str()));
    let texts = own.into_iter().chain(pictures::said(&said.comments));
    let texts = texts.chain(pictures::said(words.as_deref().unwrap_or_default()));
    let mut pictures = if may_be_read {
        pictures::requested(&run.claim).await?
    } else {
        Vec::new()
    };
    pictures.extend(pictures::linked(texts));
    run.claim.record.planned.pictures = pictures;
    let fence = prompt::fence(run.claim.lease.run);
    let excerpts = CleanExcerpts {
        redactor: &run.claim.services.redactor,
        max_bytes: room::bytes_of_window(&run.claim, TASK_SHARE),
    };
    let mut text = match (&run.claim.record.request.round, words) {
        (Some(round), Some(words)) if may_be_read => follow_up::task(&fence, item, round, &words, excerpts),
        (Some(round), Some(words)) => follow_up::task(&fence, &without_words(item), round, &words, excerpts),
        (Some(_) | None, _) => prompt::task(&fence, item, &remarks, excerpts),
    };
    text.push_str(&earlier_runs::told(&run.claim, &memory, &fence));
    let place = set_up_inputs::is_default_tip(item, &base, &source.mirror)
        .await?
        .then(|| item.clone_url.clone());
    let files = set_up_inputs::files(&mut run.claim, &source.mirror, &base.commit, place).await?;
    let named = shown_files::named_files(&run.claim, &text, &files, &source.mirror, &base.commit).await?;
    text.push_str(&shown_files::files_at_a_glance(&run.claim, &files));
    text.push_str(&named);
    text.push_str(&large_files::fetch(run, &source, &base.commit).await?);
    text.push_str(&submodules::fetch(run, &source, &base.commit).await?);
    if !source.mirror.cut_at().await.is_empty() {
        text.push_str(HISTORY_IS_CUT);
    }
    let question = question(item, may_be_read, &said);
    run.claim.record.planned.question = run.claim.services.redactor.clean(&question).into_string();
    run.claim.record.planned.files_url = evidence::files_url(item, &base.commit);
    run.claim.record.planned.task_text = text;
    source
        .mirror
        .keep_base(&run.claim.lease.run.to_string(), &base.commit)
        .await?;
    run.claim.record.planned.base = Some(base);
    open::open_early(run, &files, &source.mirror);
    Ok(source)
}

/// Returns the words of an item by which its places are looked for.
fn question(item: &Item, may_be_read: bool, said: &FilteredComments) -> String {
    let mut question = String::new();
    if may_be_read {
        question = format!("{}\n\n{}\n", visible::line(&item.title), visible::markdown(&item.body));
    }
    for comment in &said.comments {
        question.push_str(&visible::markdown(&comment.body));
        question.push('\n');
    }
    question
}

/// Returns the item without title and text, for use when somebody without write permission changed
/// them.
fn without_words(item: &Item) -> Item {
    Item {
        title: String::new(),
        body: String::new(),
        ..item.clone()
    }
}

/// Takes the snapshot of a local task's folder: saves the task's text and the base in the record.
async fn read_folder(run: &mut Run) -> Result<Source, Interruption> {
    let base = source::snapshot(&run.claim).await?;
    let source = source::source(run, None).await?;
    project_rules::read_rules_of(&mut run.claim, &source.mirror, &base.commit).await?;
    let local = run.claim.record.request.local.as_ref();
    let mut text = local.map_or_else(String::new, |local| prompt::local_task(&local.text));
    let question = local.map_or_else(String::new, |local| local.text.clone());
    let place = run
        .claim
        .record
        .request
        .local
        .as_ref()
        .map(|local| local.folder.display().to_string());
    let files = set_up_inputs::files(&mut run.claim, &source.mirror, &base.commit, place).await?;
    run.claim.record.planned.dependencies = run
        .claim
        .record
        .planned
        .dependencies
        .take()
        .map(Dependencies::by_whole_tree);
    let named = shown_files::named_files(&run.claim, &text, &files, &source.mirror, &base.commit).await?;
    text.push_str(&shown_files::files_at_a_glance(&run.claim, &files));
    text.push_str(&named);
    run.claim.record.planned.question = run.claim.services.redactor.clean(&question).into_string();
    run.claim.record.planned.task_text = text;
    run.claim.record.planned.base = Some(base);
    open::open_early(run, &files, &source.mirror);
    Ok(source)
}

/// Changes the base to the branch that the plan names. If the result branch already exists, for a
/// pull/merge request or from an earlier run, it is continued whatever the plan says. Returns the
/// commit if it changed.
async fn choose_base(claim: &mut Claim, mirror: &Mirror) -> Result<Option<CommitId>, Interruption> {
    let named = claim
        .record
        .planned
        .plan
        .as_ref()
        .and_then(|plan| plan.base_branch.clone());
    let (Some(named), Some(base), None) = (named, &claim.record.planned.base, &claim.record.request.local) else {
        return Ok(None);
    };
    if named == base.branch || mirror.branch(&base.head_branch).await?.is_some() {
        return Ok(None);
    }
    let Some(commit) = mirror.branch(&named).await? else {
        let branch = base.branch.clone();
        claim.warn(format!(
            "The plan starts from the branch `{named}`, which does not exist; `{branch}` is used."
        ));
        return Ok(None);
    };
    let base = Base {
        commit: commit.clone(),
        branch: named,
        ..base.clone()
    };
    mirror.keep_base(&claim.lease.run.to_string(), &base.commit).await?;
    claim.record.planned.base = Some(base);
    // The recorded inputs were those of the default branch.
    claim.record.planned.dependencies = None;
    Ok(Some(commit))
}
