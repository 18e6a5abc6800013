//! An index that another process keeps locked, or whose disk is full: planning goes on without it,
//! and people are told.

use std::path::PathBuf;
use std::process::Command;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Executor};

use super::{greeting, grown, indexes};
use crate::fake::github::Item;
use crate::world::World;
use crate::world::facts::{count, until_facts};
use crate::world::normalized::last_on_github;
use crate::world::scripts::{greets, plan};

/// Works on an issue, and returns what people are told at the end, and whether the planner was
/// shown places.
async fn worked(world: &World) -> (String, bool) {
    let before = world.model.requests().len();
    greets(world.model.script().plans(plan()));
    let issue = greeting(world);
    worked_to_the_end(world, &issue, before).await
}

/// Works on an issue until it is done. Its planner's first request is the one behind so many.
async fn worked_to_the_end(world: &World, issue: &Item, before: usize) -> (String, bool) {
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let first = world.model.requests()[before].first_user_message();
    let has_places = first.contains("The places that fit the words of the task best");
    (last_on_github(world, issue), has_places)
}

#[tokio::test]
async fn an_index_that_is_locked_is_done_without() {
    let world = World::start().await;
    grown(&world);
    assert!(worked(&world).await.1);
    let file = indexes(&world).pop().unwrap();
    let mut other = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();

    // What it has of a commit is read meanwhile.
    let (told, has_places) = worked(&world).await;
    assert!(has_places && !told.contains("code index"), "{told}");

    // A commit that it does not have would have to be written.
    let git = world.github.default_repository().git();
    git.commit(
        "main",
        "main",
        "Another",
        &[("net/other.py", "def other():\n    pass\n")],
    );
    let before = world.model.requests().len();
    let opened = count(&world, "environment_started");
    greets(world.model.script().plans(plan()));
    let issue = greeting(&world);
    let program = world.spawn(&["run"]);
    until_facts(&world, "environment_started", opened + 1).await;
    // The work waits for it as well, and a stop leaves no container behind.
    program.signal("TERM");
    let ended = program.ended().await;
    assert!(
        ended.stdout.ends_with(": interrupted\n"),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(world.containers().await, Vec::<String>::new(), "{}", world.story());
    let (told, has_places) = worked_to_the_end(&world, &issue, before).await;
    assert!(!has_places, "{}", world.story());
    assert!(
        told.contains("The code index was not used") && told.contains("another process keeps it locked"),
        "{told}"
    );

    other.execute("ROLLBACK").await.unwrap();
    let (told, has_places) = worked(&world).await;
    assert!(has_places && !told.contains("code index"), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn an_index_whose_disk_is_full_is_done_without() {
    let world = World::start().await;
    grown(&world);
    assert!(worked(&world).await.1);
    let file = indexes(&world).pop().unwrap();
    let disk = SmallDisk::mount(world.folder().join("small-disk"));
    for ending in ["", "-wal", "-shm"] {
        let mut path = file.clone().into_os_string();
        path.push(ending);
        let _ = std::fs::remove_file(path);
    }
    std::os::unix::fs::symlink(disk.0.join("index.sqlite"), &file).unwrap();

    let (told, has_places) = worked(&world).await;

    assert!(!has_places, "{}", world.story());
    assert!(
        told.contains("The code index was not used") && told.contains("the disk is full: free some space"),
        "{told}"
    );
    std::fs::remove_file(&file).unwrap();
    drop(disk);
    assert!(worked(&world).await.1);
    world.finish().await;
}

/// A disk with room for a few pages, which needs root or sudo.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: PathBuf) -> Self {
        std::fs::create_dir_all(&path).unwrap();
        let arguments = ["-t", "tmpfs", "-o", "size=64k,mode=1777", "tmpfs"];
        let mounted = as_root("mount").args(arguments).arg(&path).output().unwrap();
        assert!(mounted.status.success(), "{mounted:?}");
        Self(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = as_root("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn as_root(program: &str) -> Command {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if is_root {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["--non-interactive", program]);
    command
}
