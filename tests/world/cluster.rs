//! The real program with a real Kubernetes as its engine: a pod for each run.
//!
//! The cluster is that of `scripts/with-kubernetes`, and these tests change it: policies, quotas,
//! parts of it. `make test-kubernetes` plays them one after the other.

use serde_json::json;

use crate::fake::github::Item;
use crate::fake::model::{Plan, Script};
use crate::world::World;
use crate::world::scripts::executes;

mod confined;
mod cuts;
mod deployment;
mod parts;
mod policies;
mod rights;
mod speed;
mod troubles;
mod work;

/// Has the model run `commands`, one for each turn, and opens the issue.
fn runs<'world>(world: &'world World, commands: &[&str]) -> (Script<'world>, Item) {
    let script = world.model.plans(Plan::of(&["count"]).in_environment("python"));
    let script = commands
        .iter()
        .fold(script, |script, command| executes(script, command));
    (script, world.github.open_issue("Count").label("coding agent"))
}

/// Runs a cycle, and fails unless the issue is done.
async fn is_done(world: &World, issue: &Item) {
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());
}

/// Has the program reach the cluster by another file.
fn reaches_by(world: &mut World, kubeconfig: &std::path::Path) {
    world.configure(|config| config["environment"]["kubernetes"]["kubeconfig"] = json!(kubeconfig));
}
