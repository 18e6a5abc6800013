//! The program's records of itself: files only, no secrets, and what `logs` and `status` make of
//! them.

use std::process::Stdio;

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::scripts::COMMAND;

/// Returns a world in which one issue was worked on.
async fn after_one_run() -> World {
    let world = World::start().await;
    world
        .model
        .plans(
            Plan::of(&["greet"])
                .in_environment("python")
                .verified_by("grep -q Hello README.md"),
        )
        .calls(COMMAND, json!({ "command": "echo Hello > README.md" }))
        .done("It greets.");
    world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", world.story());
    assert_eq!(ended.stdout, "github:acme/widgets#1: done\n");
    world
}

/// The parts of a log that differ from run to run, each with its replacement.
const CHANGING: [(&str, &str); 7] = [
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "[time]"),
    (
        r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[run]",
    ),
    (r"[0-9a-f]{40,64}", "[id]"),
    (r"milliseconds: \d+", "milliseconds: [n]"),
    (r"(input|output|cached|bytes): \d+", "$1: [n]"),
    (r"127\.0\.0\.1:\d+", "[forge]"),
    (r"\d+ min ago", "[n] min ago"),
];

#[tokio::test]
async fn logs_and_status_tell_the_story_of_a_run() {
    let world = after_one_run().await;

    let logs = world.command(&["logs", "github:acme/widgets#1"]).await;
    let status = world.command(&["status"]).await;
    let unknown = world.command(&["logs", "--follow", "github:acme/widgets#2"]).await;
    let raw = world.command(&["logs", "--raw", "github:acme/widgets#1"]).await;

    insta::with_settings!({ filters => CHANGING }, {
        insta::assert_snapshot!(logs.stdout, @"
        [time]  admitted  title: Greet the reader
        [time]  claimed  state: queued
        [time]  stage changed  from: queued  to: planning
        [time]  model called  cached: [n]  input: [n]  milliseconds: [n]  model: llm  output: [n]  role: planner  turn: 1
        [time]  planned  digest: [id]  environment: python  subtasks: 1
        [time]  plan made
        [time]  stage changed  from: planning  to: preparing
        [time]  commented  marker: [run]:progress
        [time]  environment started  container: [id]  digest: sha256:[id]  environment: python  has_waited: false  image: coding-agent-executor-python:latest  is_set_up: false  milliseconds: [n]
        [time]  stage changed  from: preparing  to: working
        [time]  model called  cached: [n]  input: [n]  milliseconds: [n]  model: llm  output: [n]  role: worker  turn: 2
        [time]  tool called  about: echo Hello > README.md  bytes: [n]  is_error: false  milliseconds: [n]  tool: workspace/execute_command
        [time]  model called  cached: [n]  input: [n]  milliseconds: [n]  model: llm  output: [n]  role: worker  turn: 3
        [time]  stage changed  from: working  to: verifying
        [time]  check environment started  container: [id]  environment: python  has_waited: false  is_set_up: false  milliseconds: [n]
        [time]  tool called  about: grep -q Hello README.md  bytes: [n]  is_error: false  milliseconds: [n]  tool: workspace/execute_command
        [time]  verified  command: grep -q Hello README.md  exit_code: 0  passed: true
        [time]  environment removed  container: [id]
        [time]  stage changed  from: verifying  to: delivering
        [time]  difference made  commit: [id]  is_cut: false
        [time]  pushed  branch: coding-agent/1-greet-the-reader  commit: [id]
        [time]  change opened  number: 2  url: http://[forge]/acme/widgets/pull/2
        [time]  commented  marker: [run]:final
        [time]  label changed  added: coding agent done
        [time]  label changed  removed: coding agent processing
        [time]  stage changed  from: delivering  to: done
        [time]  environment removed  container: [id]
        [time]  put down  ending: done
        ");
        insta::assert_snapshot!(status.stdout, @r"
        no worker is active
        done        github:acme/widgets#1            Greet the reader ([n] min ago)
        ");
    });
    assert_eq!((logs.code, status.code, unknown.code), (Some(0), Some(0), Some(1)));
    assert_eq!(
        unknown.stderr,
        "coding-agent: nothing is known about github:acme/widgets#2; `coding-agent status` lists the tasks there are\n"
    );
    let of_the_task: Vec<Value> = world
        .journal()
        .into_iter()
        .filter(|entry| entry["task"] == "github:acme/widgets#1")
        .collect();
    let printed: Vec<Value> = raw
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(printed, of_the_task);
    world.finish().await;
}

#[tokio::test]
async fn the_log_file_tells_what_became_of_a_run() {
    let mut world = World::start().await;
    // Nothing listens there, so that the image cannot be pulled on any machine.
    world.configure(|config| config["command_executor"]["environments"]["python"] = json!("127.0.0.1:9/missing:1"));
    world
        .model
        .says("I would rather talk about it.")
        .plans(Plan::of(&["greet"]));
    world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    let journal = world.journal();
    let run = journal.iter().find_map(|entry| entry["run"].as_str()).unwrap();
    let about = format!(" task=github:acme/widgets#1 run={run}");
    let logs = std::fs::read_dir(world.folder().join("logs")).unwrap();
    let logs = logs.map(|file| file.unwrap().path());
    let log: String = logs
        .filter(|file| file.extension().is_some_and(|extension| extension == "log"))
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    for (level, text) in [
        ("INFO", "the run was claimed"),
        (
            "WARN",
            "the model's reply could not be read (attempt 1): The reply holds no plan",
        ),
        (
            "WARN",
            "The plan selected no environment; the default `python` is used.",
        ),
        ("ERROR", "the run failed: the image 127.0.0.1:9/missing:1 is missing: "),
        ("INFO", "the run was put down: failed"),
    ] {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(text)).collect();
        let [line] = lines.as_slice() else {
            panic!("{text}: {log}");
        };
        assert!(line.contains(level) && line.ends_with(&about), "{line}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_is_followed_is_told_to_its_end_and_nothing_twice() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["greet"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo Hello > README.md" }))
        .done("It greets.")
        .holds();
    world.github.open_issue("Greet the reader").label("coding agent");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // The run goes on, but whoever followed it has gone.
    let unheard = world.unheard(&["logs", "--follow", "github:acme/widgets#1"]).await;
    assert_eq!((unheard.code, unheard.stderr.as_str()), (Some(0), ""));
    let mut command = world.program();
    command.args([
        "--config",
        "config.yaml",
        "logs",
        "--raw",
        "--follow",
        "github:acme/widgets#1",
    ]);
    let mut following = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut told: Vec<Value> = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        told.push(serde_json::from_str(&line).unwrap());
        if told.last().unwrap()["fact"] == "tool_called" {
            world.model.release();
        }
    }
    run.ended().await;

    let mut journal = world.journal();
    journal.retain(|entry| entry["task"] == "github:acme/widgets#1");
    assert_eq!(told, journal);
    world.finish().await;
}

#[tokio::test]
async fn every_fact_of_a_run_bears_its_task_and_its_run() {
    let world = after_one_run().await;
    let journal = world.journal();

    let of_the_worker: Vec<_> = journal
        .iter()
        .filter(|entry| entry["task"].is_null() && entry["run"].is_null())
        .map(|entry| entry["fact"].as_str().unwrap())
        .collect();
    assert_eq!(of_the_worker, ["worker_started", "worker_stopped"]);
    let run = journal[1]["run"].as_str().unwrap();
    for entry in &journal[1..journal.len() - 1] {
        assert_eq!(
            (&entry["task"], &entry["run"]),
            (&json!("github:acme/widgets#1"), &json!(run)),
            "{entry}"
        );
    }
    world.finish().await;
}

#[tokio::test]
async fn files_are_one_a_day_and_those_of_yesterday_are_compressed_and_still_read() {
    let world = World::start().await;
    let logs = world.folder().join("logs");
    std::fs::create_dir_all(&logs).unwrap();
    // Two days ago is over even in the first minutes of a day.
    let earlier = (Utc::now() - TimeDelta::days(2)).date_naive();
    let fact = json!({ "at": format!("{earlier}T12:00:00.000Z"), "task": "github:acme/widgets#1", "fact": "claimed" });
    std::fs::write(logs.join(format!("journal-{earlier}.jsonl")), format!("{fact}\n")).unwrap();
    std::fs::write(logs.join(format!("coding-agent.{earlier}.log")), "an old line\n").unwrap();

    let mut service = world.spawn(&["serve"]);
    service.until_it_prints("at work").await;
    world
        .until("the old files to be compressed", || {
            ["journal-DAY.jsonl", "coding-agent.DAY.log"].iter().all(|name| {
                let file = logs.join(name.replace("DAY", &earlier.to_string()));
                !file.exists() && file.with_added_extension("gz").exists()
            })
        })
        .await;
    service.signal("TERM");
    assert_eq!(service.ended().await.code, Some(0));

    let told = world.command(&["logs", "github:acme/widgets#1"]).await;
    assert_eq!(told.stdout, format!("{earlier} 12:00:00  claimed\n"));
    let today = Utc::now().date_naive();
    let mut names: Vec<_> = std::fs::read_dir(&logs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            format!("coding-agent.{earlier}.log.gz"),
            format!("coding-agent.{today}.log"),
            format!("journal-{earlier}.jsonl.gz"),
            format!("journal-{today}.jsonl"),
        ]
    );
    world.finish().await;
}

#[tokio::test]
async fn a_secret_that_the_tools_print_goes_nowhere() {
    let world = World::start().await;
    let token = world.github.token();
    let repository = world.github.default_repository();
    repository.commit("main", "Note the token", &[("notes.txt", &format!("token: {token}\n"))]);
    let check = "cat notes.txt; exit 1";
    world
        .model
        .plans(Plan::of(&["read"]).in_environment("python").verified_by(check))
        .calls(COMMAND, json!({ "command": "cat notes.txt" }))
        .calls("workspace/read_file", json!({ "path": "notes.txt" }))
        // Too long for the conversation, so that it is kept on the disk as well; and a command that
        // fails.
        .calls(
            COMMAND,
            json!({ "command": "for n in $(seq 2000); do cat notes.txt; done" }),
        )
        .calls(COMMAND, json!({ "command": "cat notes.txt >&2; false" }))
        .calls(COMMAND, json!({ "command": "echo read > read.txt" }))
        .done("Read.")
        .done("I cannot mend it.");
    let issue = world.github.open_issue("Read the notes").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done, but not verified\n", &world);
    let seen = world.model.requests()[2].last_user_message();
    assert!(seen.contains("token: [redacted]"), "{seen}");
    let pulls = world.github.pulls();
    assert!(
        pulls[0].is_draft() && pulls[0].text().contains("token: [redacted]"),
        "{}",
        pulls[0].text()
    );
    let mut posted = vec![pulls[0].text(), ended.stderr];
    posted.extend(issue.comments().into_iter().map(|comment| comment.body));
    assert!(posted.iter().all(|text| !text.contains(token)), "{posted:?}");
    let outputs = world.folder().join("logs/outputs");
    assert!(outputs.is_dir(), "the long output is kept");
    // That nothing the model was sent and no file of the program holds it is looked at here.
    world.finish().await;
}
