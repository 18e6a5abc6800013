//! The conversation with the planner: it looks at the repository, plans, and is asked again for
//! what does not hold.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::claim::Claim;
use crate::agent::code_index;
use crate::agent::commands;
use crate::agent::dialogue::ask;
use crate::agent::dialogue::policy;
use crate::agent::dialogue::room;
use crate::agent::dialogue::tool_calls;
use crate::agent::pictures;
use crate::agent::prompt::{self, EnvironmentRow, PlanningPrompt};
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::agent::run::Run;
use crate::agent::stages::planning::best_places;
use crate::agent::stages::planning::better_plan;
use crate::agent::stages::planning::evidence;
use crate::agent::stages::planning::kept_plans;
use crate::agent::stages::project_rules;
use crate::conversation::decode::{self, Unreadable};
use crate::conversation::excerpt::{LOOKED, LOOKED_ENOUGH};
use crate::conversation::{Reply, ToolSpec, Turn};
use crate::environment::During;
use crate::llm::chat::Chat;
use crate::llm::config::role::Role;
use crate::plan::{self, Plan};
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::tool::toolbox::Toolbox;
use crate::workspace::tools::repository_tools::RepositoryTools;

/// Reason why the planner may not look once more: it did so `max_look_turns` times.
const LOOKED_OFTEN: &str = "You have looked as often as you may; reply with the plan now";
/// Reason why the planner may not look once more: the rest of the window is for the plan.
const WINDOW_IS_FULL: &str = "Your context window is nearly full; reply with the plan now, from what you have seen";

/// The action that the planner's reply requests.
enum Step {
    Look(Turn),
    Plan(Box<Plan>),
}

/// Lets the planner look and plan until there is a plan that can be worked on.
pub(super) async fn make_plan(run: &mut Run, mirror: Mirror) -> Result<Plan, Interruption> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Err(Interruption::failed("there is no commit to plan on"));
    };
    let tree = mirror.tree(&base.commit).await?;
    let rules = run.claim.record.planned.rules.clone();
    let code = code_index::open(&mut run.claim, &mirror, &base.commit).await?;
    let redactor = Arc::clone(&run.claim.services.redactor);
    let look = RepositoryTools::new(mirror.clone(), base.commit.clone(), rules.files, redactor);
    let look = look.with_index(code.clone());
    // Planning does not change the project, so tools that are only forbidden for the work are
    // allowed.
    let toolbox = Toolbox::new(vec![Arc::new(look)], rules.tools.clone());
    let system = planning_prompt(&run.claim, &toolbox).await?;
    // JSON in the text for every provider: the reply is a document, and the few tools need no
    // native calls.
    let mut chat = run
        .claim
        .model(Role::Planner)
        .chat(Arc::from([]), false, run.claim.stop.asked.clone());
    let sight = pictures::sight(&run.claim, &run.reporter, &run.claim.record.planned.pictures, &chat).await;
    let task = better_plan::task(&run.claim)?.into_owned() + &sight.words;
    run.claim.record.planned.input = kept_plans::fingerprint(&run.claim, &system, &task, tree.as_str());
    if let Some(plan) = kept_plan(&mut run.claim).await? {
        evidence::check(&mut run.claim, &mirror, &base.commit, &plan).await?;
        return Ok(plan);
    }
    // Not part of the input: what the index finds best depends on what else it holds.
    let places = match &code {
        Some(code) => best_places::block(&mut run.claim, code).await,
        None => String::new(),
    };
    chat.send_system_prompt(&run.claim.services.redactor.clean(&system));
    let task = run.claim.services.redactor.clean(&(task + &places));
    chat.send_pictures(&task, sight.pictures);
    let tools = toolbox.specs().await?;
    converse(
        run,
        chat,
        &toolbox,
        &tools,
        &Base {
            mirror,
            commit: base.commit,
        },
    )
    .await
}

/// The files that the planner looks at.
struct Base {
    mirror: Mirror,
    commit: CommitId,
}

/// Asks until there is a plan. Evidence that does not hold is asked for again once, and so is a
/// plan that people denied already.
async fn converse(
    run: &mut Run,
    mut chat: Chat,
    toolbox: &Toolbox,
    tools: &[ToolSpec],
    base: &Base,
) -> Result<Plan, Interruption> {
    let (most_subtasks, most_looks) = (
        run.claim.services.settings.planning.max_subtasks,
        run.claim.services.settings.planning.max_look_turns,
    );
    let (mut looks, mut has_doubted, mut has_refused) = (0, false, false);
    loop {
        let before = chat.messages().len();
        commands::hear_while_planning(run, &mut chat).await?;
        if chat.messages().len() > before {
            // What people said meanwhile is no part of the input.
            run.claim.record.planned.input = None;
        }
        let enough = if looks >= most_looks {
            Some(LOOKED_OFTEN)
        } else {
            // The task alone may fill more than what is enough. The outputs of a first look are
            // cut to what they may fill.
            let full = if looks == 0 { LOOKED } else { LOOKED_ENOUGH };
            (chat.fullness() >= full).then_some(WINDOW_IS_FULL)
        };
        let may_look = enough.is_none();
        chat.hold_to(Some(form_of_step(&run.claim, if may_look { tools } else { &[] })));
        let read = |reply: &Reply| read_step(reply, most_subtasks, enough);
        let step = ask::ask(&mut run.claim, &mut chat, read).await?;
        if chat.answered_by() != chat.model() {
            // Another model is no part of the input either. The next run asks the planner's own.
            run.claim.record.planned.input = None;
        }
        match step {
            Step::Plan(plan) => {
                let plan = redaction::clean_plan(*plan, &run.claim.services.redactor);
                evidence::check(&mut run.claim, &base.mirror, &base.commit, &plan).await?;
                if let Some(doubts) = evidence::doubts(&run.claim).filter(|_| !has_doubted) {
                    has_doubted = true;
                    chat.send_user_message(&run.claim.services.redactor.clean(&doubts));
                    continue;
                }
                if let Some(denied) = better_plan::denied_again(&run.claim, &plan).filter(|_| !has_refused) {
                    has_refused = true;
                    chat.send_user_message(&run.claim.services.redactor.clean(&denied));
                    continue;
                }
                run.claim.record.worked.refusals.clear();
                return Ok(plan);
            }
            Step::Look(turn) => {
                looks += 1;
                let most = room::bytes_of_look(&run.claim, &chat);
                let (claim, ledger) = (&run.claim, &run.workspace.ledger);
                let called = tool_calls::call_all_within(claim, ledger, toolbox, (turn.calls, most)).await?;
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

/// Reads a look or a plan. A look is refused with the reason why the planner has seen `enough`, if
/// there is one.
fn read_step(reply: &Reply, most_subtasks: usize, enough: Option<&'static str>) -> Result<Step, Unreadable> {
    let no_plan = match plan::read(reply) {
        Ok(plan) => {
            plan.validate(most_subtasks)?;
            return Ok(Step::Plan(Box::new(plan)));
        }
        Err(no_plan) => no_plan,
    };
    match decode::turn(reply) {
        Ok(turn) if turn.calls.is_empty() => Err(no_plan),
        Ok(turn) => match enough {
            None => Ok(Step::Look(turn)),
            Some(reason) => Err(Unreadable::new(reason)),
        },
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
