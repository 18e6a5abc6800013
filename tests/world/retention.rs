//! Erasure: tasks that are to be forgotten, and finished work after its time.

use std::time::{Duration, SystemTime};

use serde_json::json;
use sqlx::{Executor, Row};

use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::web::{ends, opened, until, with_users};
use crate::world::World;
use crate::world::databases::Database;
use crate::world::scripts::COMMAND;

/// A word in everything that is said of the task, and nowhere else.
const WORD: &str = "heffalump";

/// Has the model plan and do something that all of its texts name by this word, with an output that
/// is too long for the conversation.
fn works(world: &World, term: &str) {
    let long = format!("for n in $(seq 20000); do echo {term} $n; done; echo {term} > found.txt");
    world
        .model
        .plans(Plan::of(&["look"]).in_environment("python").verified_by("true"))
        .calls(COMMAND, json!({ "command": long }))
        .done(&format!("A {term} was found."));
}

fn issue(world: &World, term: &str) -> Item {
    let issue = world.github.open_issue("Look").body(&format!("Look for a {term}."));
    issue.comment("alice", &format!("The {term} is near."));
    issue.label("coding agent")
}

async fn tasks(world: &World) -> Vec<String> {
    let rows = world
        .sqlite()
        .await
        .fetch_all("SELECT task FROM runs ORDER BY id")
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Has the next round delete what is old from the machine's disk, although the last one was just
/// now.
fn tidies_again(world: &World) {
    std::fs::remove_file(world.state_dir().join("retention")).unwrap();
}

/// Starts a world whose store is on the server; returns the store's address too.
async fn world_on(database: &Database) -> (World, String) {
    let mut world = World::start().await;
    let address = database.schema();
    world.configure(|config| config["store"] = json!({ "url": address }));
    (world, address)
}

/// Makes a file or a folder one that was changed so many days ago for the last time.
fn ages(path: &std::path::Path, days: u64) {
    let long_ago = SystemTime::now() - Duration::from_hours(days * 24);
    std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
}

#[tokio::test]
async fn nothing_is_left_of_a_task_that_is_forgotten() {
    let world = World::start().await;
    works(&world, WORD);
    let issue = issue(&world, WORD);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    works(&world, "woozle");
    let other = self::issue(&world, "woozle");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(other.labels(), ["coding agent done"]);
    let before = world.files_with(WORD);
    for part in ["coding-agent.db", "journal-", "outputs"] {
        assert!(before.contains(part), "{part} is not in {before}");
    }

    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;

    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(
        ended
            .stdout
            .starts_with("github:acme/widgets#1: erased 1 run with their conversations, "),
        "{ended:?}"
    );
    assert_eq!(world.files_with(WORD), "", "{ended:?}");
    assert!(world.files_with("woozle").contains("outputs"));
    assert_eq!(tasks(&world).await, ["github:acme/widgets#3"]);
    let again = world.command(&["forget", "github:acme/widgets#1"]).await;
    assert_eq!(
        again.stdout, "github:acme/widgets#1: nothing is stored about it\n",
        "{again:?}"
    );
    // What is left still works.
    let logs = world.command(&["logs", "github:acme/widgets#3"]).await;
    assert!(logs.code == Some(0) && logs.stdout.contains("admitted"), "{logs:?}");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn what_is_forgotten_on_one_machine_goes_from_the_disks_of_the_others() {
    let database = Database::start();
    let (mut world, address) = world_on(&database).await;
    works(&world, WORD);
    issue(&world, WORD);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let run = Database::ask(&address, "SELECT id FROM runs");
    let outputs = world.folder().join("logs/outputs").join(&run);
    assert!(world.files_with(&run).contains("journal-") && outputs.exists());

    world.moves_to("second");
    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(
        ended.stdout.contains("; the other machines that share the store"),
        "{ended:?}"
    );
    assert_eq!(Database::ask(&address, "SELECT COUNT(*) FROM runs"), "0");
    assert!(world.files_with(&run).contains("journal-") && outputs.exists());

    world.comes_back();
    tidies_again(&world);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(world.files_with(&run), "", "{}", world.story());
    assert!(!outputs.exists());
    let done = "SELECT COUNT(*) FROM remembered WHERE name LIKE 'forgotten %'";
    assert_eq!(Database::ask(&address, done), "2");

    // When the logs that could name it are gone, so is the note.
    let note = "UPDATE remembered SET value = REPLACE(value, '\"at\":\"2', '\"at\":\"1') WHERE name LIKE 'forget %'";
    Database::ask(&address, note);
    Database::ask(&address, "DELETE FROM remembered WHERE name = 'retention was kept'");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let left = "SELECT COUNT(*) FROM remembered WHERE name LIKE 'forg%'";
    assert_eq!(Database::ask(&address, left), "0");
    world.finish().await;
}

#[tokio::test]
async fn a_call_on_a_second_machine_finds_what_the_first_has_deleted_from_the_store() {
    let database = Database::start();
    let (mut world, address) = world_on(&database).await;
    works(&world, WORD);
    issue(&world, WORD);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let run = Database::ask(&address, "SELECT id FROM runs");
    world.moves_to("second");
    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");

    world.comes_back();
    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("the kept outputs of 1 run"), "{ended:?}");
    assert_eq!(world.files_with(&run), "", "{ended:?}");
    world.finish().await;
}

#[tokio::test]
async fn what_is_forgotten_once_more_goes_from_the_disks_of_the_others_once_more() {
    let database = Database::start();
    let (mut world, address) = world_on(&database).await;
    works(&world, WORD);
    issue(&world, WORD);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let run = Database::ask(&address, "SELECT id FROM runs");
    let outputs = world.folder().join("logs/outputs").join(&run);
    for _ in 0..2 {
        // As a backup of the logs brings it back, the second time.
        std::fs::create_dir_all(&outputs).unwrap();
        std::fs::write(outputs.join("restored"), WORD).unwrap();
        world.moves_to("second");
        let ended = world.command(&["forget", "github:acme/widgets#1"]).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");

        world.comes_back();
        tidies_again(&world);
        assert_eq!(world.run().await.code, Some(0), "{}", world.story());
        assert!(!outputs.exists(), "{}", world.story());
        let notes = "SELECT COUNT(*) FROM remembered WHERE name LIKE 'forget %'";
        assert_eq!(Database::ask(&address, notes), "1");
    }
    world.finish().await;
}

/// Returns the names under which something about the first task is written down once.
async fn noted(world: &World) -> Vec<String> {
    let rows = world
        .sqlite()
        .await
        .fetch_all(
            "SELECT name FROM once WHERE name LIKE '%github:acme/widgets#1' OR value LIKE '% github:acme/widgets#1 %'
             ORDER BY name",
        )
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn who_asked_for_a_task_over_http_is_forgotten_with_it() {
    let mut world = World::start().await;
    with_users(&mut world);
    works(&world, WORD);
    let (mut program, web) = opened(&world, &["serve"]).await;
    let task = json!({ "repository": "github:acme/widgets", "title": "Look", "text": "Look for it." });
    assert_eq!(web.post("/api/tasks", &task).await.status(), 201);
    let is_done = until("the end of the run", async || {
        let history = web.json("/api/history?state=done").await;
        history["runs"].as_array().unwrap().len() == 1
    });
    program.until(&world, is_done).await;
    ends(program, &world).await;
    let before = noted(&world).await;
    assert_eq!(before.len(), 2, "{before:?}");
    assert_eq!(before[0], "opened github:acme/widgets#1");

    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;

    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(noted(&world).await, [""; 0]);
    world.finish().await;
}

#[tokio::test]
async fn a_task_at_work_is_not_forgotten_and_others_are_beside_it() {
    let world = World::start().await;
    works(&world, WORD);
    issue(&world, WORD);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let second = "echo woozle > second.txt";
    world
        .model
        .plans(Plan::of(&["look"]).in_environment("python").verified_by("true"))
        .calls(COMMAND, json!({ "command": second }))
        .holds()
        .done("A woozle was found.");
    let other = issue(&world, "woozle");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;

    let refused = world.command(&["forget", "github:acme/widgets#3"]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(64), ""), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("a run of github:acme/widgets#3 is unfinished (working)"),
        "{refused:?}"
    );
    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("other processes are at work"), "{ended:?}");
    world.model.release();
    let run = run.ended().await;

    assert_eq!(run.code, Some(0), "{run:?}\n{}", world.story());
    assert_eq!(other.labels(), ["coding agent done"]);
    let facts = world.journal();
    let of_other = facts.iter().filter(|fact| fact["task"] == "github:acme/widgets#3");
    assert!(of_other.clone().any(|fact| fact["fact"] == "admitted"));
    assert!(
        of_other.clone().any(|fact| fact["fact"] == "change_opened"),
        "{facts:#?}"
    );
    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(world.files_with(WORD), "", "{ended:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_waits_finds_its_base_after_its_branch_was_rewritten_and_others_were_forgotten() {
    let mut world = World::start().await;
    world.configure(|config| config["approval"] = json!({ "plan": true }));
    world.model.allows_restarts();
    let repository = world.github.default_repository();
    let before = repository.git().resolve("refs/heads/main").unwrap();
    repository.commit("main", "Say more", &[("more.txt", "more\n")]);
    let plan = || Plan::of(&["look"]).in_environment("python").verified_by("true");
    world.model.plans(plan());
    let issue = world.github.open_issue("Look").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"], "{}", world.story());

    repository.git().set_reference("refs/heads/main", &before);
    repository.commit("main", "Say something else", &[("else.txt", "else\n")]);
    // Its planning fetches what is there now.
    world.model.plans(plan());
    let other = world.github.open_issue("Look elsewhere").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(other.labels(), ["coding agent waiting"], "{}", world.story());
    let ended = world.command(&["forget", "github:acme/widgets#99"]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");

    world
        .model
        .calls(COMMAND, json!({ "command": "cat more.txt && echo found > found.txt" }))
        .done("Found.");
    issue.comment("alice", "/agent approve");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());

    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file("found.txt").as_deref(), Some("found\n"));
    assert_eq!(pull.file("more.txt").as_deref(), Some("more\n"));
    world.finish().await;
}

#[tokio::test]
async fn old_runs_go_and_those_with_an_open_request_stay() {
    let world = World::start().await;
    for word in [WORD, "woozle"] {
        works(&world, word);
        issue(&world, word);
        assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    }
    let pulls = world.github.pulls();
    pulls[0].close();
    let mut store = world.sqlite().await;
    for statement in [
        "UPDATE runs SET finished_at = finished_at - 100 * 86400000000",
        "UPDATE followed SET active_at = active_at - 100 * 86400000000",
        "DELETE FROM remembered WHERE name = 'retention was kept'",
    ] {
        store.execute(statement).await.unwrap();
    }
    drop(store);

    assert_eq!(world.run().await.code, Some(0), "{}", world.story());

    assert_eq!(tasks(&world).await, ["github:acme/widgets#3"], "{}", world.story());
    assert!(!world.files_with(WORD).contains("coding-agent.db"));
    assert!(!world.files_with(WORD).contains("outputs"));
    assert!(world.files_with("woozle").contains("coding-agent.db"));
    world.finish().await;
}

#[tokio::test]
async fn a_conversation_goes_before_its_run_and_a_mirror_when_nobody_uses_it() {
    let world = World::start().await;
    works(&world, WORD);
    issue(&world, WORD);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    world.github.pulls()[0].close();
    let mut store = world.sqlite().await;
    for statement in [
        "UPDATE runs SET finished_at = finished_at - 40 * 86400000000",
        "UPDATE followed SET active_at = active_at - 40 * 86400000000",
        "DELETE FROM remembered WHERE name = 'retention was kept'",
    ] {
        store.execute(statement).await.unwrap();
    }
    let mirrors = world.state_dir().join("mirrors");
    let host = std::fs::read_dir(&mirrors).unwrap().next().unwrap().unwrap().path();
    ages(&host.join("acme/widgets.git.lock"), 61);
    // Copies of folders that somebody searched are kept for as long.
    let mut copies = Vec::new();
    for name in ["old", "new"] {
        let folder = world.folder().join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a.py"), "def one():\n    pass\n").unwrap();
        let searched = world
            .command(&["search", "one", "--root", folder.to_str().unwrap()])
            .await;
        assert_eq!(searched.code, Some(0), "{searched:?}");
        let all = std::fs::read_dir(mirrors.join("local")).unwrap().flatten();
        let new = all
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|end| end == "git") && !copies.contains(path));
        copies.extend(new);
    }
    ages(&copies[0].with_added_extension("lock"), 61);
    tidies_again(&world);

    assert_eq!(world.run().await.code, Some(0), "{}", world.story());

    assert!(!copies[0].exists() && copies[1].exists(), "{copies:?}");
    assert_eq!(tasks(&world).await, ["github:acme/widgets#1"]);
    let messages = store.fetch_one("SELECT COUNT(*) FROM messages").await.unwrap();
    assert_eq!(messages.get::<i64, _>(0), 0);
    assert!(!host.join("acme/widgets.git").exists());
    drop(store);
    works(&world, WORD);
    world.github.open_issue("Look again").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert!(host.join("acme/widgets.git").exists(), "it is made again");
    world.finish().await;
}

#[tokio::test]
async fn what_cannot_be_removed_of_one_run_keeps_nothing_else() {
    let world = World::start().await;
    for word in [WORD, "woozle"] {
        works(&world, word);
        issue(&world, word);
        assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    }
    for pull in world.github.pulls() {
        pull.close();
    }
    let mut store = world.sqlite().await;
    for statement in [
        "UPDATE runs SET finished_at = finished_at - 100 * 86400000000",
        "UPDATE followed SET active_at = active_at - 100 * 86400000000",
        "UPDATE facts SET at = 1 WHERE run IS NULL",
        "INSERT INTO chat_sessions (id, document, active_at) VALUES ('old', '{}', 1)",
        "DELETE FROM remembered WHERE name = 'retention was kept'",
    ] {
        store.execute(statement).await.unwrap();
    }
    let rows = store.fetch_all("SELECT id FROM runs ORDER BY id").await.unwrap();
    let outputs: Vec<_> = rows
        .iter()
        .map(|row| world.folder().join("logs/outputs").join(row.get::<String, _>(0)))
        .collect();
    // A file where the folder was is removed by nobody.
    std::fs::remove_dir_all(&outputs[0]).unwrap();
    std::fs::write(&outputs[0], "").unwrap();
    assert!(outputs[1].is_dir());

    assert_eq!(world.run().await.code, Some(0), "{}", world.story());

    assert!(outputs[0].is_file() && !outputs[1].exists(), "{}", world.story());
    assert_eq!(tasks(&world).await, [""; 0], "{}", world.story());
    let left = "SELECT (SELECT COUNT(*) FROM facts WHERE at = 1) + (SELECT COUNT(*) FROM chat_sessions)";
    let left = store.fetch_one(left).await.unwrap();
    assert_eq!(left.get::<i64, _>(0), 0, "{}", world.story());
    drop(store);
    world.finish().await;
}

#[tokio::test]
async fn each_machine_deletes_what_is_old_on_its_own_disk() {
    let database = Database::start();
    let (mut world, address) = world_on(&database).await;
    works(&world, WORD);
    issue(&world, WORD);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    world.github.pulls()[0].close();
    let run = Database::ask(&address, "SELECT id FROM runs");
    let outputs = world.folder().join("logs/outputs").join(&run);
    let host = std::fs::read_dir(world.state_dir().join("mirrors"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for statement in [
        "UPDATE runs SET finished_at = finished_at - 100 * 86400000000",
        "UPDATE followed SET active_at = active_at - 100 * 86400000000",
        "DELETE FROM remembered WHERE name = 'retention was kept'",
    ] {
        Database::ask(&address, statement);
    }

    // Another machine deletes the rows.
    world.moves_to("second");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(Database::ask(&address, "SELECT COUNT(*) FROM runs"), "0");
    assert!(outputs.exists() && host.join("acme/widgets.git").exists());

    world.comes_back();
    // The age of the logs is another matter.
    world.configure(|config| config["logs"]["retention_days"] = json!(365));
    ages(&outputs, 100);
    ages(&host.join("acme/widgets.git.lock"), 61);
    tidies_again(&world);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());

    assert!(!outputs.exists(), "{}", world.story());
    assert!(!host.join("acme/widgets.git").exists(), "{}", world.story());
    world.finish().await;
}

/// Lays a mirror without a `HEAD` and one that was never finished where they are looked at first.
fn break_mirrors(world: &World) -> Vec<std::path::PathBuf> {
    let host = world.state_dir().join("mirrors/a.example/acme");
    let places = ["broken.git", "half.git"].map(|name| host.join(name));
    std::fs::create_dir_all(places[0].join("info")).unwrap();
    std::fs::create_dir_all(&places[1]).unwrap();
    std::fs::write(places[0].join("info/attributes"), "").unwrap();
    places.into()
}

#[tokio::test]
async fn a_broken_mirror_stops_neither_forgetting_nor_tidying() {
    let world = World::start().await;
    works(&world, WORD);
    issue(&world, WORD);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let broken = break_mirrors(&world);
    let mirrors = world.state_dir().join("mirrors");
    let own = std::fs::read_dir(&mirrors)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("acme/widgets.git"))
        .find(|path| path.exists())
        .unwrap();

    let ended = world.command(&["forget", "github:acme/widgets#1"]).await;

    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let said = "; 1 mirror is broken and was left as it is: the log names it, and it is made anew at its next use";
    assert!(ended.stdout.contains(said), "{ended:?}");
    assert_eq!(world.files_with(WORD), "", "{ended:?}");

    let mut store = world.sqlite().await;
    store
        .execute("DELETE FROM remembered WHERE name = 'retention was kept'")
        .await
        .unwrap();
    drop(store);
    ages(&own.with_added_extension("lock"), 61);
    tidies_again(&world);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert!(!own.exists(), "{}", world.story());
    assert!(broken.iter().all(|path| path.exists()));
    world.finish().await;
}
