//! The first stage: read the item, explore the repository, and have the model plan.

mod better_plan; // what the planner is told of a plan that was sent back
mod comment_filter; // comments that the model may read
mod earlier_runs; // earlier runs on the same item
mod environment_choice; // the environment of the run
pub(crate) mod kept_plans; // plans that are made once for the same input
mod set_up_inputs; // the files of the base that decide what a set-up installs
pub(crate) mod shown_files; // the project's files, as the model first sees them

use std::sync::Arc;

use chrono::Utc;
use serde_json::Value;

use crate::agent::approval::plan_question;
use crate::agent::claim::Claim;
use crate::agent::commands;
use crate::agent::dialogue::ask;
use crate::agent::dialogue::policy;
use crate::agent::dialogue::tool_calls;
use crate::agent::prompt::{self, EnvironmentRow, PlanningPrompt, Remarks};
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::agent::stages::follow_up;
use crate::agent::stages::planning::comment_filter::FilteredComments;
use crate::agent::stages::project_rules;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::large_files;
use crate::agent::workspace::open;
use crate::agent::workspace::source;
use crate::agent::workspace::source::{Source, may_be_pushed};
use crate::agent::workspace::submodules;
use crate::conversation::decode::{self, Unreadable};
use crate::conversation::{Reply, ToolSpec, Turn};
use crate::environment::During;
use crate::forge::Item;
use crate::journal::fact::Fact;
use crate::llm::config::role::Role;
use crate::plan::{self, Plan};
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::task::state::{Signal, State};
use crate::tool::toolbox::Toolbox;
use crate::workspace::base::Base;
use crate::workspace::set_up::dependencies::Dependencies;
use crate::workspace::tools::repository_tools::RepositoryTools;

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
        run.claim.record.planned.plan = Some(make_plan(run, source.mirror.clone()).await?);
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

async fn read_item(run: &mut Run, item: &Item) -> Result<Source, Interruption> {
    // Usually the producer set the labels already, but it may have been interrupted: the state in
    // the store decides, and the labels follow it.
    run.reporter
        .show_label(&mut run.claim, State::Planning, Some(&item.labels))
        .await?;
    run.reporter.take_trigger_off(item).await?;
    let rule = run
        .claim
        .services
        .models
        .local_only_rule(item.task.repository(), &item.labels);
    run.claim.record.request.local_only = run.claim.record.request.local_only.take().or(rule);
    confidentiality::keep_discretion(&mut run.claim, item)?;
    may_be_pushed(item)?;
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
    let fence = prompt::fence(run.claim.lease.run);
    let room = tool_calls::bytes_of_window(&run.claim, 40);
    let mut text = match (&run.claim.record.request.round, words) {
        (Some(round), Some(words)) if may_be_read => follow_up::task(&fence, item, round, &words, room),
        (Some(round), Some(words)) => follow_up::task(&fence, &without_words(item), round, &words, room),
        (Some(_) | None, _) => prompt::task(&fence, item, &remarks, room),
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
    run.claim.record.planned.task_text = text;
    run.claim.record.planned.base = Some(base);
    open::open_early(run, &files, &source.mirror);
    Ok(source)
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

async fn read_folder(run: &mut Run) -> Result<Source, Interruption> {
    let base = source::snapshot(&run.claim).await?;
    let source = source::source(run, None).await?;
    project_rules::read_rules_of(&mut run.claim, &source.mirror, &base.commit).await?;
    let local = run.claim.record.request.local.as_ref();
    let mut text = local.map_or_else(String::new, |local| prompt::local_task(&local.text));
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
    run.claim.record.planned.task_text = text;
    run.claim.record.planned.base = Some(base);
    open::open_early(run, &files, &source.mirror);
    Ok(source)
}

/// The action that the planner's reply requests.
enum Step {
    Look(Turn),
    Plan(Box<Plan>),
}

async fn make_plan(run: &mut Run, mirror: Mirror) -> Result<Plan, Interruption> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Err(Interruption::failed("there is no commit to plan on"));
    };
    let tree = mirror.tree(&base.commit).await?;
    let rules = run.claim.record.planned.rules.clone();
    let look = RepositoryTools::new(mirror, base.commit, rules.files);
    // Planning does not change the project, so tools that are only forbidden for the work are
    // allowed.
    let toolbox = Toolbox::new(vec![Arc::new(look)], rules.tools.clone());
    let system = planning_prompt(&run.claim, &toolbox).await?;
    let task = better_plan::task(&run.claim)?.into_owned();
    run.claim.record.planned.input = kept_plans::fingerprint(&run.claim, &system, &task, tree.as_str());
    if let Some(plan) = kept_plan(&mut run.claim).await? {
        return Ok(plan);
    }
    // JSON in the text for every provider: the reply is a document, and the few tools need no
    // native calls.
    let mut chat = run
        .claim
        .model(Role::Planner)
        .chat(Arc::from([]), false, run.claim.stop.asked.clone());
    chat.send_system_prompt(&run.claim.services.redactor.clean(&system));
    chat.send_user_message(&run.claim.services.redactor.clean(&task));
    let (most_subtasks, most_looks) = (
        run.claim.services.settings.planning.max_subtasks,
        run.claim.services.settings.planning.max_look_turns,
    );
    let tools = toolbox.specs().await?;
    let mut looks = 0;
    loop {
        let before = chat.messages().len();
        commands::hear_while_planning(run, &mut chat).await?;
        if chat.messages().len() > before || chat.answered_by() != chat.model() {
            // What people said meanwhile, and another model, are no part of the input.
            run.claim.record.planned.input = None;
        }
        let may_look = looks < most_looks;
        chat.hold_to(Some(form_of_step(&run.claim, if may_look { &tools } else { &[] })));
        match ask::ask(&mut run.claim, &mut chat, |reply| {
            read_step(reply, most_subtasks, may_look)
        })
        .await?
        {
            Step::Plan(plan) => {
                run.claim.record.worked.refusals.clear();
                return Ok(redaction::clean_plan(*plan, &run.claim.services.redactor));
            }
            Step::Look(turn) => {
                looks += 1;
                let called = tool_calls::call_all(&run.claim, &run.workspace.ledger, &toolbox, turn.calls).await?;
                let has_success = called.has_success();
                chat.send_tool_results(called.results);
                policy::count_refusals(&mut run.claim, &mut chat, &called.refused, has_success)?;
            }
        }
    }
}

/// Returns the plan that was made before for the same input, if it is to be used again.
async fn kept_plan(claim: &mut Claim) -> Result<Option<Plan>, Interruption> {
    let input = claim.record.planned.input.clone();
    let Some(input) = input.filter(|_| claim.services.settings.planning.reuse) else {
        return Ok(None);
    };
    let plan = kept_plans::take(claim, &input).await?;
    if plan.is_some() {
        claim.warn("The plan is that of an earlier run with the same input (`planning.reuse`).");
    }
    Ok(plan)
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

async fn planning_prompt(claim: &Claim, toolbox: &Toolbox) -> Result<String, Interruption> {
    let settings = &claim.services.settings;
    let containers = &claim.services.containers.config;
    let environments: Vec<EnvironmentRow<'_>> = containers
        .environments
        .iter()
        .map(|(name, environment)| EnvironmentRow {
            name,
            image: &environment.image,
            recommended_for: &environment.recommended_for,
        })
        .collect();
    prompt::planning(&PlanningPrompt {
        fence: &prompt::fence(claim.lease.run),
        max_look_turns: settings.planning.max_look_turns,
        max_subtasks: settings.planning.max_subtasks,
        rules: &project_rules::rules_prompt(claim),
        tools: &toolbox.specs().await?,
        environments: &environments,
        is_closed_after_set_up: containers.network.during == During::Setup,
    })
    .map_err(|error| Interruption::failed(format!("the planning prompt: {error:#}")))
}

fn form_of_step(claim: &Claim, tools: &[ToolSpec]) -> Value {
    let (settings, containers) = (&claim.services.settings, &claim.services.containers.config);
    let environments: Vec<&str> = containers.environments.keys().map(String::as_str).collect();
    plan::form::step(tools, &environments, settings.planning.max_subtasks)
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
    claim.record.planned.base = Some(Base {
        commit: commit.clone(),
        branch: named,
        ..base.clone()
    });
    // The recorded inputs were those of the default branch.
    claim.record.planned.dependencies = None;
    Ok(Some(commit))
}
