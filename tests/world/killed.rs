//! A run that is ended with KILL anywhere, and repeated: it comes to the same end as if nothing had
//! happened.
//!
//! Each place is one line of a table. The task commits a file, writes another without committing
//! it, and is checked by the program; afterwards there is exactly one of everything, and what was
//! done before the end is not done again.

use futures_util::future::join_all;
use serde_json::json;

use crate::fake::github::Item;
use crate::fake::model::{Answer, Plan};
use crate::world::World;
use crate::world::processes::{self, mark};

/// The point at which the program is killed.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// It waits for this answer of the model, counted from 0.
    Model(usize),
    /// The model's command runs in the container.
    Command,
    /// A set-up command of the plan runs in the container.
    SetUp,
    /// A check of the plan runs in the container.
    Check,
    /// It has sent the request after so many others to the route, and the forge has not done the
    /// work yet.
    Asked(&'static str, usize),
    /// The forge has done the work, and nobody heard of it.
    Done(&'static str, usize),
}

const ADD_LABELS: &str = "POST /repos/*/*/issues/*/labels";
const TAKE_LABEL: &str = "DELETE /repos/*/*/issues/*/labels/*";
const COMMENT: &str = "POST /repos/*/*/issues/*/comments";
const EDIT: &str = "PATCH /repos/*/*/issues/comments/*";
const PUSH: &str = "POST /acme/widgets.git/git-receive-pack";
const OPEN: &str = "POST /repos/*/*/pulls";

const PLAN: usize = 0;

impl Place {
    /// The container was ready, so no second one may be started.
    fn is_after_preparing(self) -> bool {
        match self {
            Self::Model(answer) => answer > PLAN,
            Self::Command | Self::Check => true,
            Self::SetUp => false,
            Self::Asked(route, spared) | Self::Done(route, spared) => route == OPEN || spared > 0,
        }
    }
}

#[tokio::test]
async fn while_it_waits_for_the_model() {
    repeat(&[Place::Model(PLAN), Place::Model(1), Place::Model(2), Place::Model(3)]).await;
}

#[tokio::test]
async fn while_a_command_runs_in_the_container() {
    repeat(&[Place::SetUp, Place::Command, Place::Check]).await;
}

#[tokio::test]
async fn between_the_book_and_the_labels() {
    repeat(&[
        Place::Asked(ADD_LABELS, 0),
        Place::Done(ADD_LABELS, 0),
        Place::Asked(TAKE_LABEL, 0),
        Place::Done(TAKE_LABEL, 0),
    ])
    .await;
}

#[tokio::test]
async fn around_the_claim_on_the_item_and_its_end() {
    repeat(&[
        Place::Asked(PUSH, 0),
        Place::Done(PUSH, 0),
        Place::Asked(PUSH, 2),
        Place::Done(PUSH, 2),
    ])
    .await;
}

#[tokio::test]
async fn around_the_progress_comment() {
    repeat(&[Place::Asked(COMMENT, 0), Place::Done(COMMENT, 0), Place::Done(EDIT, 0)]).await;
}

#[tokio::test]
async fn around_the_push_and_the_pull_request() {
    repeat(&[
        Place::Asked(PUSH, 1),
        Place::Done(PUSH, 1),
        Place::Asked(OPEN, 0),
        Place::Done(OPEN, 0),
    ])
    .await;
}

#[tokio::test]
async fn around_the_final_comment_and_the_final_label() {
    repeat(&[
        Place::Asked(COMMENT, 1),
        Place::Done(COMMENT, 1),
        Place::Asked(ADD_LABELS, 1),
        Place::Done(ADD_LABELS, 1),
        Place::Done(TAKE_LABEL, 1),
    ])
    .await;
}

/// Tells the story of each place, side by side.
async fn repeat(places: &[Place]) {
    join_all(places.iter().map(|place| killed_at(*place))).await;
}

async fn killed_at(place: Place) {
    let world = World::start().await;
    world.model.allows_restarts();
    // The progress comment is edited beside the work: whatever is under way at the model then, an
    // answer may be lost with the process.
    world.model.repeats_answers();
    // Unique in its digits, and short: a command that is run again is waited for. One that has
    // ended before the kill would not be asked for again.
    let seconds = if matches!(place, Place::Command) { 8 } else { 2 };
    let nap = format!("{seconds}.{}", mark().replace('.', ""));
    write_script(&world, place, &nap);
    match place {
        Place::Asked(route, spared) => world.github.hangs(route, spared, false),
        Place::Done(route, spared) => world.github.hangs(route, spared, true),
        _ => {}
    }
    let issue = world.github.open_issue("Count to two").label("coding agent");

    let program = world.spawn(&["run"]);
    reach(&world, place, &nap).await;
    program.kill().await;
    processes::until(&nap, 0).await;
    // A git that hangs outlives the program for the minute that git waits for a silent host.
    world.github.cuts_off();
    let ended = world.run().await;

    let story = || format!("killed at {place:?}: {ended:?}\n{}", world.story());
    assert_eq!(ended.code, Some(0), "{}", story());
    expect_one_of_everything(&world, &issue, &story);
    let again = |fact: &str| world.journal().iter().filter(|entry| entry["fact"] == fact).count() > 1;
    assert!(!again("planned"), "{}", story());
    if place.is_after_preparing() {
        assert!(!again("environment_started"), "{}", story());
    }
    world.finish().await;
}

/// The model's steps.
fn write_script(world: &World, place: Place, nap: &str) {
    let sleep = |is_here: bool| {
        if is_here {
            format!("; sleep {nap}")
        } else {
            String::new()
        }
    };
    let mut check = Plan::of(&["count"]).in_environment("python").verified_by(&format!(
        "grep -q one one.txt && grep -q two two.txt{}",
        sleep(matches!(place, Place::Check))
    ));
    if matches!(place, Place::SetUp) {
        let environment = json!({ "name": "python", "reasoning": "", "setup_commands": [format!("sleep {nap}")] });
        check = check.with("selected_environment", environment);
    }
    let commit = "echo one > one.txt && git add one.txt && git commit -q -m 'Say one'";
    let write = format!("echo two > two.txt{}", sleep(matches!(place, Place::Command)));
    let steps: [Answer; 4] = [
        Answer::plans(check),
        Answer::calls("workspace/execute_command", json!({ "command": commit })),
        Answer::calls("workspace/execute_command", json!({ "command": write })),
        Answer::done("Counted."),
    ];
    let mut script = world.model.script();
    for (number, step) in steps.into_iter().enumerate() {
        // A command that nobody saw the end of is asked for again, in another conversation.
        if matches!(place, Place::Command) && number == 2 {
            script = script.answers(step.clone());
        }
        script = script.answers(step);
        if matches!(place, Place::Model(held) if held == number) {
            script = script.holds();
        }
    }
}

async fn reach(world: &World, place: Place, nap: &str) {
    match place {
        Place::Model(_) => world.model.until_held(1).await,
        Place::Command | Place::SetUp | Place::Check => processes::until_some(nap).await,
        Place::Asked(..) | Place::Done(..) => world.github.until_one_hangs().await,
    }
}

fn expect_one_of_everything(world: &World, issue: &Item, story: &dyn Fn() -> String) {
    assert_eq!(issue.labels(), ["coding agent done"], "{}", story());
    let repository = world.github.default_repository();
    assert_eq!(
        repository.branches(),
        ["coding-agent/1-count-to-two", "main"],
        "{}",
        story()
    );
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", story());
    assert!(!pulls[0].is_draft(), "{}", story());
    assert_eq!(
        ["one.txt", "two.txt"].map(|file| pulls[0].file(file).unwrap_or_default()),
        ["one\n", "two\n"],
        "{}",
        story()
    );
    let subjects: Vec<String> = pulls[0]
        .commits()
        .iter()
        .map(|commit| commit.message.lines().next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(subjects, ["Say one", "Count to two"], "{}", story());
    let headlines: Vec<String> = issue
        .comments_of(world.github.bot())
        .iter()
        .map(|text| text.lines().next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(headlines.len(), 2, "{}", story());
    assert!(headlines[0].contains("Done: how it went"), "{headlines:?}");
    assert!(headlines[1].starts_with("### ✅ Done: http"), "{headlines:?}");
    if !world.state_dir().join("coding-agent.db").exists() {
        // A server has let go of the locks of the dead itself.
        return;
    }
    let locks: Vec<_> = std::fs::read_dir(world.state_dir().join("workers"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != "opening")
        .collect();
    assert!(locks.is_empty(), "{locks:?}\n{}", story());
}
