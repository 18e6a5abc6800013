//! Failed pipelines of GitLab, where not all that failed is to be mended by a commit.

use serde_json::json;

use crate::fake::gitlab::{Item, Job};
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::scripts::{greets, plan};

/// Has a merge request opened by a program that works on failed checks once.
async fn greeted() -> (World, Item) {
    let mut world = World::on_gitlab().await;
    world.configure(|config| config["follow_up"] = json!({ "debounce_seconds": 0, "max_ci_rounds": 1 }));
    greets(world.model.plans(plan()));
    world.gitlab.open_issue("Greet the reader").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let merge = world.gitlab.merge_requests().remove(0);
    (world, merge)
}

/// Returns what fails and no commit mends.
fn unmendable() -> Vec<Job> {
    let mut jobs = vec![
        Job::external("license/cla", "Contributor License Agreement is not signed yet."),
        Job::failed("needs-review", "Nobody has reviewed this."),
    ];
    // More than a page of them.
    jobs.extend((0..100).map(|number| Job::allowed_to_fail(&format!("nightly {number}"))));
    jobs
}

#[tokio::test]
async fn a_pipeline_that_only_people_can_settle_costs_no_work() {
    let (world, merge) = greeted().await;
    let asked = world.model.requests().len();
    merge.pipeline_fails_in(unmendable());

    let ended = world.run().await;

    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", world.story());
    assert_eq!(world.model.requests().len(), asked, "{}", world.story());
    assert_eq!(merge.labels(), Vec::<String>::new(), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn what_can_be_mended_is_found_among_what_cannot() {
    let (world, merge) = greeted().await;
    let mut jobs = unmendable();
    jobs.push(Job::failed("test", "E   it is rude"));
    jobs.push(Job::external("ci/legacy", "3 tests failed"));
    merge.pipeline_fails_in(jobs);
    world.model.plans(Plan::of(&["look"])).done("It cannot be mended.");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets!1: done\n", &world);
    let task = world.model.requests().last().unwrap().first_user_message();
    for told in ["it is rude", "ci/legacy", "3 tests failed"] {
        assert!(task.contains(told), "{told}: {task}");
    }
    for kept in ["license/cla", "needs-review", "nightly"] {
        assert!(!task.contains(kept), "{kept}: {task}");
    }
    world.finish().await;
}

#[tokio::test]
async fn what_failed_beside_a_job_that_waits_is_mended() {
    for status in ["manual", "scheduled"] {
        let (world, merge) = greeted().await;
        // Nothing has failed.
        merge.pipeline_waits_beside(Vec::new(), status);
        assert_eq!(world.run().await.stdout, "", "{status}: {}", world.story());
        world.make_checks_old().await;
        merge.pipeline_waits_beside(vec![Job::failed("test", "E   it is rude")], status);
        world.model.plans(Plan::of(&["look"])).done("It cannot be mended.");

        let ended = world.run().await;

        assert_eq!(
            ended.stdout,
            "gitlab:acme/widgets!1: done\n",
            "{status}: {ended:?}\n{}",
            world.story()
        );
        let task = world.model.requests().last().unwrap().first_user_message();
        assert!(task.contains("it is rude") && !task.contains("deploy"), "{task}");
        world.finish().await;
    }
}
