//! Repositories so large, and forges so busy, that fetching takes minutes.

use serde_json::json;

use crate::fake::git_http::Late;
use crate::world::World;
use crate::world::scripts::{executes, greets, plan};

/// Seconds after which a push counts as stalled, in the place of minutes: long before its hook
/// ends.
const STALL: u64 = 8;
const LATE: Late = Late {
    seconds: 18,
    keepalive: 1,
};

/// Seconds after which a fetch counts as stalled: it would be given up before the pack begins, if
/// the server's signs of life did not count. They are packets of five bytes every five seconds, as
/// git's own server sends them.
const STALLED_FETCH: u64 = 12;
const LATE_PACK: Late = Late {
    seconds: 26,
    keepalive: 5,
};

/// Enough seconds for all that git does in these stories but wait for a hook, on a busy machine.
const HASTE: u32 = 10;

#[tokio::test]
async fn a_pack_that_begins_late_is_waited_for() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "stall_seconds": STALLED_FETCH }));
    world.github.packs_late(LATE_PACK);
    greets(world.model.plans(plan()));
    let issue = world.github.open_issue("Greet").label("coding agent");

    let mut run = world.spawn(&["run"]);
    // Meanwhile people see what the run does.
    let is_told = issue.until(|issue| {
        let comments = issue.comments();
        comments
            .iter()
            .any(|comment| comment.body.contains("**Now:** the repository is being fetched: "))
    });
    run.until(&world, is_told).await;
    let ended = run.ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let journal = world.journal();
    let told = journal.iter().filter(|entry| entry["fact"] == "repository_arriving");
    assert!(told.count() >= 1, "{}", world.story());
    // The first fetch, and none that was given up and begun anew.
    assert!(!ended.stderr.contains("tried again"), "{}", ended.stderr);
    world.finish().await;
}

#[tokio::test]
async fn a_push_that_a_hook_looks_at_for_long_is_waited_for() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "stall_seconds": STALL }));
    world.github.pushes_late(LATE);
    greets(world.model.plans(plan()));
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1);
    assert_eq!(pulls[0].file("README.md").as_deref(), Some("Hello\n"));
    assert!(!ended.stderr.contains("tried again"), "{}", ended.stderr);
    world.finish().await;
}

#[tokio::test]
async fn a_push_that_takes_longer_than_its_time_names_the_setting_and_is_made_later() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "timeout_seconds": HASTE }));
    world.github.pushes_late(Late {
        seconds: 3 * HASTE,
        keepalive: 1,
    });
    greets(world.model.plans(plan()));
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    let parked = "github:acme/widgets#1: put back until ";
    assert!(ended.stdout.starts_with(parked), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent paused"]);
    let told = issue.comments_of(world.github.bot()).join("\n");
    let late = format!(
        "git did not finish within {HASTE} seconds (`git.timeout_seconds` sets how long a git command may take)"
    );
    assert!(told.contains(&late), "{told}");

    // The operator does what it says; nothing is worked on or paid for again.
    world.configure(|config| config["git"] = json!({ "timeout_seconds": 900 }));
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.github.pulls().len(), world.model.requests().len()), (1, 3));
    world.finish().await;
}

#[tokio::test]
async fn a_history_may_be_cut() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "depth": 1 }));
    let repository = world.github.default_repository();
    for number in 0..5 {
        repository.commit("main", "Go on", &[("README.md", &format!("{number}\n"))]);
    }
    let planned = plan().verified_by("grep -q Hello README.md");
    let script = executes(
        world.model.plans(planned),
        "git log --oneline | wc -l && cat README.md && git status --porcelain && git blame -s README.md",
    );
    greets(script);
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    assert!(requests[0].last_user_message().contains("Only the newest commits"));
    let shown = requests[2].last_user_message();
    assert!(shown.contains(r"1\n4\n"), "{shown}");
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"));
    assert_eq!(pull.commits().len(), 1);

    // What is pushed since is fetched without the rest.
    repository.commit("main", "Go on", &[("more", "more\n")]);
    greets(executes(
        world.model.plans(plan()),
        "git log --oneline | wc -l && cat more",
    ));
    world.github.open_issue("Greet again").label("coding agent");
    let ended = world.run().await;
    assert!(ended.stdout.contains("#3: done"), "{ended:?}\n{}", world.story());
    world.finish().await;
}
