//! Requests to the Docker engine that go wrong in the middle, or find it gone for a while. They do
//! so at a socket before the engine's own: the engine itself, which others use as well, notices
//! nothing.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bollard::Docker;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::task::AbortOnDropHandle;

use crate::fake::engine::{self, Machine, USUAL};
use crate::fake::model::Plan;
use crate::world::scripts::COMMAND;
use crate::world::{Ended, World};

/// How the proxy in front of the engine treats a request of some kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// The container is killed before a command is started that was made ready in it.
    KilledBeforeStart,
    /// The engine does not attach to the container, and goes away before the executor is started in
    /// it.
    GoneBeforeExecutor,
    /// The engine goes away before a container is removed.
    GoneBeforeRemoval,
    /// The engine goes away before the work in a container is committed.
    GoneBeforeCommit,
    /// The engine does not know a command any more whose end is asked for, as after a restart
    /// during which its containers went on.
    CommandForgotten,
}

struct Engine {
    path: PathBuf,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Shared {
    /// Strikes once.
    trouble: Mutex<Option<Trouble>>,
    is_away: AtomicBool,
}

impl Engine {
    /// Puts a socket of a world's own before the engine.
    fn before(world: &mut World) -> Self {
        let path = world.folder().join("docker.sock");
        world.sets("DOCKER_HOST", &format!("unix://{}", path.display()));
        let listener = UnixListener::bind(&path).unwrap();
        let shared = Arc::new(Shared::default());
        let serving = serve(listener, Arc::clone(&shared));
        Self {
            path,
            shared,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    fn will(&self, trouble: Trouble) {
        *self.shared.trouble.lock().unwrap() = Some(trouble);
    }

    fn has_struck(&self) -> bool {
        self.shared.trouble.lock().unwrap().is_none()
    }

    fn comes_back(&self) {
        self.shared.is_away.store(false, Ordering::SeqCst);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn serve(listener: UnixListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        if !shared.is_away.load(Ordering::SeqCst) {
            tokio::spawn(connect(client, Arc::clone(&shared)));
        }
    }
}

/// Passes on what both sides say; looks at the head of each request, which clients send in one
/// piece.
async fn connect(client: UnixStream, shared: Arc<Shared>) -> std::io::Result<()> {
    let engine = UnixStream::connect(Path::new("/var/run/docker.sock")).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_engine, mut to_engine) = engine.into_split();
    let answers = AbortOnDropHandle::new(tokio::spawn(async move {
        tokio::io::copy(&mut from_engine, &mut to_client).await
    }));
    let mut part = vec![0; 64 * 1024];
    loop {
        let length = from_client.read(&mut part).await?;
        if length == 0 {
            break;
        }
        let is_attaching = part.starts_with(b"POST ") && String::from_utf8_lossy(&part[..length]).contains("/attach?");
        if is_attaching && *shared.trouble.lock().unwrap() == Some(Trouble::GoneBeforeExecutor) {
            return Ok(());
        }
        if strikes(&shared, &part[..length]).await {
            shared.is_away.store(true, Ordering::SeqCst);
            return Ok(());
        }
        if shared.is_away.load(Ordering::SeqCst) {
            return Ok(());
        }
        forgets(&shared, &mut part[..length]);
        to_engine.write_all(&part[..length]).await?;
    }
    to_engine.shutdown().await?;
    let _ = answers.await;
    Ok(())
}

/// Lets the trouble happen if this is its request; returns whether the engine is gone with it.
async fn strikes(shared: &Shared, part: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&part[..part.len().min(300)]).into_owned();
    let line = head.lines().next().unwrap_or_default();
    let exec = line
        .strip_prefix("POST ")
        .and_then(|rest| rest.split_once("/exec/")?.1.split_once("/start"));
    let is_removal = line.starts_with("DELETE ") && line.contains("/containers/");
    let makes_executor = line.starts_with("POST ")
        && line.contains("/exec ")
        && String::from_utf8_lossy(part).contains(r#"coding-agent-executor","--root""#);
    let commits = line.starts_with("POST ")
        && line.contains("/exec ")
        && String::from_utf8_lossy(part).contains("commit.gpgSign=false commit");
    let trouble = {
        let mut armed = shared.trouble.lock().unwrap();
        let is_its = match *armed {
            Some(Trouble::KilledBeforeStart) => exec.is_some(),
            Some(Trouble::GoneBeforeExecutor) => makes_executor,
            Some(Trouble::GoneBeforeRemoval) => is_removal,
            Some(Trouble::GoneBeforeCommit) => commits,
            Some(Trouble::CommandForgotten) | None => false,
        };
        if is_its { armed.take() } else { None }
    };
    if let (Some(Trouble::KilledBeforeStart), Some((exec, _))) = (trouble, exec) {
        let docker = Docker::connect_with_defaults().unwrap();
        let container = docker.inspect_exec(exec).await.unwrap().container_id.unwrap();
        docker.kill_container(&container, None).await.unwrap();
    }
    matches!(
        trouble,
        Some(Trouble::GoneBeforeExecutor | Trouble::GoneBeforeRemoval | Trouble::GoneBeforeCommit)
    )
}

/// Has the engine asked for the end of a command that it does not know, if this is such a request.
fn forgets(shared: &Shared, part: &mut [u8]) {
    let mut armed = shared.trouble.lock().unwrap();
    let head = String::from_utf8_lossy(&part[..part.len().min(300)]).into_owned();
    let line = head.lines().next().unwrap_or_default();
    if *armed == Some(Trouble::CommandForgotten)
        && line.starts_with("GET ")
        && let (Some(before), Some(behind)) = (line.find("/exec/"), line.find("/json"))
    {
        part[before + "/exec/".len()..behind].fill(b'0');
        *armed = None;
    }
}

/// Runs the program to the end of a model's work, where its reply is held, and from there with the
/// trouble: the work is kept before it is checked, by a command of the program's own.
async fn struck_while_the_work_is_kept(world: &World, engine: &Engine, trouble: Trouble) -> Ended {
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    engine.will(trouble);
    world.model.release();
    let ended = program.ended().await;
    assert!(engine.has_struck());
    ended
}

#[tokio::test]
async fn a_container_that_dies_between_the_making_and_the_start_of_a_command_is_replaced() {
    let mut world = World::start().await;
    world.model.allows_restarts();
    let engine = Engine::before(&mut world);
    world
        .model
        .plans(
            Plan::of(&["count"])
                .in_environment("python")
                .verified_by("grep -q one one.txt"),
        )
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .done("Counted.")
        .holds()
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .done("Counted again.");
    let issue = world.github.open_issue("Count to one").label("coding agent");

    let ended = struck_while_the_work_is_kept(&world, &engine, Trouble::KilledBeforeStart).await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls()[0].file("one.txt").as_deref(), Some("one\n"));
    drop(engine);
    world.finish().await;
}

#[tokio::test]
async fn a_container_that_could_not_be_removed_goes_when_the_engine_is_back() {
    let mut world = World::start().await;
    let engine = Engine::before(&mut world);
    world
        .model
        .plans(Plan::of(&["count"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .done("Counted.")
        .holds();
    let issue = world.github.open_issue("Count to one").label("coding agent");

    let service = world.spawn(&["serve"]);
    world.model.until_held(1).await;
    engine.will(Trouble::GoneBeforeRemoval);
    world.model.release();
    issue.until(|issue| issue.labels() == ["coding agent done"]).await;
    world.until("the removal to fail", || engine.has_struck()).await;
    assert_eq!(world.containers().await.len(), 1);
    engine.comes_back();
    world
        .until("a sweep", || {
            world.journal().iter().any(|entry| entry["fact"] == "swept")
        })
        .await;
    service.signal("TERM");
    assert_eq!(service.ended().await.code, Some(0));

    drop(engine);
    world.finish().await;
}

#[tokio::test]
async fn the_container_of_a_run_at_work_is_never_too_old() {
    let mut world = World::start().await;
    let machine = Machine {
        // Ten times `cleanup.stale_hours`.
        ages_by: Duration::from_hours(240),
        ..Machine::default()
    };
    let engine = engine::Engine::on(machine, USUAL).await;
    world.sets("DOCKER_HOST", engine.address());
    world
        .model
        .for_task("Count slowly")
        .plans(Plan::of(&["count"]).in_environment("python"))
        .calls(
            COMMAND,
            json!({ "command": "echo as-it-was > /tmp/mark; echo one > one.txt" }),
        )
        .calls(COMMAND, json!({ "command": "cat /tmp/mark" }))
        .holds()
        .done("Counted.");
    world
        .model
        .for_task("Count fast")
        .plans(Plan::of(&["count"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo two > two.txt" }))
        .done("Counted.");
    let slow = world.github.open_issue("Count slowly").label("coding agent");

    let service = world.spawn(&["serve"]);
    world.model.until_held(1).await;
    let own = world.containers().await;
    // What another run leaves has the service sweep before its time.
    engine.fails_removals(true);
    let fast = world.github.open_issue("Count fast").label("coding agent");
    fast.until(|issue| issue.labels() == ["coding agent done"]).await;
    // The end of a run tries it twice at most, sweeps again and again.
    world.until("sweeps that fail", || engine.failed_removals() > 3).await;
    engine.fails_removals(false);
    world
        .until("a sweep", || {
            world.journal().iter().any(|entry| entry["fact"] == "swept")
        })
        .await;

    assert_eq!(world.containers().await, own, "{}", world.story());
    world.model.release();
    slow.until(|issue| issue.labels() == ["coding agent done"]).await;
    let seen = world.model.requests().pop().unwrap().last_user_message();
    assert!(seen.contains("as-it-was"), "{seen}");
    let is_told = |comment: &str| comment.contains("The container was lost");
    let comments = slow.comments();
    assert!(
        !comments.iter().any(|comment| is_told(&comment.body)),
        "{}",
        world.story()
    );
    service.signal("TERM");
    assert_eq!(service.ended().await.code, Some(0));
    world.finish().await;
}

#[tokio::test]
async fn an_engine_that_is_away_when_the_tools_are_needed_or_was_restarted_is_no_lost_container() {
    let mut world = World::start().await;
    world.model.allows_restarts();
    let engine = Engine::before(&mut world);
    world
        .model
        .plans(Plan::of(&["count"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .done("Counted.")
        .holds();
    let issue = world.github.open_issue("Count to one").label("coding agent");

    engine.will(Trouble::GoneBeforeExecutor);
    let ended = world.run().await;

    assert!(engine.has_struck());
    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until"),
        "{ended:?}\n{}",
        world.story()
    );
    engine.comes_back();
    world.make_everything_due().await;
    let ended = struck_while_the_work_is_kept(&world, &engine, Trouble::CommandForgotten).await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let warned = world.journal().iter().filter(|entry| entry["fact"] == "warned").count();
    assert_eq!(warned, 0, "{}", world.story());
    drop(engine);
    world.finish().await;
}

#[tokio::test]
async fn an_engine_that_goes_away_while_a_stopped_run_hands_its_work_over_costs_none_of_it() {
    let mut world = World::start().await.attentive();
    world.model.allows_restarts();
    let engine = Engine::before(&mut world);
    world
        .model
        .plans(Plan::of(&["count"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .done("This is never heard.")
        .holds();
    let issue = world.github.open_issue("Count to one").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // What the model has written is in the container alone.
    program.kill().await;
    issue.comment("alice", "/agent stop");
    engine.will(Trouble::GoneBeforeCommit);

    let ended = world.run().await;

    assert!(engine.has_struck());
    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until"),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(world.containers().await.len(), 1);
    engine.comes_back();
    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: stopped\n", &world);
    let repository = world.github.default_repository();
    let saved = repository.file("coding-agent/1-count-to-one", "one.txt");
    assert_eq!(saved.as_deref(), Some("one\n"), "{}", world.story());
    world.model.release();
    drop(engine);
    world.finish().await;
}
