//! From the label to the pull request in pods, with everything that a run may have beside it.

use serde_json::{Value, json};

use super::{is_done, runs};
use crate::fake::site::Site;
use crate::world::clusters::kubectl;
use crate::world::facts::facts;
use crate::world::processes;
use crate::world::scripts::output;
use crate::world::{IMAGE, World};

/// Returns the pod that there is, as the cluster has it.
pub(super) async fn pod_of(world: &World) -> Value {
    let pods = world.containers().await;
    let [pod] = pods.as_slice() else {
        panic!("not one pod: {pods:?}\n{}", world.story());
    };
    serde_json::from_str(&kubectl(&["get", "pod", pod, "--output", "json"]).await).unwrap()
}

#[tokio::test]
async fn an_issue_becomes_a_pull_request() {
    let world = World::start().await;
    let (script, issue) = runs(
        &world,
        &["git status --porcelain && echo Hello > README.md && id -u && pwd"],
    );
    script.done("The README greets its reader.");

    is_done(&world, &issue).await;

    assert_eq!(output(&world, 0), "1000\n/workspace/project");
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].file("README.md").as_deref(), Some("Hello\n"));
    let started = facts(&world, "environment_started");
    assert_eq!(started.len(), 1, "{started:?}");
    assert!(started[0]["image"].to_string().contains("python"), "{started:?}");
    world.finish().await;
}

#[tokio::test]
async fn services_are_containers_of_the_same_pod() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["services"] = json!({
            "web": {
                "image": IMAGE,
                "env": { "GREETING": "hello" },
                "entrypoint": ["sh", "-c"],
                "command": ["mkdir /tmp/web; echo $GREETING > /tmp/web/index.html; exec python3 -m http.server -d /tmp/web 8080"],
                "ready": "curl -sf http://127.0.0.1:8080/",
                "memory_limit": "64m",
            },
        });
    });
    let (script, issue) = runs(&world, &["curl -sS http://web:8080/; curl -sS http://localhost:8080/"]);
    script.done("Asked.").holds();

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let pod = pod_of(&world).await;
    world.model.release();
    let ended = program.ended().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());
    assert_eq!(output(&world, 0), "hello\nhello");
    let names: Vec<&Value> = pod["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["work", "service-web"]);
    world.finish().await;
}

#[tokio::test]
async fn a_service_that_never_answers_is_told_with_its_last_words() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["services"] = json!({
            "web": {
                "image": IMAGE,
                "entrypoint": ["sh", "-c"],
                "command": ["echo this is why; exec sleep 600"],
                "ready": "false",
                "ready_seconds": 3,
            },
        });
    });
    let (_script, issue) = runs(&world, &[]);

    let ended = world.run().await;

    assert_eq!(issue.labels(), ["coding agent failed"], "{ended:?}\n{}", world.story());
    let comment = issue.comments().pop().unwrap().body;
    assert!(comment.contains("this is why"), "{comment}");
    world.finish().await;
}

#[tokio::test]
async fn what_a_run_may_reach_goes_through_the_program() {
    let site = Site::start();
    let mut world = World::start().await;
    world.configure(|config| config["command_executor"]["network"] = json!({ "allow_private": [site.address()] }));
    let asks = format!(
        "curl -sS http://{}/one; curl -sS -m 5 -o /dev/null -w '%{{http_code}}' http://elsewhere.example/ || echo no",
        site.address()
    );
    let (script, issue) = runs(&world, &[&asks]);
    script.done("Asked.");

    is_done(&world, &issue).await;

    let said = output(&world, 0);
    assert!(said.starts_with("hello from /one\n403"), "{said}");
    assert_eq!(site.asked().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_pod_that_waits_is_taken_and_renewed_and_goes_with_the_service() {
    let mut world = World::start().await;
    world.configure(|config| config["command_executor"]["warm"] = json!({ "python": 1 }));
    world.configure(|config| config["consumers"] = json!(1));
    let service = world.spawn(&["serve"]);
    world
        .until("a pod to wait", || facts(&world, "environment_warmed").len() == 1)
        .await;
    let waiting = world.containers().await;
    let (script, issue) = runs(&world, &["hostname"]);
    script.done("Named.").holds();
    world.model.until_held(1).await;
    let held = world.containers().await;
    world.model.release();
    world
        .until("the issue to be done", || issue.labels() == ["coding agent done"])
        .await;
    world
        .until("another pod to wait", || facts(&world, "environment_warmed").len() == 2)
        .await;
    service.signal("TERM");
    let ended = service.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert!(held.contains(&waiting[0]), "{waiting:?} {held:?}");
    let started = facts(&world, "environment_started");
    assert!(started.iter().all(|line| line["has_waited"] == true), "{started:?}");
    world.finish().await;
}

#[tokio::test]
async fn after_a_kill_the_next_process_goes_on_in_the_same_pod() {
    let world = World::start().await;
    world.model.allows_restarts();
    let (script, issue) = runs(&world, &["echo kept > kept.txt"]);
    let script = script
        .calls("workspace/execute_command", json!({ "command": "echo never" }))
        .holds();
    script
        .calls("workspace/execute_command", json!({ "command": "cat kept.txt" }))
        .done("Kept.");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let first = world.containers().await;
    program.kill().await;
    world.model.release();

    let program = world.spawn(&["run"]);
    let ended = program.ended().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!(facts(&world, "environment_started").len(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn the_pods_of_a_process_whose_state_folder_is_gone_are_found_by_the_installations_name() {
    let mut world = World::start().await;
    world.model.allows_restarts();
    let name = format!("team-{}", &uuid::Uuid::now_v7().simple().to_string()[20..]);
    world.configure(|config| config["environment"]["kubernetes"]["installation"] = json!(name));
    let (script, _issue) = runs(&world, &[]);
    script.done("Looked.").holds();
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.kill().await;
    world.model.release();
    let selector = format!("coding-agent.instance={name}");
    let pods = ["get", "pods", "--selector", &selector, "--output", "name"];
    let of_runs = format!("{selector},coding-agent.run");
    let left = kubectl(&["get", "pods", "--selector", &of_runs, "--output", "name"]).await;
    assert_eq!(left.lines().count(), 1, "{left}");
    std::fs::remove_dir_all(world.state_dir()).unwrap();

    let (script, issue) = runs(&world, &["echo in"]);
    script.done("Was in.");
    is_done(&world, &issue).await;

    // Their node removes them a moment after they were deleted.
    while !kubectl(&pods).await.is_empty() {}
    world.finish().await;
}

#[tokio::test]
async fn a_pod_that_nobody_needs_is_swept_and_all_go_with_the_installation() {
    let world = World::start().await;
    world.run().await;
    let (script, issue) = runs(&world, &[]);
    script.done("Looked.").done("Looked.");
    let instance = coding_agent::service::instance(&world.state_dir());
    let labels = format!(
        "coding-agent.instance={instance},coding-agent.run={}",
        uuid::Uuid::now_v7()
    );
    let image = "--image=coding-agent-test-busybox:local";
    let sleeps = [
        "--image-pull-policy=Never",
        "--command",
        "--",
        "/bin/busybox",
        "sleep",
        "600",
    ];
    kubectl(&[&["run", "orphan", image, "--labels", &labels][..], &sleeps].concat()).await;
    assert_eq!(world.containers().await, ["orphan"]);

    is_done(&world, &issue).await;

    assert_eq!(world.containers().await, [""; 0], "{}", world.story());
    let owner = format!("coding-agent-{instance}");
    let listing = ["get", "configmap,networkpolicy", "--output", "name"];
    let before = kubectl(&listing).await;
    assert_eq!(
        before.lines().filter(|line| line.ends_with(&owner)).count(),
        2,
        "{before}"
    );
    kubectl(&["delete", "configmap", &owner]).await;
    let policy = format!("networkpolicy/{owner}");
    while kubectl(&listing).await.contains(&policy) {}
    world.finish().await;
}

#[tokio::test]
async fn a_container_that_dies_is_replaced_with_the_work_as_it_was_kept() {
    let world = World::start().await;
    let nap = processes::mark();
    let mut script = runs(&world, &["echo one > one.txt && git add -A && git commit -qm One"]).0;
    for number in 2..=10 {
        script = script.calls(
            "workspace/execute_command",
            json!({ "command": format!("echo {number} > {number}.txt") }),
        );
    }
    script
        .calls(
            "workspace/execute_command",
            json!({ "command": format!("sleep {nap}") }),
        )
        .calls("workspace/execute_command", json!({ "command": "ls *.txt | wc -l" }))
        .done("Counted.");
    let program = world.spawn(&["run"]);
    processes::until_some(&nap).await;
    world.until_kept().await;
    world.kill_containers().await;
    let ended = program.ended().await;

    assert!(ended.stdout.ends_with("done\n"), "{ended:?}\n{}", world.story());
    assert_eq!(facts(&world, "environment_started").len(), 2);
    let told = world.model.requests()[12].last_user_message();
    assert!(told.contains("A new container has taken the place"), "{told}");
    world.finish().await;
}
