//! One installation for several forges of one platform.

use serde_json::json;

use crate::doctor::said;
use crate::fake::github::GitHub;
use crate::fake::model::{Answer, Model, Request, Said};
use crate::world::World;

/// Writes the last word of the issue's title into the README.
fn write_the_last_word(request: &Request) -> Answer {
    if request.messages.iter().any(|said| matches!(said, Said::Assistant(..))) {
        return Answer::done("Written.");
    }
    let task = request.first_user_message();
    let word = ["first", "second", "third"]
        .into_iter()
        .find(|word| task.contains(&format!("Greet the {word}")));
    let args = json!({"path": "README.md", "content": word.unwrap_or("nobody"), "mode": "overwrite"});
    Answer::calls("workspace/write_file", args)
}

async fn world() -> World {
    let mut world = World::with(Model::answering(write_the_last_word).await).await;
    world.configure(|config| config["planning"] = json!({"enabled": false}));
    world
}

/// Adds a GitHub Enterprise beside the GitHub that is configured as a single section, and a GitLab.
fn add(world: &mut World, enterprise: &GitHub) {
    let address = enterprise.api_url();
    let token = world.folder().join("ghes-token");
    std::fs::write(&token, format!("{}\n", enterprise.token())).unwrap();
    world.configure(|config| {
        let first = config["github"].take();
        let second = json!({
            "name": "ghes", "api_url": address, "token_file": "ghes-token", "repositories": ["acme/widgets"],
        });
        config["github"] = json!([first, second]);
        config["task_sources"] = json!(["github", "gitlab"]);
    });
}

#[tokio::test]
async fn each_of_two_githubs_and_a_gitlab_has_its_task_done() {
    let mut world = world().await;
    let enterprise = GitHub::start().await;
    let first = world.github.open_issue("Greet the first").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.outcomes(), ["github:acme/widgets#1: done"], "{}", world.story());

    // The state that a single section left is that of the first entry.
    add(&mut world, &enterprise);
    let second = enterprise.open_issue("Greet the second").label("coding agent");
    let third = world.gitlab.open_issue("Greet the third").label("coding agent");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(
        ended.outcomes(),
        ["ghes:acme/widgets#1: done", "gitlab:acme/widgets#1: done"],
        "{}{}",
        enterprise.timeline(),
        world.story()
    );
    for labels in [first.labels(), second.labels(), third.labels()] {
        assert_eq!(labels, ["coding agent done"]);
    }
    let readme = "README.md";
    assert_eq!(world.github.pulls().len(), 1);
    assert_eq!(world.github.pulls()[0].file(readme).as_deref(), Some("first"));
    assert_eq!(enterprise.pulls().len(), 1);
    assert_eq!(enterprise.pulls()[0].file(readme).as_deref(), Some("second"));
    assert_eq!(world.gitlab.merge_requests()[0].file(readme).as_deref(), Some("third"));
    // The change that the first one's task became is still followed.
    let requests = world.github.requests();
    assert!(
        requests
            .iter()
            .any(|request| request.to_string().contains("/pulls?state=open"))
    );

    let status = world.command(&["status", "--json"]).await;
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    let runs = status["runs"].as_array().unwrap();
    let mut told: Vec<String> = runs
        .iter()
        .map(|run| format!("{} {}", run["task"].as_str().unwrap(), run["state"].as_str().unwrap()))
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            "ghes:acme/widgets#1 done",
            "github:acme/widgets#1 done",
            "gitlab:acme/widgets#1 done"
        ]
    );
    let of_one = world.command(&["logs", "ghes:acme/widgets#1"]).await;
    assert_eq!(of_one.code, Some(0), "{of_one:?}");
    assert_eq!(enterprise.unknown_requests(), Vec::<String>::new());
    world.finish().await;
}

#[tokio::test]
async fn doctor_examines_each_host_under_its_name() {
    let mut world = World::with(Model::repeating().await).await;
    let enterprise = GitHub::start().await;
    add(&mut world, &enterprise);
    world.configure(|config| config["github"][1]["repositories"] = json!(["acme/widgets", "acme/none"]));

    let ended = world.command(&["doctor"]).await;

    let said = said(&world, &ended);
    let of_forges: Vec<&str> = said.lines().filter(|line| line.contains("Git")).collect();
    insta::assert_snapshot!(of_forges.join("\n"), @"
    ok    GitHub token                         works, as coding-agent-bot
    ok    GitHub repository acme/widgets       can be read and pushed to
    look  GitHub labels in acme/widgets        'coding agent' is for you to create; the others will be made when they are needed
    ok    GitHub git of acme/widgets           can be fetched, and takes claims
    ok    GitHub ghes token                    works, as coding-agent-bot
    ok    GitHub ghes repository acme/widgets  can be read and pushed to
    look  GitHub ghes labels in acme/widgets   'coding agent' is for you to create; the others will be made when they are needed
    BAD   GitHub ghes repository acme/none     the answer was 404 Not Found: Not Found
    ok    GitHub ghes git of acme/widgets      can be fetched, and takes claims
    ok    GitLab token                         works, as coding-agent-bot
    ok    GitLab project acme/widgets          can be read and pushed to
    look  GitLab labels in acme/widgets        'coding agent' is for you to create; the others will be made when they are needed
    ok    GitLab git of acme/widgets           can be fetched, and takes claims
    ");
    world.finish().await;
}
