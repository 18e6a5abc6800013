//! Much output, a large repository, many tasks: the program stays small and its disk clean.

use std::path::Path;

use serde_json::json;

use crate::fake::model::{Answer, Model, Plan, Request, Said};
use crate::world::processes::{self, mark};
use crate::world::scripts::COMMAND;
use crate::world::{Program, World};

const MEGABYTE: u64 = 1024 * 1024;

/// Returns a field of `/proc/<id>/status` in bytes, such as `VmHWM`, the most memory the process
/// ever had.
fn memory(program: &Program, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

fn open_files(program: &Program) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", program.pid()))
        .unwrap()
        .count()
}

/// Returns the bytes of all files below a folder.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                size(&entry.path())
            } else {
                metadata.len()
            }
        })
        .sum()
}

#[tokio::test]
async fn fifty_megabytes_of_output_leave_the_program_small() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["shout"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "head -c 50000000 /dev/zero | tr '\\0' x" }))
        .calls(
            COMMAND,
            json!({ "command": "yes shout | head -c 50000000 | tee /dev/stderr" }),
        )
        .done("Shouted.")
        .holds();
    world.github.open_issue("Shout").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let most = memory(&program, "VmHWM");
    world.model.release();

    assert_eq!(
        program.ended().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    assert!(most < 100 * MEGABYTE, "{} MB", most / MEGABYTE);
    for request in &world.model.requests()[2..] {
        let said = request.last_user_message();
        assert!(
            said.len() < 64 * 1024 && said.contains("exit code 0"),
            "{} bytes",
            said.len()
        );
    }
    world.finish().await;
}

#[tokio::test]
async fn a_command_that_runs_out_of_time_leaves_no_process() {
    let mut world = World::start().await;
    world.configure(|config| config["command_executor"]["timeout_seconds"] = json!(2));
    let long = mark();
    world
        .model
        .plans(Plan::of(&["wait"]).in_environment("python"))
        .calls(
            COMMAND,
            json!({ "command": format!("(setsid sleep {long} &); nohup sleep {long} & trap '' TERM; sleep {long}") }),
        )
        .done("Waited.")
        .holds();
    world.github.open_issue("Wait").label("coding agent");

    let program = world.spawn(&["run"]);
    processes::until_some(&long).await;
    world.model.until_held(1).await;
    assert_eq!(processes::with_mark(&long), [0; 0]);
    let told = world.model.requests()[2].last_user_message();
    assert!(told.contains("timed out"), "{told}");
    world.model.release();

    assert_eq!(
        program.ended().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn a_repository_of_200_megabytes_is_worked_on() {
    let world = World::start().await;
    write_large_repository(&world);
    world
        .model
        .plans(
            Plan::of(&["look"])
                .in_environment("python")
                .verified_by("test -e small.txt"),
        )
        .calls(
            COMMAND,
            json!({ "command": "du -sm --exclude=.git . && echo small > small.txt" }),
        )
        .done("Looked.")
        .holds();
    world.github.open_issue("Look").label("coding agent");

    // After the comment on the progress comes the final one, before which the program is looked at.
    world.github.hangs("POST /repos/*/*/issues/*/comments", 1, true);
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let mirrors = size(&world.state_dir().join("mirrors"));
    assert!(mirrors > 200 * MEGABYTE && mirrors < 220 * MEGABYTE, "{mirrors}");
    let everything_else = size(world.folder()) - mirrors;
    assert!(everything_else < 5 * MEGABYTE, "{everything_else}");
    let before_delivery = memory(&program, "VmHWM");
    world.model.release();
    world.github.until_one_hangs().await;
    let most = memory(&program, "VmHWM");
    world.github.cuts_off();

    assert_eq!(
        program.ended().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    assert!(
        most < 100 * MEGABYTE,
        "{} MB, before the delivery {} MB",
        most / MEGABYTE,
        before_delivery / MEGABYTE
    );
    let seen = world.model.requests()[2].last_user_message();
    assert!(seen.contains("201\\t."), "{seen}");
    assert_eq!(world.github.pulls()[0].file("small.txt").as_deref(), Some("small\n"));
    world.finish().await;
}

/// Ten files of 20 MB that cannot be compressed.
fn write_large_repository(world: &World) {
    use std::io::Read;
    let mut random = std::fs::File::open("/dev/urandom").unwrap();
    let contents: Vec<(String, Vec<u8>)> = (0..10)
        .map(|number| {
            let mut bytes = vec![0; usize::try_from(20 * MEGABYTE).unwrap()];
            random.read_exact(&mut bytes).unwrap();
            (format!("{number}.bin"), bytes)
        })
        .collect();
    let files: Vec<(&[u8], &[u8])> = contents
        .iter()
        .map(|(name, bytes)| (name.as_bytes(), bytes.as_slice()))
        .collect();
    let repository = world.github.default_repository();
    repository.git().commit_bytes("main", "main", "Grow", &files);
}

#[tokio::test]
async fn a_service_does_not_grow_with_what_it_has_done() {
    let mut world = World::with(Model::answering(look_and_be_done).await).await;
    world.configure(|config| {
        config["planning"] = json!({ "enabled": false });
        config["consumers"] = json!(4);
    });

    let program = world.spawn(&["serve"]);
    work_through(&world, 10).await;
    let (memory_before, files_before) = (memory(&program, "VmRSS"), open_files(&program));
    work_through(&world, 20).await;
    let memory_after = memory(&program, "VmRSS");
    // A run says that it ended before it has put everything down.
    world
        .until("the files of the last runs to be closed", || {
            open_files(&program) <= files_before + 4
        })
        .await;
    program.signal("TERM");

    assert_eq!(program.ended().await.code, Some(0));
    assert!(
        memory_after < memory_before + 8 * MEGABYTE,
        "{} MB after 10 tasks, {} MB after 30",
        memory_before / MEGABYTE,
        memory_after / MEGABYTE
    );
    world.finish().await;
}

fn look_and_be_done(request: &Request) -> Answer {
    if request.messages.iter().any(|said| matches!(said, Said::Assistant(..))) {
        return Answer::done("Nothing had to be done.");
    }
    Answer::calls("workspace/execute_command", json!({ "command": "ls" }))
}

/// Has the service work on so many more issues, and waits until it is idle.
async fn work_through(world: &World, count: usize) {
    let before = ended_runs(world);
    for _ in 0..count {
        world.github.open_issue("Do nothing").label("coding agent");
    }
    world
        .until("all runs to end", || ended_runs(world) == before + count)
        .await;
}

fn ended_runs(world: &World) -> usize {
    world.journal().iter().filter(|entry| entry["ending"] == "done").count()
}
