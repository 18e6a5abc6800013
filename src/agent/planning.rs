//! The first stage: read the item, look at the repository, and have the model plan.

use std::sync::Arc;

use chrono::Utc;
use serde_json::Value;

use super::audience::Said;
use super::dependencies::{Dependencies, Project};
use super::following_up;
use super::lists::may_lead_elsewhere;
use super::look::Look;
use super::overview;
use super::prompt::{self, EnvironmentRow, PlanningPrompt, Remarks};
use super::record::Base;
use super::rulebook::MOST_FILES;
use super::run::Run;
use super::setback::Setback;
use super::source::{Source, may_be_pushed};
use super::thread::Thread;
use crate::conversation::decode::{self, Unreadable};
use crate::conversation::{Reply, ToolSpec, Turn};
use crate::environment::During;
use crate::forge::Item;
use crate::journal::fact::Fact;
use crate::plan::{self, Plan};
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::repository::read::Entry;
use crate::secret::Redactor;
use crate::task::state::{Signal, State};
use crate::tool::toolbox::Toolbox;

/// Part of the window, in percent, for the list of the project's files, and the most it takes in
/// the largest windows.
const FILES_SHARE: u64 = 4;
const MOST_FILES_BYTES: usize = 16 * 1024;

/// Lists of dependencies that are looked into for other files that they name.
const MOST_POINTERS: usize = 16;
const LARGEST_POINTER: u64 = 64 * 1024;

/// Leaves base, plan, environment and the task's text in the record.
pub(super) async fn plan(run: &mut Run) -> Result<Signal, Setback> {
    run.record.started_at.get_or_insert_with(Utc::now);
    let source = match run.item().await? {
        Some(item) => read_item(run, &item).await?,
        None => read_folder(run).await?,
    };
    if run.workshop.settings.planning.enabled {
        let mirror = source.mirror.clone();
        run.record.plan = Some(make_plan(run, source).await?);
        choose_base(run, &mirror).await?;
    }
    choose_environment(run);
    run.note(Fact::Planned {
        environment: run.record.environment.clone().unwrap_or_default(),
        subtasks: run
            .record
            .plan
            .as_ref()
            .map_or(0, |plan| plan.task_decomposition.subtasks.len()),
    });
    Ok(Signal::Finished)
}

async fn read_item(run: &mut Run, item: &Item) -> Result<Source, Setback> {
    // The producer swapped the labels already, unless it was interrupted: the store decides, the
    // labels follow.
    run.show_label(State::Planning, Some(&item.labels)).await?;
    run.take_trigger_off(item).await?;
    let rule = run.workshop.model.local_only_rule(item.task.repository(), &item.labels);
    run.record.local_only = run.record.local_only.take().or(rule);
    run.keep_discretion(item)?;
    may_be_pushed(item)?;
    let Thread::Item { forge, .. } = &run.thread else {
        return Err(Setback::failed("a local task has no item"));
    };
    let comments = forge.comments(&item.task).await?;
    let words = run.words_of_round(&comments).await?;
    let comments = run.begin_to_listen(comments).await;
    let may_be_read = run.require_vouched(item).await?;
    let said = match &words {
        // A round is about what people said of its change, and that was sorted already.
        Some(_) => Said::default(),
        None => run.heed(comments).await?,
    };
    let source = run.source(Some(item)).await?;
    let base = run.find_base(item, &source.mirror).await?;
    run.require_vouched_head(item, &base.commit).await?;
    run.read_rules(item, &source.mirror).await?;
    let memory = run.recall().await?;
    let remarks = Remarks {
        comments: &said.comments,
        others: &said.others,
        since: memory.ended_at(),
    };
    let fence = prompt::fence(run.lease.run);
    let room = run.bytes_of_window(40);
    let mut text = match (&run.record.round, words) {
        (Some(round), Some(words)) if may_be_read => following_up::task(&fence, item, round, &words, room),
        (Some(round), Some(words)) => following_up::task(&fence, &without_words(item), round, &words, room),
        (Some(_) | None, _) => prompt::task(&fence, item, &remarks, room),
    };
    text.push_str(&run.told(&memory, &fence));
    let place = is_default_tip(item, &base, &source.mirror)
        .await?
        .then(|| item.clone_url.clone());
    let files = files(run, &source.mirror, &base.commit, place).await?;
    text.push_str(&files_at_a_glance(run, &files));
    run.record.task_text = text;
    run.record.base = Some(base);
    run.open_early(&files, &source.mirror);
    Ok(source)
}

/// Returns the item without its title and text, which somebody changed who may not write to the
/// repository.
fn without_words(item: &Item) -> Item {
    Item {
        title: String::new(),
        body: String::new(),
        ..item.clone()
    }
}

async fn read_folder(run: &mut Run) -> Result<Source, Setback> {
    let base = run.snapshot().await?;
    let source = run.source(None).await?;
    run.read_rules_of(&source.mirror, &base.commit).await?;
    let local = run.record.local.as_ref();
    let mut text = local.map_or_else(String::new, |local| prompt::local_task(&local.text));
    let place = run
        .record
        .local
        .as_ref()
        .map(|local| local.folder.display().to_string());
    let files = files(run, &source.mirror, &base.commit, place).await?;
    run.record.dependencies = run.record.dependencies.take().map(Dependencies::by_whole_tree);
    text.push_str(&files_at_a_glance(run, &files));
    run.record.task_text = text;
    run.record.base = Some(base);
    run.open_early(&files, &source.mirror);
    Ok(source)
}

/// Tells whether a run begins with what the project itself says it is: the tip of its default
/// branch. Only such runs keep their set-up and begin with a kept one. On any other branch a
/// stranger, or a model in an earlier run, may have written what the set-up runs, and what that
/// leaves (programs in front of the search path, ignored files) would be there in the next run on
/// the default branch.
async fn is_default_tip(item: &Item, base: &Base, mirror: &Mirror) -> Result<bool, Setback> {
    let Some(branch) = item.default_branch.as_deref() else {
        return Ok(false);
    };
    let is_untouched = item.change.is_none() && !base.holds_work && base.branch == branch;
    Ok(is_untouched && mirror.branch(branch).await?.as_ref() == Some(&base.commit))
}

/// Returns the files that the work begins from and the rules leave, and notes what the set-up will
/// depend on.
async fn files(
    run: &mut Run,
    mirror: &Mirror,
    commit: &CommitId,
    place: Option<String>,
) -> Result<Vec<String>, Setback> {
    let (files, are_more) = mirror.files(commit, MOST_FILES).await?;
    run.record.dependencies = match place.filter(|_| !are_more) {
        Some(place) => Some(Dependencies::of(Project {
            repository: &place,
            files: &files,
            tree: mirror.tree(commit).await?,
            pointers: pointers(mirror, commit, &files).await?,
        })),
        None => None,
    };
    let filter = run.record.rules.files.filter();
    let paths = files.into_iter().map(|file| file.path);
    Ok(paths.filter(|path| filter.takes(path)).collect())
}

/// Reads the lists of dependencies that may send an installer on to other files. One that is too
/// large, or one too many, counts as one that does.
async fn pointers(mirror: &Mirror, commit: &CommitId, files: &[Entry]) -> Result<Vec<Option<String>>, Setback> {
    let mut pointers = Vec::new();
    for file in files.iter().filter(|file| may_lead_elsewhere(&file.path)) {
        if pointers.len() == MOST_POINTERS || file.size > LARGEST_POINTER {
            pointers.push(None);
            break;
        }
        let bytes = mirror.file(commit, &file.path, LARGEST_POINTER).await?;
        pointers.push(bytes.and_then(|bytes| String::from_utf8(bytes).ok()));
    }
    Ok(pointers)
}

/// Returns their list for the model, in at most its share of the window.
fn files_at_a_glance(run: &Run, files: &[String]) -> String {
    let overview = overview::overview(files, run.bytes_of_window(FILES_SHARE).min(MOST_FILES_BYTES));
    overview::block(&prompt::fence(run.lease.run), &overview)
}

/// What the planner's reply asks for.
enum Step {
    Look(Turn),
    Plan(Box<Plan>),
}

async fn make_plan(run: &mut Run, source: Source) -> Result<Plan, Setback> {
    let Some(base) = run.record.base.clone() else {
        return Err(Setback::failed("there is no commit to plan on"));
    };
    let rules = run.record.rules.clone();
    let look = Look::new(source.mirror, base.commit, rules.files);
    // Looking is no part of the work: what is only not allowed for that may be used here.
    let toolbox = Toolbox::new(vec![Arc::new(look)], rules.tools.clone());
    let system = planning_prompt(run, &toolbox).await?;
    // JSON in the text for every provider: the reply is a document, and the few tools need no
    // native calls.
    let mut chat = run.model().chat(Arc::from([]), false, run.stop.asked.clone());
    chat.send_system_prompt(&run.workshop.redactor.clean(&system));
    chat.send_user_message(&run.workshop.redactor.clean(&run.record.task_text));
    let (most_subtasks, most_looks) = (
        run.workshop.settings.planning.max_subtasks,
        run.workshop.settings.planning.max_look_turns,
    );
    let tools = toolbox.specs().await?;
    let mut looks = 0;
    loop {
        run.hear_while_planning(&mut chat).await?;
        let may_look = looks < most_looks;
        chat.hold_to(Some(form_of_step(run, if may_look { &tools } else { &[] })));
        match run
            .ask(&mut chat, |reply| read_step(reply, most_subtasks, may_look))
            .await?
        {
            Step::Plan(plan) => {
                run.record.refusals.clear();
                return Ok(cleaned(*plan, &run.workshop.redactor));
            }
            Step::Look(turn) => {
                looks += 1;
                let called = run.call_all(&toolbox, turn.calls).await?;
                let has_success = called.has_success();
                chat.send_tool_results(called.results);
                run.heed_refusals(&mut chat, &called.refused, has_success)?;
            }
        }
    }
}

/// Takes secrets out of what people are shown of the plan.
pub(super) fn cleaned(mut plan: Plan, redactor: &Redactor) -> Plan {
    plan.comment = redactor.clean(&plan.comment).into_string();
    for subtask in &mut plan.task_decomposition.subtasks {
        subtask.description = redactor.clean(&subtask.description).into_string();
    }
    plan
}

fn read_step(reply: &Reply, most_subtasks: usize, may_look: bool) -> Result<Step, Unreadable> {
    let no_plan = match plan::read(reply) {
        Ok(plan) => {
            plan.validate(most_subtasks)?;
            return Ok(Step::Plan(Box::new(plan)));
        }
        Err(no_plan) => no_plan,
    };
    match decode::turn(reply) {
        Ok(turn) if turn.calls.is_empty() => Err(no_plan),
        Ok(turn) if may_look => Ok(Step::Look(turn)),
        Ok(_) => Err(Unreadable::new(
            "You have looked as often as you may; reply with the plan now",
        )),
        Err(_) => Err(no_plan),
    }
}

async fn planning_prompt(run: &Run, toolbox: &Toolbox) -> Result<String, Setback> {
    let settings = &run.workshop.settings;
    let environments: Vec<EnvironmentRow<'_>> = settings
        .environments
        .environments
        .iter()
        .map(|(name, environment)| EnvironmentRow {
            name,
            image: &environment.image,
            recommended_for: &environment.recommended_for,
        })
        .collect();
    prompt::planning(&PlanningPrompt {
        fence: &prompt::fence(run.lease.run),
        max_look_turns: settings.planning.max_look_turns,
        max_subtasks: settings.planning.max_subtasks,
        rules: &run.rules_prompt(),
        tools: &toolbox.specs().await?,
        environments: &environments,
        is_closed_after_set_up: settings.environments.network.during == During::Setup,
    })
    .map_err(|error| Setback::failed(format!("the planning prompt: {error:#}")))
}

fn form_of_step(run: &Run, tools: &[ToolSpec]) -> Value {
    let settings = &run.workshop.settings;
    let environments: Vec<&str> = settings.environments.environments.keys().map(String::as_str).collect();
    plan::form::step(tools, &environments, settings.planning.max_subtasks)
}

/// Starts from the branch the plan names, where the task asks for another one than the default. A
/// branch that exists already, that of a pull/merge request or of an earlier run, is gone on with
/// whatever the plan says.
async fn choose_base(run: &mut Run, mirror: &Mirror) -> Result<(), Setback> {
    let named = run.record.plan.as_ref().and_then(|plan| plan.base_branch.clone());
    let (Some(named), Some(base), None) = (named, &run.record.base, &run.record.local) else {
        return Ok(());
    };
    if named == base.branch || mirror.branch(&base.head_branch).await?.is_some() {
        return Ok(());
    }
    let Some(commit) = mirror.branch(&named).await? else {
        let branch = base.branch.clone();
        run.warn(format!(
            "The plan starts from the branch `{named}`, which does not exist; `{branch}` is used."
        ));
        return Ok(());
    };
    run.record.base = Some(Base {
        commit,
        branch: named,
        ..base.clone()
    });
    // They were those of the default branch.
    run.record.dependencies = None;
    Ok(())
}

/// Applies the environment rules: what a person named wins; an unknown or missing name gives way to
/// the default, and people are told.
fn choose_environment(run: &mut Run) {
    let config = &run.workshop.settings.environments;
    let default = config.default_environment.clone();
    let named = run.record.local.as_ref().and_then(|local| local.environment.clone());
    let (name, note) = match (&named, &run.record.plan) {
        (Some(name), _) => (name.clone(), None),
        (None, Some(plan)) => {
            let known: Vec<&str> = config.environments.keys().map(String::as_str).collect();
            let choice = plan::choose_environment(plan, &known, &default);
            (choice.name, choice.note)
        }
        (None, None) => (default, None),
    };
    if let Some(note) = note {
        run.warn(note);
    }
    run.record.environment = Some(name);
}
