//! Checks that fail on an own pull/merge request: the end of their logs reaches the model.

use super::{paints, patient, red_merge_request, red_pull, said, task, world};
use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::fake::site::Site;
use crate::fake::traffic::Fault;
use crate::world::World;

/// A log as services write it: long, colored, and with what should not be in it.
fn log(secret: &str) -> String {
    format!(
        "{}\u{1b}[31mE   assert 'red' == 'blue'\u{1b}[0m\r\nthe token is {secret}\n##[error]Process completed with exit code 1.\n",
        "a line nobody needs\n".repeat(5_000)
    )
}

fn end(text: &str) -> String {
    let told = text.split("\nThe project's files:").next().unwrap();
    let lines: Vec<_> = told.trim_end().lines().collect();
    lines[lines.len() - 6..].join("\n")
}

/// Has a check begin, and then fail beside one that passes; expects the round about it to be done,
/// and returns its task.
async fn task_of_a_failing_check(world: &World, pull: &Item) -> String {
    pull.check_begins("test").check_passes("lint");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    pull.check_fails("test", &log(world.github.token()));
    task_of_the_round(world).await
}

/// Expects the round about what failed to be done, and returns its task.
async fn task_of_the_round(world: &World) -> String {
    paints(world, "blue");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#2: done\n", world);
    task(world, 1)
}

#[tokio::test]
async fn a_failing_check_is_mended_from_the_end_of_its_log() {
    let world = world().await;
    let pull = red_pull(&world).await;
    let task = task_of_a_failing_check(&world, &pull).await;
    insta::assert_snapshot!(end(&task), @r"
    a line nobody needs
    a line nobody needs
    E   assert 'red' == 'blue'
    the token is [redacted]
    ##[error]Process completed with exit code 1.
    </data-FENCE>
    ");
    assert!(task.len() < 20_000, "{}", task.len());
    assert_eq!(pull.file("color.txt").as_deref(), Some("blue\n"));
    assert_eq!(pull.comments_of(world.github.bot()).len(), 1, "{}", pull.timeline());

    // It fails again, and once more: a person is told, once.
    for log in ["still red", "still red"] {
        pull.check_fails("test", log);
        assert_eq!(world.run().await.stdout, "", "{}", world.story());
    }
    let comments = pull.comments_of(world.github.bot());
    assert_eq!(comments.len(), 2, "{}", pull.timeline());
    insta::assert_snapshot!(said(&world, &comments[1]), @r"
    ### 🙋 This needs a human

    1 round of work on failing checks did not settle it, and no more rounds are allowed (`follow_up.max_ci_rounds`). To have the work go on all the same, put the label `coding agent` on.
    ");
    world.finish().await;
}

#[tokio::test]
async fn with_a_token_that_may_not_read_checks_the_jobs_themselves_are_looked_at() {
    let world = world().await;
    let pull = red_pull(&world).await;
    world.github.fine_grained();
    let task = task_of_a_failing_check(&world, &pull).await;
    assert!(
        task.contains("E   assert 'red' == 'blue'\nthe token is [redacted]"),
        "{task}"
    );
    pull.check_passes("test");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_failing_check_is_mended_while_others_wait_for_people_or_the_merge() {
    for is_fine_grained in [false, true] {
        let world = world().await;
        let pull = red_pull(&world).await;
        if is_fine_grained {
            world.github.fine_grained();
        }
        pull.check_fails("test", "E   it is red")
            .check_waits("deploy")
            .status("tide", "pending", "Not mergeable.");
        // It may have been set just now.
        assert_eq!(world.run().await.stdout, "", "{}", world.story());
        pull.statuses_are_older(31);

        let task = task_of_the_round(&world).await;

        assert!(task.contains("E   it is red"), "{task}");
        assert!(!task.contains("deploy") && !task.contains("tide"), "{task}");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_failing_check_is_mended_beside_one_of_another_service_that_never_ends() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.check_fails("test", "E   it is red")
        .foreign_check_begins("Merge Protections");
    // It may still end.
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    pull.check_is_older("Merge Protections", 60);

    let task = task_of_the_round(&world).await;

    assert!(task.contains("E   it is red"), "{task}");
    assert!(!task.contains("Merge Protections"), "{task}");
    world.finish().await;
}

#[tokio::test]
async fn a_failing_pipeline_is_mended_from_the_end_of_its_trace() {
    let world = patient(World::on_gitlab().await, 0);
    let merge = red_merge_request(&world).await;
    merge.pipeline_begins("test");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    merge.pipeline_fails("test", &log(world.gitlab.token()));
    paints(&world, "blue");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets!1: done\n", &world);
    insta::assert_snapshot!(end(&task(&world, 1)), @r"
    a line nobody needs
    a line nobody needs
    E   assert 'red' == 'blue'
    the token is [redacted]
    ##[error]Process completed with exit code 1.
    </data-FENCE>
    ");
    assert_eq!(merge.file("color.txt").as_deref(), Some("blue\n"));
    merge.pipeline_passes("test");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_token_that_may_not_read_logs_still_tells_the_name_of_the_check() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.check_fails("test", "secret log")
        .status("ci/legacy", "failure", "3 tests failed");
    world.github.fails_next("GET /repos/*/*/actions/jobs/*/logs", 403, 1);

    let task = task_of_the_round(&world).await;

    insta::assert_snapshot!(end(&task), @r"
    The check `test` failed; its log cannot be read.

    The check `ci/legacy` failed; the end of its log:
    3 tests failed
    </data-FENCE>
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_log_is_fetched_from_another_server_without_the_token() {
    let site = Site::start();
    let elsewhere: &'static str = format!("http://{}", site.address()).leak();
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.check_fails("test", "secret log");
    let route = "GET /repos/*/*/actions/jobs/*/logs";
    world.github.misbehaves(route, 0, Fault::Redirects(elsewhere), 1);

    let task = task_of_the_round(&world).await;

    assert!(task.contains("the end of its log:\nhello from"), "{task}");
    let asked = site.asked();
    // The line of a request that brought a credential along would say so at its end.
    let is_plain = |line: &String| line.ends_with(&format!("/logs {}", site.address()));
    assert!(asked.len() == 1 && asked.iter().all(is_plain), "{asked:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_check_that_is_run_again_on_the_same_commit_is_seen() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.check_fails("test", "the network is down");
    world.model.plans(Plan::of(&["look at it"])).done("It was the network.");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );

    // The same failure is not worked on again, however late it is looked at.
    world.make_checks_old().await;
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(pull.comments_of(world.github.bot()).len(), 1, "{}", pull.timeline());

    // There is one round on checks in this world, so a person is told.
    pull.check_fails("test", "the network is down again");
    world.make_checks_old().await;
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let comments = pull.comments_of(world.github.bot());
    assert!(
        comments.len() == 2 && comments[1].contains("needs a human"),
        "{comments:?}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_check_that_passed_and_fails_when_it_is_run_again_is_mended() {
    let world = patient(World::on_gitlab().await, 0);
    let merge = red_merge_request(&world).await;
    merge.pipeline_passes("test");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    merge.pipeline_fails("test", "red");
    world.make_checks_old().await;
    paints(&world, "blue");

    assert_eq!(
        world.run().await.stdout,
        "gitlab:acme/widgets!1: done\n",
        "{}",
        world.story()
    );
    assert_eq!(merge.file("color.txt").as_deref(), Some("blue\n"));
    world.finish().await;
}
