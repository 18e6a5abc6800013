//! Two installations that look for the same label and share no store: each item is worked on once,
//! whichever of them is killed, cut off or slow, whatever their clocks say, and whatever somebody
//! writes in the place of a claim.

use std::path::Path;

use serde_json::{Value, json};

use crate::fake::board::Board;
use crate::fake::item::Item;
use crate::fake::model::{Answer, Model, Plan, Request, Said};
use crate::world::scripts::COMMAND;
use crate::world::{Program, World};

const CLAIM: &str = "refs/coding-agent/claims/item-1";

/// Makes the program the one of the other installation, with a store of its own.
fn other(world: &mut World) {
    world.moves_to("second");
}

fn without_a_shared_store(world: &mut World) {
    world.configure(|config| {
        config.as_object_mut().unwrap().remove("store");
    });
}

/// Has the model write one file, named after the issue.
fn write_one_file(request: &Request) -> Answer {
    let is_over = request.messages.iter().any(|said| matches!(said, Said::Assistant(..)));
    if is_over {
        return Answer::done("Written.");
    }
    let task = request.first_user_message();
    let number = task.split('#').nth(1).and_then(|rest| rest.split(':').next());
    let number = number.unwrap_or("none").to_owned();
    let args = json!({ "path": format!("{number}.txt"), "content": number, "mode": "create" });
    Answer::calls("workspace/write_file", args)
}

/// Returns the facts in the logs of both installations.
fn facts(world: &World) -> Vec<Value> {
    let mut facts = Vec::new();
    for folder in ["logs", "logs-second"] {
        facts.extend(facts_in(&world.folder().join(folder)));
    }
    facts
}

fn facts_in(folder: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let journals = files.filter(|file| file.path().extension().is_some_and(|end| end == "jsonl"));
    let texts = journals.map(|file| std::fs::read_to_string(file.path()).unwrap());
    texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|line| serde_json::from_str(&line).ok())
        .collect()
}

fn count(facts: &[Value], fact: &str, what: (&str, &str)) -> usize {
    let matches = |entry: &&Value| entry["fact"] == fact && entry[what.0] == what.1;
    facts.iter().filter(matches).count()
}

fn warnings(facts: &[Value]) -> Vec<&str> {
    let warned = facts.iter().filter(|entry| entry["fact"] == "warned");
    warned.filter_map(|entry| entry["text"].as_str()).collect()
}

async fn world_of_two() -> World {
    let mut world = World::with(Model::answering(write_one_file).await).await;
    without_a_shared_store(&mut world);
    world.configure(|config| config["planning"] = json!({ "enabled": false }));
    world
}

/// Has both installations serve.
async fn both_serve(world: &mut World) -> [Program; 2] {
    let first = world.spawn(&["serve"]);
    // It has read its configuration then.
    let has_store = |world: &World, folder: &str| world.folder().join(folder).join("coding-agent.db").exists();
    world.until("the first one", || has_store(world, "state")).await;
    other(world);
    let second = world.spawn(&["serve"]);
    world.until("the second one", || has_store(world, "state-second")).await;
    [first, second]
}

/// Waits until each of these items is done, and ends both.
async fn until_done<S: Board>(world: &World, services: [Program; 2], items: &[Item<S>]) -> Vec<Value> {
    for item in items {
        item.until(|item| item.labels() == ["coding agent done"]).await;
    }
    let all = items.len();
    world
        .until("all runs to end", || {
            count(&facts(world), "put_down", ("ending", "done")) >= all
        })
        .await;
    for service in services {
        service.signal("TERM");
        assert_eq!(service.ended().await.code, Some(0));
    }
    facts(world)
}

fn expect_each_once<S: Board>(world: &World, facts: &[Value], items: &[Item<S>]) {
    for (number, item) in (1..).zip(items) {
        assert_eq!(item.labels(), ["coding agent done"], "{}", world.story());
        let is_its = |entry: &&Value| {
            entry["task"]
                .as_str()
                .is_some_and(|task| task.ends_with(&format!("#{number}")))
        };
        let of_item: Vec<_> = facts.iter().filter(is_its).cloned().collect();
        for fact in ["admitted", "claimed", "change_opened"] {
            let times = of_item.iter().filter(|entry| entry["fact"] == fact).count();
            assert_eq!(times, 1, "{fact} of {number}\n{}", world.story());
        }
    }
}

#[tokio::test]
async fn each_issue_of_github_is_worked_on_by_one_of_them() {
    let mut world = world_of_two().await;
    // Neither goes by its own clock, which the forge's is far from.
    world.github.clock_is_ahead(5 * 60);
    let services = both_serve(&mut world).await;
    let issues: Vec<_> = (0..6)
        .map(|_| world.github.open_issue("Write").label("coding agent"))
        .collect();

    let facts = until_done(&world, services, &issues).await;

    expect_each_once(&world, &facts, &issues);
    assert_eq!(world.github.pulls().len(), 6, "{}", world.story());
    let repository = world.github.default_repository();
    assert_eq!(repository.branches().len(), 7, "{:?}", repository.branches());
    let claims = repository.git().messages_below("refs/coding-agent/");
    assert_eq!(claims.len(), 6, "{claims:?}");
    assert!(
        claims.iter().all(|(_, text)| text.contains("\nstate: over\n")),
        "{claims:?}"
    );
    world.comes_back();
    world.finish().await;
}

#[tokio::test]
async fn each_issue_of_gitlab_is_worked_on_by_one_of_them() {
    let mut world = world_of_two().await;
    world.configure(|config| config["task_sources"] = json!(["gitlab"]));
    world.gitlab.clock_is_ahead(-3 * 60);
    let services = both_serve(&mut world).await;
    let issues: Vec<_> = (0..4)
        .map(|_| world.gitlab.open_issue("Write").label("coding agent"))
        .collect();

    let facts = until_done(&world, services, &issues).await;

    expect_each_once(&world, &facts, &issues);
    assert_eq!(world.gitlab.merge_requests().len(), 4, "{}", world.story());
    let project = world.gitlab.default_project();
    assert_eq!(project.branches().len(), 5, "{:?}", project.branches());
    world.comes_back();
    world.finish().await;
}

fn paints(world: &World, colour: &str) {
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": format!("echo {colour} > state.txt") }))
        .done("Painted.");
}

/// The same, held back before the last word.
fn paints_and_waits(world: &World, colour: &str) {
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": format!("echo {colour} > state.txt") }))
        .done("Painted.")
        .holds();
}

fn plan() -> Plan {
    Plan::of(&["paint"])
        .in_environment("python")
        .verified_by("test -s state.txt")
}

async fn painting() -> World {
    let mut world = World::start().await;
    without_a_shared_store(&mut world);
    world.model.allows_restarts();
    world
}

#[tokio::test]
async fn what_one_left_behind_is_taken_over_when_its_claim_has_run_out_and_it_ends_when_it_is_back() {
    let mut world = painting().await;
    paints_and_waits(&world, "red");
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.kill().await;
    issue.label("coding agent");

    other(&mut world);
    let ended = world.run().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent processing", "coding agent"]);
    let told = facts(&world);
    assert!(
        warnings(&told)
            .iter()
            .any(|text| text.contains("has claimed the item on the forge until")),
        "{told:?}"
    );

    world.github.clock_is_ahead(17);
    paints(&world, "green");
    let ended = world.run().await;
    assert_eq!(ended.stdout, "github:acme/widgets#1: done\n", "{}", world.story());

    world.comes_back();
    let ended = world.run().await;
    assert_eq!(ended.stdout, "github:acme/widgets#1: stopped\n", "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].file("state.txt").as_deref(), Some("green\n"));
    assert_eq!(world.github.default_repository().branches().len(), 2);
    world.finish().await;
}

/// Kills the first installation at its next request to a route, before or after that is done, and
/// has the second find the item then; afterwards the first goes on.
async fn killed_around_its_claim(route: &str, is_done: bool) {
    let mut world = painting().await;
    paints(&world, "red");
    world.github.hangs(route, 0, is_done);
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    program.kill().await;
    world.github.cuts_off();

    other(&mut world);
    let of_other = world.run().await;
    world.comes_back();
    let of_first = world.run().await;

    let story = || format!("{route} {is_done}: {of_other:?} {of_first:?}\n{}", world.story());
    let done = "github:acme/widgets#1: done\n";
    let outcomes = [of_other.stdout.as_str(), of_first.stdout.as_str()];
    assert_eq!(outcomes.iter().filter(|said| **said == done).count(), 1, "{}", story());
    assert!(
        outcomes.iter().all(|said| said.is_empty() || *said == done),
        "{}",
        story()
    );
    assert_eq!(issue.labels(), ["coding agent done"], "{}", story());
    assert_eq!(world.github.pulls().len(), 1, "{}", story());
    assert_eq!(world.github.default_repository().branches().len(), 2, "{}", story());
    world.finish().await;
}

#[tokio::test]
async fn whoever_is_killed_before_it_has_claimed_leaves_the_item_to_the_other() {
    killed_around_its_claim("POST /acme/widgets.git/git-receive-pack", false).await;
}

#[tokio::test]
async fn whoever_is_killed_after_its_claim_goes_on_itself() {
    killed_around_its_claim("POST /acme/widgets.git/git-receive-pack", true).await;
    killed_around_its_claim("POST /repos/*/*/issues/*/labels", true).await;
    killed_around_its_claim("DELETE /repos/*/*/issues/*/labels/*", false).await;
}

#[tokio::test]
async fn whoever_was_silent_for_too_long_pushes_nothing_any_more() {
    let mut world = painting().await;
    paints_and_waits(&world, "red");
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let first = world.spawn(&["run"]);
    world.model.until_held(1).await;

    world.github.clock_is_ahead(17);
    issue.label("coding agent");
    other(&mut world);
    paints_and_waits(&world, "green");
    let second = world.spawn(&["run"]);
    world.model.until_held(2).await;
    world.model.release();
    let first = first.ended().await;
    assert!(
        first.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{first:?}\n{}",
        world.story()
    );
    assert!(world.github.pulls().is_empty(), "{}", world.story());
    assert_eq!(
        world.github.default_repository().branches(),
        ["main"],
        "{}",
        world.story()
    );

    world.model.release();
    let second = second.ended().await;
    assert_eq!(second.stdout, "github:acme/widgets#1: done\n", "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].file("state.txt").as_deref(), Some("green\n"));
    world.comes_back();
    // What is put back is due in a minute; a person's word has it looked at now.
    let ended = world.command(&["resume", "github:acme/widgets#1"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    world.run().await;
    let told = facts(&world);
    assert!(
        warnings(&told)
            .iter()
            .any(|text| text.contains("another installation finished the item")),
        "{told:?}"
    );
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    assert_eq!(world.github.pulls().len(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn what_no_installation_would_have_written_is_said_and_not_obeyed() {
    let trigger = "2020-01-01T00:00:00Z";
    let id = "0199b1a4-7e5c-4d1f-9b0a-000000000001";
    let claim = |until: &str, state: &str, asked: &str| {
        format!(
            "Keep out.\n\ninstallation: {id}\nworker: {id}\nrun: none\nasked-at: {asked}\nuntil: {until}\nstate: {state}\n"
        )
    };
    let far = "2999-01-01T00:00:00Z";
    for text in [
        "Keep out.\n".to_owned(),
        claim("9999-12-31T23:59:59Z", "held", trigger),
        claim(trigger, "over", far),
        format!("{}state: held\n", claim(trigger, "over", far)),
        "x".repeat(100_000),
    ] {
        let world = painting().await;
        paints(&world, "green");
        let issue = world.github.open_issue("Paint it").label("coding agent");
        world.github.default_repository().git().set_message(CLAIM, &text);

        let ended = world.run().await;

        assert_eq!(
            ended.stdout,
            "github:acme/widgets#1: done\n",
            "{text:.80}\n{}",
            world.story()
        );
        assert_eq!(issue.labels(), ["coding agent done"]);
        let told = facts(&world);
        assert!(
            warnings(&told).iter().any(|text| text.contains("it is not obeyed")),
            "{text:.80}: {told:?}"
        );
        world.finish().await;
    }
}

#[tokio::test]
async fn a_reference_that_is_no_commit_holds_nothing() {
    let world = painting().await;
    paints(&world, "green");
    world.github.open_issue("Paint it").label("coding agent");
    let git = world.github.default_repository().git();
    let tree = git.tree("main");
    git.set_reference(CLAIM, &tree);

    let ended = world.run().await;

    assert_eq!(ended.stdout, "github:acme/widgets#1: done\n", "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_claim_that_somebody_takes_away_during_the_work_costs_a_minute_and_nothing_else() {
    let world = painting().await;
    paints_and_waits(&world, "red");
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let running = world.spawn(&["run"]);
    world.model.until_held(1).await;
    world.github.default_repository().git().delete_reference(CLAIM);
    world.model.release();
    let ended = running.ended().await;
    assert!(
        ended.stdout.contains(": put back until "),
        "{ended:?}\n{}",
        world.story()
    );

    // A person's word has it looked at before the minute is over.
    assert_eq!(world.command(&["resume", "github:acme/widgets#1"]).await.code, Some(0));
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_forge_that_takes_no_claims_is_worked_on_and_doctor_says_so() {
    let world = painting().await;
    paints(&world, "green");
    let repository = world.github.default_repository();
    repository.git().reject_other_references("only branches here");
    let issue = world.github.open_issue("Paint it").label("coding agent");

    let told = world.command(&["doctor"]).await;
    assert!(told.stdout.contains("can be fetched, but takes no claims"), "{told:?}");
    assert!(told.stdout.contains("labels.trigger"), "{told:?}");
    let ended = world.run().await;
    assert_eq!(ended.stdout, "github:acme/widgets#1: done\n", "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert!(repository.git().messages_below("refs/coding-agent/").is_empty());
    world.finish().await;
}

#[tokio::test]
async fn doctor_leaves_nothing_of_its_trial() {
    let world = painting().await;
    let told = world.command(&["doctor"]).await;
    assert!(told.stdout.contains("takes claims"), "{told:?}");
    let git = world.github.default_repository().git();
    assert!(git.messages_below("refs/coding-agent/").is_empty());
    world.finish().await;
}
