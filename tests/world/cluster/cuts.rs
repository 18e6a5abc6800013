//! Streams through a load balancer that cuts them, again and again.

use std::time::Duration;

use serde_json::json;

use super::{reaches_by, runs};
use crate::world::World;
use crate::world::clusters::{Mended, behind_a_load_balancer, control};
use crate::world::scripts::{counted, output};

const CUTS: usize = 100;

/// A connection that lasted for so long counts as one that lasts.
const STEADY: Duration = Duration::from_millis(1_200);

/// Cuts all connections until `count` streams of the executor were lost. Each fifth is cut again as soon as it
/// comes back.
async fn cut(world: &World, count: usize) {
    let lost = || world.story().matches("a connection to the executor was lost").count();
    let already = lost();
    for number in 1..=count {
        control(&["proxy", "cut"]).await;
        world.until("a stream to be lost", || lost() >= already + number).await;
        if number % 5 != 0 {
            tokio::time::sleep(STEADY).await;
        }
    }
}

#[tokio::test]
async fn a_hundred_cuts_change_no_result() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    reaches_by(&mut world, &behind_a_load_balancer());
    world.configure(|config| {
        config["logs"]["level"] = json!("debug");
        config["command_executor"]["timeout_seconds"] = json!(900);
    });
    let counts = "n=0; until [ -e /tmp/enough ]; do n=$((n+1)); echo $n | tee -a counted.txt; sleep 0.1; done; \
                  echo run >> /tmp/runs; wc -l < counted.txt";
    let looks = "cat /tmp/runs; seq $(wc -l < counted.txt) | cmp - counted.txt && echo the same";
    let (script, issue) = runs(&world, &[counts, looks, "seq 3000"]);
    script.done("Counted.");

    let program = world.spawn(&["run"]);
    world.model.until(|requests| requests.len() >= 2).await;
    world
        .in_container("cd project; until [ -s counted.txt ]; do sleep 0.1; done")
        .await;
    cut(&world, CUTS).await;
    world.in_container("touch /tmp/enough").await;
    let ended = program.ended().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());
    let first = output(&world, 0);
    let (lines, count) = first.rsplit_once('\n').unwrap();
    let count: usize = count.trim().parse().unwrap();
    // The middle of a long output is left out for the model, and the program says so.
    assert!(
        lines.starts_with("1\n2\n3\n") && lines.ends_with(&format!("\n{count}")),
        "{lines}"
    );
    assert_eq!(output(&world, 1), "run\nthe same");
    assert_eq!(output(&world, 2), counted(3000));
    assert_eq!(world.github.pulls().len(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_stream_that_is_idle_is_kept_open_before_it_is_closed() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    reaches_by(&mut world, &behind_a_load_balancer());
    world.configure(|config| config["logs"]["level"] = json!("debug"));
    // Longer than the load balancer bears, which is longer than an end is silent.
    control(&["proxy", "idle", "20"]).await;
    let (script, issue) = runs(&world, &["sleep 50; echo woken"]);
    script.done("Slept.");

    let ended = world.run().await;
    control(&["proxy", "idle", "0"]).await;

    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());
    assert_eq!(output(&world, 0), "woken");
    assert!(
        !world.story().contains("a connection to the executor was lost"),
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn a_stream_on_which_nothing_arrives_any_more_is_replaced() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    reaches_by(&mut world, &behind_a_load_balancer());
    world.configure(|config| {
        config["logs"]["level"] = json!("debug");
        config["command_executor"]["timeout_seconds"] = json!(900);
    });
    let (script, issue) = runs(
        &world,
        &["touch /tmp/begun; until [ -e /tmp/enough ]; do sleep 0.1; done; echo there"],
    );
    script.done("Waited.");

    let program = world.spawn(&["run"]);
    world.model.until(|requests| requests.len() >= 2).await;
    world.in_container("until [ -e /tmp/begun ]; do sleep 0.1; done").await;
    control(&["proxy", "stall", "on"]).await;
    world.until_logged("a connection to the executor was lost").await;
    control(&["proxy", "stall", "off"]).await;
    world.in_container("touch /tmp/enough").await;
    let ended = program.ended().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());
    assert_eq!(output(&world, 0), "there");
    world.finish().await;
}
