//! A program reviews in the place of a model.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{good_plan, judged};
use crate::world::World;
use crate::world::facts::{count, facts};
use crate::world::normalized::told;
use crate::world::scripts::greets;

const KEY: &str = "sk-of-the-program";

/// Writes an executable script into the world's folder and has it review plans.
fn reviews_with(world: &mut World, script: &str, on_unready: &str, seconds: u32) -> String {
    let path = world.keeps("bin/critic", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let critic = json!({
        "provider": "command", "command": [path, "-"], "env": { "CRITIC_KEY": KEY }, "timeout_seconds": seconds,
    });
    world.configure(|config| {
        config["llm"]["models"] = json!({ "critic": critic });
        config["llm"]["roles"] = json!({ "reviewer": "critic" });
        config["review"] = json!({ "plan": { "enabled": true, "on_unready": on_unready } });
    });
    world.model.forbids(KEY);
    path
}

#[tokio::test]
async fn a_program_gets_the_plan_on_its_stdin_and_its_variables_alone() {
    let mut world = World::start().await;
    let seen = world.folder().join("seen");
    let seen = seen.to_str().unwrap();
    let answer = judged(true, 8.5, "Good.");
    reviews_with(
        &mut world,
        &format!("cat > {seen}; env >> {seen}; ls -A | wc -l >> {seen}; echo '{answer}'"),
        "fail",
        120,
    );
    greets(world.model.plans(good_plan()));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(
        seen.contains("Greet the reader") && seen.contains("\"verification\""),
        "{seen}"
    );
    assert!(
        seen.contains(&format!("CRITIC_KEY={KEY}")) && !seen.contains("GITHUB"),
        "{seen}"
    );
    assert!(seen.ends_with("\n0\n"), "nothing of the repository is there: {seen}");
    assert_eq!(facts(&world, "review_given")[0]["model"], "critic");
    let roles: Vec<Value> = facts(&world, "model_called")
        .iter()
        .map(|fact| fact["role"].clone())
        .collect();
    assert!(!roles.contains(&json!("reviewer")), "{roles:?}");
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(told.contains("Round 1: 8.5 of 10"), "{told}");
    let left: Vec<_> = std::fs::read_dir(world.state_dir().join("reviewers"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    world.finish().await;
}

#[tokio::test]
async fn one_that_hangs_floods_or_says_nothing_useful_is_named_and_never_passes() {
    for (script, seconds, reason) in [
        ("sleep 600 & sleep 600", 2, "did not answer within 2 s"),
        ("yes 'Score: 10/10'", 120, "wrote more than 20971520 bytes"),
        ("printf '\\377\\376'", 120, "is not text in UTF-8"),
        ("echo no credits >&2; exit 3", 120, "it said last: no credits"),
    ] {
        let mut world = World::start().await;
        reviews_with(&mut world, script, "proceed", seconds);
        greets(world.model.plans(good_plan()));
        let issue = world.github.open_issue("Greet the reader").label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        assert_eq!(count(&world, "review_given"), 0);
        let told = told(&world, issue.comments_of(world.github.bot()).last().unwrap());
        assert!(told.contains(reason), "{script}: {told}");
        assert!(told.contains("although it did not pass its review"), "{told}");
        world.finish().await;
    }
}

#[tokio::test]
async fn one_that_is_missing_is_found_by_doctor_and_stops_the_plan() {
    let mut world = World::start().await;
    let path = reviews_with(&mut world, "true", "fail", 120);
    let doctor = world.command(&["doctor"]).await.stdout;
    assert!(doctor.contains("program critic (reviewer)"), "{doctor}");
    std::fs::remove_file(&path).unwrap();
    let doctor = world.command(&["doctor"]).await.stdout;
    assert!(doctor.contains("BAD   program critic (reviewer)"), "{doctor}");
    world.model.plans(good_plan());
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    let told = told(&world, issue.comments_of(world.github.bot()).last().unwrap());
    assert!(told.contains("the reviewer cannot be found"), "{told}");
    world.finish().await;
}
