//! Every result waits where the configuration says so, and some pass by themselves while an operator
//! has switched that on.

use serde_json::{Value, json};

use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::facts::{count, facts};
use crate::world::normalized::last_on_github;
use crate::world::scripts::COMMAND;

const WAITS: [&str; 1] = ["coding agent waiting"];
const DONE: [&str; 1] = ["coding agent done"];

/// A world in which every result waits, with this section about what may pass by itself.
async fn world(automatic: Value) -> World {
    let mut world = World::start().await;
    world.configure(|config| config["approval"] = json!({ "result": "always", "auto_approve": automatic }));
    world.model.allows_restarts();
    world
}

/// Has the model work with these commands on a new issue, and returns that when the program ended.
async fn works(world: &World, commands: &str) -> Item {
    let plan = Plan::of(&["do it"]).in_environment("python").verified_by("true");
    let script = world.model.plans(plan);
    script.calls(COMMAND, json!({ "command": commands })).done("Done.");
    let issue = world.github.open_issue("Do it").label("coding agent");
    world.runs_without_fault().await;
    issue
}

/// Switches automatic approval, and returns what the program said.
async fn switches(world: &World, arguments: &[&str]) -> String {
    let ended = world.command(&[&["auto-approve"], arguments].concat()).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

/// Returns the lines with which the last question of an item says why it did not pass by itself.
fn obstacles(world: &World, issue: &Item) -> Vec<String> {
    let question = last_on_github(world, issue);
    let listed = question.split_once("Automatic approval does not let it pass:");
    let (_, listed) = listed.unwrap_or_else(|| panic!("{question}"));
    let lines = listed.trim_start().lines().take_while(|line| line.starts_with("- "));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn every_result_waits_where_the_configuration_says_so() {
    let world = world(json!({})).await;
    let issue = works(&world, "echo Hi > hi.txt").await;
    assert_eq!(issue.labels(), WAITS, "{}", world.story());
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    let question = last_on_github(&world, &issue);
    assert!(
        question.contains("- every result waits, as the configuration says (`approval.result`)"),
        "{question}"
    );
    assert!(!question.contains("Automatic approval"), "{question}");
    assert_eq!(count(&world, "policy_refused"), 0);
    let status = world.command(&["status"]).await;
    assert!(
        status.stdout.contains("waits for approval of its result"),
        "{}",
        status.stdout
    );

    issue.comment("alice", "/agent approve");
    world.runs_without_fault().await;
    assert_eq!(issue.labels(), DONE, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn where_every_result_waits_unfinished_work_is_on_no_branch_and_the_short_form_means_both() {
    let mut world = World::start().await;
    world.configure(|config| config["approval"] = json!({ "required_by_default": true, "plan": false }));
    let plan = Plan::of(&["do it"]).in_environment("python").verified_by("true");
    let script = world.model.plans(plan);
    script
        .calls(COMMAND, json!({ "command": "echo Hi > hi.txt" }))
        .calls("agent/ask_people", json!({ "question": "Is this right?" }));
    let issue = world.github.open_issue("Do it").label("coding agent");
    world.runs_without_fault().await;
    assert_eq!(issue.labels(), WAITS, "{}", world.story());
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    assert!(
        issue
            .timeline()
            .contains("is not shown on a branch: every result waits"),
        "{}",
        issue.timeline()
    );
    world.finish().await;
}

#[tokio::test]
async fn what_the_scope_allows_passes_while_it_is_on_and_the_rest_waits() {
    let world = world(json!({ "enabled": true })).await;
    // Allowed by the configuration is not switched on, and no start of the program does it.
    let issue = works(&world, "mkdir docs && echo A > docs/a.md").await;
    assert_eq!(issue.labels(), WAITS, "{}", world.story());
    assert_eq!(switches(&world, &["status"]).await, "automatic approval is off\n");

    let on = switches(&world, &["on", "--ttl", "30m"]).await;
    assert!(on.starts_with("automatic approval is on until 20"), "{on}");
    let passed = works(&world, "mkdir docs && echo B > docs/b.md").await;
    assert_eq!(passed.labels(), DONE, "{}", world.story());
    let approved = facts(&world, "approval_auto_approved");
    assert_eq!(approved.len(), 1);
    assert_eq!(approved[0]["approver"], "the operator");
    assert!(
        passed
            .timeline()
            .contains("Result passed by automatic approval, which the operator had switched on."),
        "{}",
        passed.timeline()
    );
    // A question that is open stays open: it was put to people.
    assert_eq!(issue.labels(), WAITS);

    for (commands, expected) in [
        (
            "echo x > x.txt && mkdir docs && echo C > docs/c.md",
            vec!["- a path is outside of `allowed_paths_prefix`: `x.txt`"],
        ),
        (
            // On the way there, too.
            "mkdir docs && echo D > docs/d.md && echo x > x.txt && git add -A && git commit -qm One && git rm -q x.txt && \
             git commit -qm Two",
            vec!["- a path is outside of `allowed_paths_prefix`: `x.txt`"],
        ),
        (
            "mkdir docs && git mv README.md docs/readme.md",
            vec![
                "- a file is deleted (`delete`)",
                "- a file is renamed (`rename`)",
                "- a path is outside of `allowed_paths_prefix`: `README.md`",
            ],
        ),
        (
            "mkdir docs && ln -s ../README.md docs/link",
            vec!["- there is a link or another repository: `docs/link`"],
        ),
        (
            "mkdir docs && echo E > docs/AGENTS.md",
            vec!["- a person must look at what is named above"],
        ),
    ] {
        let issue = works(&world, commands).await;
        assert_eq!(issue.labels(), WAITS, "{commands}\n{}", world.story());
        assert_eq!(obstacles(&world, &issue), expected, "{commands}");
    }

    assert_eq!(switches(&world, &["off"]).await, "automatic approval is off now\n");
    assert_eq!(switches(&world, &["off"]).await, "automatic approval was not on\n");
    let issue = works(&world, "mkdir docs && echo F > docs/f.md").await;
    assert_eq!(issue.labels(), WAITS, "{}", world.story());
    assert_eq!(count(&world, "approval_auto_approved"), 1);
    let ended = facts(&world, "automatic_approval_ended");
    assert_eq!((ended.len(), &ended[0]["by"]), (1, &json!("the operator")));
    world.finish().await;
}

#[tokio::test]
async fn what_a_public_repository_would_show_to_all_waits() {
    let world = world(json!({ "enabled": true })).await;
    world.github.default_repository().public();
    switches(&world, &["on"]).await;
    let issue = works(&world, "mkdir docs && echo A > docs/a.md").await;
    assert_eq!(issue.labels(), WAITS, "{}", world.story());
    assert_eq!(
        obstacles(&world, &issue),
        ["- the repository is public (`push_public`)"]
    );
    world.finish().await;
}

#[tokio::test]
async fn a_comment_switches_it_off_at_once_and_only_one_of_somebody_who_may_write() {
    for (author, labels, status) in [
        ("mallory", DONE, "automatic approval is on until"),
        ("alice", WAITS, "automatic approval is off\n"),
    ] {
        let world = world(json!({ "enabled": true })).await.attentive();
        switches(&world, &["on"]).await;
        let plan = Plan::of(&["do it"]).in_environment("python").verified_by("true");
        let script = world.model.plans(plan);
        script
            .calls(COMMAND, json!({ "command": "mkdir docs && echo A > docs/a.md" }))
            .done("Done.")
            .holds();
        let issue = world.github.open_issue("Do it").label("coding agent");
        let program = world.spawn(&["run"]);
        world.model.until_held(1).await;
        // Said while the model thinks about its last words: nothing is asked of it after that.
        issue.comment(author, "/agent auto-approve off");
        issue.until_comments_are_read().await;
        world.model.release();
        program.ended().await;
        assert_eq!(issue.labels(), labels, "{author}\n{}", world.story());
        let now = switches(&world, &["status"]).await;
        assert!(now.starts_with(status), "{now}");
        if author == "alice" {
            assert_eq!(facts(&world, "automatic_approval_ended")[0]["by"], "@alice");
        }
        world.finish().await;
    }
}

#[tokio::test]
async fn it_is_not_switched_on_against_the_configuration() {
    let mut world = world(json!({})).await;
    let ended = world.command(&["auto-approve", "on"]).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("set approval.auto_approve.enabled to true"),
        "{ended:?}"
    );
    world.configure(|config| config["approval"]["auto_approve"] = json!({ "enabled": true, "ttl_minutes": 10 }));
    for (time, words) in [("11m", "write at most --ttl 10m"), ("soon", "is no time")] {
        let ended = world.command(&["auto-approve", "on", "--ttl", time]).await;
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    assert_eq!(switches(&world, &["status"]).await, "automatic approval is off\n");
    world.finish().await;
}

#[tokio::test]
async fn the_default_configuration_holds_back_nothing_that_a_person_must_allow_elsewhere() {
    let world = World::start().await;
    world.github.default_repository().public();
    let files: Vec<(String, String)> = (0..25)
        .map(|number| (format!("src/{number}.txt"), "line\n".repeat(50)))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    world.github.default_repository().commit("main", "Begin", &files);
    let issue = works(
        &world,
        "git rm -q src/0.txt && git mv src/1.txt renamed.txt && for n in $(seq 2 24); do echo new > src/$n.txt; done",
    )
    .await;
    assert_eq!(issue.labels(), DONE, "{}", world.story());
    for fact in ["approval_requested", "approval_auto_approved", "policy_refused"] {
        assert_eq!(count(&world, fact), 0, "{fact}");
    }
    world.finish().await;
}
