//! The story of many tests about people: something is painted, and while the model is at it they
//! say something.

use serde_json::{Value, json};

use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::world::scripts::COMMAND;
use crate::world::{Ended, Program, World};

pub fn plan() -> Plan {
    Plan::of(&["paint it"])
        .in_environment("python")
        .verified_by("test -f color.txt")
}

/// Returns the arguments of the command that paints it.
pub fn write(color: &str) -> Value {
    json!({ "command": format!("echo {color} > color.txt") })
}

/// Has the model paint it red, with a reply that is held back, and then blue.
pub fn repaints(world: &World) {
    world
        .model
        .plans(plan())
        .calls(COMMAND, write("red"))
        .holds()
        .calls(COMMAND, write("blue"))
        .done("It is blue.");
}

/// Has the program work on an issue until the model holds a reply back.
pub async fn held(world: &World) -> (Item, Program) {
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let mut run = world.spawn(&["run"]);
    run.until(world, world.model.until_held(1)).await;
    (issue, run)
}

/// Lets the reply go, and expects the program to end well.
pub async fn let_go(world: &World, run: Program) -> Ended {
    world.model.release();
    let ended = run.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    ended
}
