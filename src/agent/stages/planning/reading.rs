//! Reads the task: the item on the forge, or the text of a local task, and what the model is shown
//! of the project with it.

use crate::agent::claim::Claim;
use crate::agent::dialogue::room;
use crate::agent::pictures;
use crate::agent::prompt::{self, Remarks};
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction::CleanExcerpts;
use crate::agent::record::sections::LinkedPicture;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::reporter::{Carried, Reporter};
use crate::agent::run::Run;
use crate::agent::stages::follow_up;
use crate::agent::stages::planning::comment_filter::{self, FilteredComments};
use crate::agent::stages::planning::earlier_runs::{self, Memory};
use crate::agent::stages::planning::evidence;
use crate::agent::stages::planning::set_up_inputs;
use crate::agent::stages::planning::shown_files;
use crate::agent::stages::project_rules;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::large_files;
use crate::agent::workspace::open;
use crate::agent::workspace::source;
use crate::agent::workspace::source::Source;
use crate::agent::workspace::source::push_right::may_be_pushed;
use crate::agent::workspace::submodules;
use crate::forge::{Comment, Item};
use crate::markdown::visible;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::task::state::State;
use crate::workspace::base::Base;
use crate::workspace::set_up::dependencies::Dependencies;

/// Percentage of the window by which the task is measured: its text, and what was said of it.
const TASK_SHARE: u64 = 40;
const HISTORY_IS_CUT: &str = "\nOnly the newest commits of the project's history are there.\n";

/// The words on an item, as far as the model may read them.
struct Thread {
    /// Whether the item's own title and text may be read.
    may_be_read: bool,
    /// The comments that a round of follow-up work is about; `None` if the run is no such round.
    of_round: Option<Vec<Comment>>,
    /// The comments on the item; empty in a round.
    said: FilteredComments,
}

/// Reads the item, with all that the model may read of it, and fetches its repository: saves the
/// task's text, its pictures and the base in the record.
pub(super) async fn read_item(run: &mut Run, item: &Item) -> Result<Source, Interruption> {
    take_up(run, item).await?;
    let thread = read_thread(run, item).await?;
    let source = source::source(run, Some(item)).await?;
    let base = source::find_base(&run.claim, &run.reporter, item, &source.mirror).await?;
    comment_filter::require_vouched_head(run, item, base.pushed_up_to()).await?;
    project_rules::read_rules(&mut run.claim, &mut run.reporter, item, &source.mirror).await?;
    let memory = earlier_runs::recall(&run.claim, &base, &source.mirror).await?;
    run.claim.record.planned.pictures = pictures_of(&run.claim, item, &thread).await?;
    let shown = without_state_labels(&run.reporter, item);
    let mut text = task(&run.claim, &shown, &thread, &memory);
    let place = set_up_inputs::is_default_tip(item, &base, &source.mirror)
        .await?
        .then(|| item.clone_url.clone());
    let files = set_up_inputs::files(&mut run.claim, &source.mirror, &base.commit, place).await?;
    add_files(&run.claim, &mut text, &files, &source.mirror, &base.commit).await?;
    text.push_str(&large_files::fetch(run, &source, &base.commit).await?);
    text.push_str(&submodules::fetch(run, &source, &base.commit).await?);
    if !source.mirror.cut_at().await.is_empty() {
        text.push_str(HISTORY_IS_CUT);
    }
    run.claim.record.planned.files_url = evidence::files_url(item, &base.commit);
    source
        .mirror
        .keep_base(&run.claim.lease.run.to_string(), &base.commit)
        .await?;
    keep(run, text, &question(item, &thread), base, &files, &source.mirror);
    Ok(source)
}

/// Takes the snapshot of a local task's folder: saves the task's text and the base in the record.
pub(super) async fn read_folder(run: &mut Run) -> Result<Source, Interruption> {
    let base = source::snapshot(&run.claim).await?;
    let source = source::source(run, None).await?;
    project_rules::read_rules_of(&mut run.claim, &source.mirror, &base.commit).await?;
    let local = run.claim.record.request.local.as_ref();
    let mut text = local.map_or_else(String::new, |local| prompt::local_task(&local.text));
    let question = local.map_or_else(String::new, |local| local.text.clone());
    let place = local.map(|local| local.folder.display().to_string());
    let files = set_up_inputs::files(&mut run.claim, &source.mirror, &base.commit, place).await?;
    run.claim.record.planned.dependencies = run
        .claim
        .record
        .planned
        .dependencies
        .take()
        .map(Dependencies::by_whole_tree);
    add_files(&run.claim, &mut text, &files, &source.mirror, &base.commit).await?;
    keep(run, text, &question, base, &files, &source.mirror);
    Ok(source)
}

/// Shows people that the item is planned, and refuses one that may not be worked on, or whose
/// branch may not be pushed to.
async fn take_up(run: &mut Run, item: &Item) -> Result<(), Interruption> {
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
    may_be_pushed(&run.claim, &run.reporter, item).await
}

/// Reads what people wrote on the item, and listens to its thread from here on.
async fn read_thread(run: &mut Run, item: &Item) -> Result<Thread, Interruption> {
    let ReportTarget::Item { forge, .. } = &run.reporter.destination else {
        return Err(Interruption::failed("a local task has no item"));
    };
    let comments = forge.comments(&item.task).await?;
    let of_round = follow_up::words_of_round(run, &comments).await?;
    let comments = run.inbox.begin_to_listen(&mut run.claim, comments).await;
    let may_be_read = comment_filter::require_vouched(run, item).await?;
    let said = match &of_round {
        // The comments of a follow-up round were filtered already.
        Some(_) => FilteredComments::default(),
        None => comment_filter::filter_comments(run, comments).await?,
    };
    Ok(Thread {
        may_be_read,
        of_round,
        said,
    })
}

/// Returns the pictures that were handed over with the item, and those in what the model may read.
async fn pictures_of(claim: &Claim, item: &Item, thread: &Thread) -> Result<Vec<LinkedPicture>, Interruption> {
    let mut found = Vec::new();
    let mut own = None;
    if thread.may_be_read {
        found = pictures::requested(claim).await?;
        own = Some((item.author.as_str(), item.body.as_str()));
    }
    let texts = own.into_iter().chain(pictures::said(&thread.said.comments));
    let texts = texts.chain(pictures::said(thread.of_round.as_deref().unwrap_or_default()));
    found.extend(pictures::linked(texts));
    Ok(found)
}

/// Returns the item without the labels by which the program itself tells how far a run is.
fn without_state_labels(reporter: &Reporter, item: &Item) -> Item {
    let mut item = item.clone();
    if let ReportTarget::Item { labels, .. } = &reporter.destination {
        let is_own = |label: &String| labels.all().iter().any(|own| own.eq_ignore_ascii_case(label));
        item.labels.retain(|label| !is_own(label));
    }
    item
}

/// Returns the task for the model: what people wrote, and what is known of earlier runs.
fn task(claim: &Claim, item: &Item, thread: &Thread, memory: &Memory) -> String {
    let fence = prompt::fence(claim.lease.run);
    let excerpts = CleanExcerpts {
        redactor: &claim.services.redactor,
        max_bytes: room::bytes_of_window(claim, TASK_SHARE),
    };
    let remarks = Remarks {
        comments: &thread.said.comments,
        others: &thread.said.others,
        since: memory.ended_at(),
    };
    let mut text = match (&claim.record.request.round, &thread.of_round) {
        (Some(round), Some(words)) if thread.may_be_read => follow_up::task(&fence, item, round, words, excerpts),
        (Some(round), Some(words)) => follow_up::task(&fence, &without_words(item), round, words, excerpts),
        (Some(_) | None, _) => prompt::task(&fence, item, &remarks, excerpts),
    };
    text.push_str(&earlier_runs::told(claim, memory, &fence));
    text
}

/// Returns the words of an item by which its places are looked for.
fn question(item: &Item, thread: &Thread) -> String {
    let mut question = String::new();
    if thread.may_be_read {
        question = format!("{}\n\n{}\n", visible::line(&item.title), visible::markdown(&item.body));
    }
    for comment in &thread.said.comments {
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

/// Adds to the task's text the list of the project's files, and the texts of those that it names.
async fn add_files(
    claim: &Claim,
    text: &mut String,
    files: &[String],
    mirror: &Mirror,
    commit: &CommitId,
) -> Result<(), Interruption> {
    // Before the list is added, which names files that the task does not.
    let named = shown_files::named_files(claim, text, files, mirror, commit).await?;
    text.push_str(&shown_files::files_at_a_glance(claim, files));
    text.push_str(&named);
    Ok(())
}

/// Saves in the record what was read, and begins to open the environment.
fn keep(run: &mut Run, text: String, question: &str, base: Base, files: &[String], mirror: &Mirror) {
    run.claim.record.planned.question = run.claim.services.redactor.clean(question).into_string();
    run.claim.record.planned.task_text = text;
    run.claim.record.planned.base = Some(base);
    open::open_early(run, files, mirror);
}
