//! Tokens: where they are used, and where they never are.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use crate::fake::fault::{Disturbance, Fault, Quirk};
use crate::fake::model::Plan;
use crate::world::World;

fn writes(world: &World) {
    world
        .model
        .plans(Plan::of(&["greet"]).in_environment("python"))
        .calls(
            "workspace/write_file",
            json!({"path": "README.md", "content": "Hello\n", "mode": "overwrite"}),
        )
        .done("Greeted.");
}

/// Returns the command lines of all processes below `parent`.
fn descendants(parent: u32) -> Vec<String> {
    let mut found = Vec::new();
    let children = std::fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten();
    for thread in children {
        let list = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in list.split_whitespace().filter_map(|child| child.parse().ok()) {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
            found.extend(descendants(child));
        }
    }
    found
}

#[tokio::test]
async fn no_command_line_and_no_address_holds_a_token() {
    let world = World::start().await;
    writes(&world);
    world.github.open_issue("Greet").label("coding agent");
    // Long enough for each git that talks to the forge to be seen.
    world
        .github
        .slow("GET /acme/widgets.git/info/refs", Duration::from_secs(1));

    let run = world.spawn(&["run"]);
    let pid = run.pid();
    let mut seen = BTreeSet::new();
    let ended = {
        let mut ended = std::pin::pin!(run.ended());
        loop {
            tokio::select! {
                ended = &mut ended => break ended,
                () = tokio::time::sleep(Duration::from_millis(10)) => seen.extend(descendants(pid)),
            }
        }
    };

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    for verb in [" fetch ", " push ", "git-remote-http"] {
        assert!(seen.iter().any(|line| line.contains(verb)), "no {verb} in {seen:#?}");
    }
    let shown: Vec<_> = seen.iter().filter(|line| line.contains(world.github.token())).collect();
    assert!(shown.is_empty(), "{shown:?}");
    // And `finish` looks for it in everything that was written.
    world.finish().await;
}

/// Has the program work as a GitHub App.
pub fn becomes_an_app(world: &mut World) {
    let app = world.github.install_app(7);
    let key = world.folder().join("app.pem");
    let lines: Vec<&str> = include_str!("../data/app-key.base64")
        .trim()
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let kind = "RSA PRIVATE KEY";
    let pem = format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"));
    std::fs::write(&key, pem).unwrap();
    world.configure(|config| {
        let github = config["github"].as_object_mut().unwrap();
        github.remove("token");
        github.insert("app".to_owned(), json!({"id": app.id, "private_key_file": key}));
    });
    world.github.revokes_tokens();
}

#[tokio::test]
async fn an_app_works_with_the_token_of_its_installation_only() {
    let mut world = World::start().await;
    writes(&world);
    becomes_an_app(&mut world);
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let pull = world.github.pull_request_for(&issue).await;
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"));
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(issue.comments_of("coding-agent[bot]").len(), 2);
    assert_eq!(world.github.count("POST /app/installations/*/access_tokens"), 1);
    let left = std::process::Command::new("grep")
        .args(["-rlE", "ghs_|PRIVATE KEY"])
        .args([world.state_dir(), world.folder().join("logs")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    world.finish().await;
}

#[tokio::test]
async fn each_start_of_an_app_asks_for_a_token_that_no_file_has() {
    let mut world = World::start().await;
    becomes_an_app(&mut world);
    world.github.behaves(Quirk::TagsDependOnTokens);
    for _ in 0..2 {
        let before = world.github.all_requests().len();
        let ended = world.run().await;
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        let requests = world.github.all_requests();
        let sent: Vec<String> = requests[before..]
            .iter()
            .map(|request| {
                let path = request.path.split('?').next().unwrap_or_default();
                format!("{} {path} {}", request.method, request.status.unwrap_or_default())
            })
            .collect();
        assert_eq!(
            sent,
            [
                "GET /repos/acme/widgets/installation 200",
                "POST /app/installations/8/access_tokens 201",
                "GET /repos/acme/widgets/issues 200",
            ]
        );
    }
    world.finish().await;
}

#[tokio::test]
async fn an_app_makes_a_token_for_each_repository_and_one_that_only_reads_for_the_search() {
    let mut world = World::start().await;
    world.github.repository("acme/gadgets");
    becomes_an_app(&mut world);
    world.github.permit("administration", Some("write"));
    world.configure(|config| config["github"]["repositories"] = json!(["acme/*"]));
    writes(&world);
    let issue = world.github.open_issue("Greet").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    writes(&world);
    let other = world
        .github
        .repository("acme/gadgets")
        .open_issue("Greet")
        .label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(other.labels(), ["coding agent done"]);

    let made: std::collections::BTreeSet<String> = world.github.made_tokens().into_iter().collect();
    insta::assert_snapshot!(made.into_iter().collect::<Vec<_>>().join("\n"), @"
    [] issues read, metadata read, pull_requests read
    [acme/gadgets] actions read, checks read, contents write, issues write, metadata read, pull_requests write, statuses read
    [acme/widgets] actions read, checks read, contents write, issues write, metadata read, pull_requests write, statuses read
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_new_token_that_is_not_known_everywhere_yet_is_tried_again() {
    let mut world = World::start().await;
    writes(&world);
    becomes_an_app(&mut world);
    world.github.learns_of_tokens_late(2);
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.count("POST /app/installations/*/access_tokens"), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_new_token_that_is_refused_as_if_it_had_no_rights_is_tried_again() {
    const MADE: &str = "POST /app/installations/*/access_tokens";
    for (status, says) in [
        (403, r#"{"message":"Resource not accessible by integration"}"#),
        (404, r#"{"message":"Not Found"}"#),
    ] {
        let mut world = World::start().await;
        writes(&world);
        becomes_an_app(&mut world);
        let issue = world.github.open_issue("Greet").label("coding agent");
        let refused = Fault::Refuses(status, says);
        let first = Disturbance::of("GET /repos/acme/widgets/issues", refused).times(3);
        world.github.disturb(first.once_answered(MADE));

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{status}: {ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), ["coding agent done"], "{status}");
        assert_eq!(world.github.count(MADE), 1, "{status}");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_token_that_was_accepted_once_is_refused_for_a_reason() {
    let mut world = World::start().await;
    becomes_an_app(&mut world);
    let issue = world.github.open_issue("Greet").label("coding agent");
    let refused = Fault::Refuses(403, r#"{"message":"Resource not accessible by integration"}"#);
    let route = "GET /repos/acme/widgets/issues/1/events";
    world.github.disturb(Disturbance::of(route, refused).always());

    let ended = world.run().await;

    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert_eq!(world.github.count(route), 1, "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent"], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn what_people_paste_and_the_model_says_by_itself_is_stored_without_its_secrets() {
    let world = World::start().await;
    // Made up, and put together here so that no scanner takes this file for a leak.
    let pasted = format!("ghp_{}", "Ab3dEf6hIj9lMn2pQr5t".repeat(2)[..36].to_owned());
    let said = pasted.replace("Ab3d", "Xy7z");
    let plan = Plan::of(&["greet"]).in_environment("python");
    world
        .model
        .plans(
            plan.with("comment", json!(said))
                .verified_by(&format!("echo {said}; false")),
        )
        .calls(
            "workspace/execute_command",
            json!({ "command": format!("echo Hello > README.md # {said}") }),
        )
        .done(&format!("Greeted with {said}."))
        .done("It cannot pass.");
    let issue = world
        .github
        .open_issue(&format!("Greet with {pasted}"))
        .body(&format!("It says {pasted}."));
    issue.comment("alice", &format!("And {pasted}."));
    issue.label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pull = world.github.pull_request_for(&issue).await;
    assert_eq!(pull.title(), "Greet with [redacted:github-token]");
    assert_eq!(
        pull.file("README.md").as_deref(),
        Some("Hello\n"),
        "the command ran as it was said"
    );
    let left = std::process::Command::new("grep")
        .args(["-rlaE", &format!("{pasted}|{said}")])
        .args([world.state_dir(), world.folder().join("logs")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    world.finish().await;
}
