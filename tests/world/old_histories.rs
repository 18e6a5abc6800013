//! Repositories whose history has faults that git refuses to write today: real ones are many years
//! old, and every forge serves them.

use crate::world::World;
use crate::world::scripts::{greets, plan};

const SOMEBODY: &str = "A <a@example.org> 1000000000 +0000";

#[tokio::test]
async fn a_history_with_old_faults_is_worked_on() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    let repository = world.github.repository("acme/widgets");
    let honest = repository.git().resolve("main").unwrap();
    let git = repository.git();
    let blob = git.object("blob", b"old\n");
    let raw: Vec<u8> = (0..blob.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&blob[at..at + 2], 16).unwrap())
        .collect();
    let entry = [b"100644 a\0", raw.as_slice()].concat();
    let twice = git.object("tree", &entry.repeat(2));
    let old = [
        "author A <a@example.org> 18446744073709551615 +0000\n",
        "author A 1000000000 +0000\n",
        "",
    ];
    let last = old.iter().fold(honest.clone(), |parent, author| {
        let text = format!("tree {twice}\nparent {parent}\n{author}committer {SOMEBODY}\n\nLong ago\n");
        git.object("commit", text.as_bytes())
    });
    let tree = git.tree(&honest);
    let text = format!("tree {tree}\nparent {last}\nauthor {SOMEBODY}\ncommitter {SOMEBODY}\n\nToday\n");
    git.set_reference("refs/heads/main", &git.object("commit", text.as_bytes()));
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
