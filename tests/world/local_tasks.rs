//! `run --task`: a folder of this machine goes in, a difference comes out.

mod folder;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::fake::model::Plan;
use crate::world::{Ended, Program, World};
use folder::{apply, contents, copy, git, is_executable, picture, write};

/// Makes the folder `project` and returns it.
fn project(world: &World, files: &[(&str, &str)]) -> PathBuf {
    let folder = world.folder().join("project");
    std::fs::create_dir(&folder).unwrap();
    for (name, content) in files {
        write(&folder, name, content);
    }
    folder
}

fn task<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", "--task", "Tidy the folder", "--root", folder.to_str().unwrap()];
    arguments.extend(more);
    arguments
}

fn command(line: &str) -> serde_json::Value {
    json!({ "command": line })
}

/// The report at the end, with what differs from run to run left out.
fn report(ended: &Ended, folder: &Path) -> String {
    let start = ended.stderr.rfind("coding-agent: ").unwrap();
    let report = ended.stderr[start..].replace(folder.to_str().unwrap(), "FOLDER");
    report
        .lines()
        .map(|line| match line.split_once(" model turns") {
            Some((turns, _)) => format!("{turns} model turns ...\n"),
            None => format!("{line}\n"),
        })
        .collect()
}

/// Nothing of a local task is left in the state folder.
fn assert_no_copy_is_left(world: &World) {
    let left: Vec<_> = std::fs::read_dir(world.state_dir().join("mirrors/local"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_plain_folder_is_changed_as_the_difference_says() {
    let world = World::start().await;
    let folder = project(
        &world,
        &[
            ("notes.txt", "one\ntwo\n \n"),
            ("gone.txt", "gone\n"),
            ("same.txt", "same\n"),
        ],
    );
    write(&folder, "data.bin", [0, 1, 2, 255]);
    let before = world.folder().join("before");
    copy(&folder, &before);
    world
        .model
        .plans(Plan::of(&["tidy"]).verified_by("grep -q three notes.txt"))
        .calls(
            "workspace/execute_command",
            command(
                "printf 'one\\nthree\\n \\n' > notes.txt; rm gone.txt; printf '\\000\\007' > data.bin; mkdir -p bin; \
                 printf '#!/bin/sh\\n' > bin/go.sh; chmod +x bin/go.sh; ln -s ../data.bin bin/link",
            ),
        )
        .because("Tidying.")
        .done("The folder is tidy.");

    let ended = world.command(&task(&folder, &[])).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(
        std::fs::read_to_string(folder.join("notes.txt")).unwrap(),
        "one\nthree\n \n"
    );
    assert_eq!(std::fs::read(folder.join("data.bin")).unwrap(), [0, 7]);
    assert_eq!(folder.join("bin/link").read_link().unwrap(), Path::new("../data.bin"));
    assert!(is_executable(&folder.join("bin/go.sh")) && !folder.join("gone.txt").exists());
    apply(&before, &ended.stdout);
    assert_eq!(contents(&before), contents(&folder));
    insta::assert_snapshot!(report(&ended, &folder), @"
    coding-agent: Done: 5 files changed in FOLDER:
      created  bin/go.sh
      created  bin/link
      changed  data.bin
      deleted  gone.txt
      changed  notes.txt

    The folder is tidy.

    Check `grep -q three notes.txt` passed.
    Note: The plan selected no environment; the default `python` is used.
    3 model turns ...
    ");
    assert!(ended.stderr.contains("coding-agent: Tidying.\n"), "{}", ended.stderr);
    assert_no_copy_is_left(&world);
    world.finish().await;
}

#[tokio::test]
async fn a_dry_run_shows_a_patch_and_leaves_a_repository_byte_identical() {
    let world = World::start().await;
    let folder = project(&world, &[("a.txt", "committed\n"), (".gitignore", ".env\n")]);
    git(&folder, &["init", "-q"]);
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "Begin the story"]);
    write(&folder, "a.txt", "uncommitted\n");
    write(&folder, ".env", "a private matter\n");
    let before = picture(&folder);
    world
        .model
        .plans(Plan::of(&["go on"]))
        .calls(
            "workspace/execute_command",
            command("git log --oneline; cat a.txt; ls -A"),
        )
        .calls(
            "workspace/execute_command",
            command("git log -1 --format=%an; echo more >> a.txt"),
        )
        .done("Went on.");

    let ended = world.command(&task(&folder, &["--dry-run"])).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert!(picture(&folder) == before, "the folder is not as it was");
    let seen = world.model.requests()[2].last_user_message();
    assert!(
        seen.contains("Begin the story") && seen.contains("uncommitted"),
        "{seen}"
    );
    assert!(!seen.contains(".env"), "{seen}");
    insta::assert_snapshot!(report(&ended, &folder), @"
    coding-agent: Done, unchecked: 1 file would change; FOLDER is as it was.
      changed  a.txt

    Went on.

    No check was run.
    Note: The plan selected no environment; the default `python` is used.
    4 model turns ...
    ");
    apply(&folder, &ended.stdout);
    assert_eq!(
        std::fs::read_to_string(folder.join("a.txt")).unwrap(),
        "uncommitted\nmore\n"
    );
    assert_no_copy_is_left(&world);
    world.finish().await;
}

#[tokio::test]
async fn of_a_part_of_a_repository_only_that_part_goes_in_and_nothing_that_is_ignored() {
    let world = World::start().await;
    let outer = project(
        &world,
        &[
            (".gitignore", ".env\n"),
            ("outside.txt", "outside\n"),
            ("part/a.txt", "a\n"),
        ],
    );
    git(&outer, &["init", "-q"]);
    git(&outer, &["add", "."]);
    git(&outer, &["commit", "-q", "-m", "Begin"]);
    write(&outer, "part/.env", "a private matter\n");
    let part = outer.join("part");
    world
        .model
        .plans(Plan::of(&["look"]))
        .calls(
            "workspace/execute_command",
            command("find . -type f -not -path './.git/*'; echo b > b.txt"),
        )
        .done("Looked.");

    let ended = world.command(&task(&part, &[])).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let seen = world.model.requests()[2].last_user_message();
    assert!(
        seen.contains("./a.txt") && !seen.contains(".env") && !seen.contains("outside"),
        "{seen}"
    );
    assert_eq!(std::fs::read_to_string(part.join("b.txt")).unwrap(), "b\n");
    world.finish().await;
}

#[tokio::test]
async fn a_folder_that_changed_meanwhile_is_left_alone_and_the_patch_is_kept() {
    let world = World::start().await;
    let folder = project(&world, &[("a.txt", "a\n"), ("b.txt", "b\n")]);
    world
        .model
        .plans(Plan::of(&["change both"]))
        .calls("workspace/execute_command", command("echo A > a.txt; echo B > b.txt"))
        .done("Changed both.")
        .holds();
    let program = world.spawn(&task(&folder, &[]));
    world.model.until_held(1).await;
    write(&folder, "b.txt", "somebody else's\n");
    let before = picture(&folder);
    world.model.release();

    let ended = program.ended().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert!(picture(&folder) == before, "the folder is not as it was");
    let kept: Vec<PathBuf> = std::fs::read_dir(world.state_dir().join("mirrors/local"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), ended.stdout);
    let report = report(&ended, &folder);
    assert!(report.contains(kept[0].to_str().unwrap()), "{report}");
    assert!(report.contains("nothing in the folder was changed"), "{report}");
    world.finish().await;
}

#[tokio::test]
async fn what_cannot_be_worked_on_is_refused_before_anything_is_touched() {
    let mut world = World::start().await;
    let folder = project(&world, &[("a.txt", "a\n")]);
    let missing = world.folder().join("missing");
    for (arguments, words) in [
        (task(&folder, &["--environment", "cobol"]), "there are: python"),
        (task(&missing, &[]), "name a folder with --root"),
        (task(&folder.join("a.txt"), &[]), "is not a folder"),
        (
            vec!["run", "--task", " ", "--root", folder.to_str().unwrap()],
            "the task is empty",
        ),
        (
            vec!["run", "--task", "-", "--root", folder.to_str().unwrap()],
            "the task is empty",
        ),
    ] {
        let ended = world.command(&arguments).await;
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(ended.stderr.contains(words) && ended.stdout.is_empty(), "{ended:?}");
    }
    world.configure(|config| config["state_dir"] = json!("project/state"));
    let ended = world.command(&task(&folder, &[])).await;
    assert_eq!(ended.code, Some(78), "{ended:?}");
    assert!(
        ended.stderr.contains("inside the folder that is worked on"),
        "{ended:?}"
    );
    assert!(!folder.join("state").exists() && !world.state_dir().exists());
    world.finish().await;
}

#[tokio::test]
async fn a_task_from_stdin_needs_no_configuration_and_believes_none_in_the_folder() {
    let world = World::start().await;
    let folder = project(&world, &[("a.txt", "a\n")]);
    let evil = json!({ "mcp_servers": [{ "mcp_server_name": "evil", "command": ["touch", "/tmp/it-ran"] }] });
    write(&folder, "config.yaml", evil.to_string());
    world
        .model
        .for_task("Greet from stdin")
        .plans(Plan::of(&["greet"]))
        .calls(
            "workspace/write_file",
            json!({"path": "hello.txt", "content": "Hello\n", "mode": "create"}),
        )
        .done("Greeted.");
    let mut command = world.program();
    command
        .args(["run", "--task", "-"])
        .env("OPENAI_BASE_URL", world.model.openai_address())
        .env("OPENAI_API_KEY", "sk-model-key-0123456789")
        .env("OPENAI_MODEL", "scripted")
        .current_dir(&folder)
        .stdin(Stdio::piped());
    let mut program = Program::start(command);
    let mut stdin = program.stdin();
    stdin.write_all(b"Greet from stdin\n").await.unwrap();
    drop(stdin);

    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.model.dump());
    assert_eq!(std::fs::read_to_string(folder.join("hello.txt")).unwrap(), "Hello\n");
    let state = world.folder().join(".local/state/coding-agent/state");
    assert!(state.is_dir());
    assert_eq!(World::containers_of(&state).await, [""; 0]);
    world.finish().await;
}

#[tokio::test]
async fn no_change_is_a_good_end_and_said() {
    let world = World::start().await;
    let folder = project(&world, &[("a.txt", "a\n")]);
    let before = picture(&folder);
    world
        .model
        .plans(Plan::of(&["look"]).verified_by("true"))
        .done("All is well as it is.")
        .done("It is not needed: the files say so.");

    let ended = world.command(&task(&folder, &["--environment", "python"])).await;

    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(picture(&folder) == before, "the folder is not as it was");
    insta::assert_snapshot!(report(&ended, &folder), @"
    coding-agent: Nothing was changed in FOLDER.

    The model says: All is well as it is.

    It is not needed: the files say so.

    Check `true` passed.
    3 model turns ...
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_result_that_does_not_pass_is_applied_and_said_and_no_success() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"verification": {"max_rounds": 0}}));
    let folder = project(&world, &[]);
    world
        .model
        .plans(Plan::of(&["greet"]).verified_by("grep -q Hello hello.txt"))
        .calls("workspace/execute_command", command("echo Bye > hello.txt"))
        .done("Greeted.");

    let ended = world.command(&task(&folder, &[])).await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(std::fs::read_to_string(folder.join("hello.txt")).unwrap(), "Bye\n");
    insta::assert_snapshot!(report(&ended, &folder), @"
    coding-agent: 1 file changed in FOLDER, but the checks do not pass:
      created  hello.txt

    Greeted.

    Check `grep -q Hello hello.txt` ended with 1 instead of 0.
    Note: The plan selected no environment; the default `python` is used.
    3 model turns ...
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_dry_run_whose_checks_fail_is_not_called_done() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"verification": {"max_rounds": 0}}));
    let folder = project(&world, &[]);
    world
        .model
        .plans(Plan::of(&["greet"]).verified_by("grep -q Hello hello.txt"))
        .calls("workspace/execute_command", command("echo Bye > hello.txt"))
        .done("Greeted.");

    let ended = world.command(&task(&folder, &["--dry-run"])).await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert!(!folder.join("hello.txt").exists());
    insta::assert_snapshot!(report(&ended, &folder), @"
    coding-agent: 1 file would change, but the checks do not pass; FOLDER is as it was.
      created  hello.txt

    Greeted.

    Check `grep -q Hello hello.txt` ended with 1 instead of 0.
    Note: The plan selected no environment; the default `python` is used.
    3 model turns ...
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_failure_after_real_work_shows_and_keeps_what_was_done() {
    let mut world = World::start().await;
    world.configure(|config| config["max_llm_process_num"] = json!(2));
    let folder = project(&world, &[("a.txt", "a\n")]);
    let before = picture(&folder);
    world
        .model
        .plans(Plan::of(&["work for ever"]))
        .calls("workspace/execute_command", command("echo half > a.txt"));

    let ended = world.command(&task(&folder, &[])).await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert!(picture(&folder) == before, "the folder is not as it was");
    assert!(ended.stdout.contains("+half"), "{ended:?}");
    assert!(
        ended.stderr.contains("max_llm_process_num") && ended.stderr.contains("are kept in"),
        "{ended:?}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_result_that_breaks_a_rule_is_refused_with_2() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({"max_file_bytes": 1000}));
    let folder = project(&world, &[("a.txt", "a\n")]);
    let before = picture(&folder);
    world
        .model
        .plans(Plan::of(&["swell"]))
        .calls(
            "workspace/execute_command",
            command("head -c 5000 /dev/zero > large.bin"),
        )
        .done("Swollen.")
        .done("Swollen, I say.")
        .done("Swollen, and that is that.");

    let ended = world.command(&task(&folder, &[])).await;

    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("large.bin"), "{ended:?}");
    assert!(picture(&folder) == before, "the folder is not as it was");
    world.finish().await;
}

#[tokio::test]
async fn replies_that_stay_unreadable_end_with_3() {
    let world = World::start().await;
    let folder = project(&world, &[("a.txt", "a\n")]);
    for _ in 0..6 {
        world.model.says("I would rather not.");
    }

    let ended = world.command(&task(&folder, &[])).await;

    assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), ""), "{ended:?}");
    assert!(ended.stderr.contains("could not be read"), "{ended:?}");
    world.finish().await;
}

#[tokio::test]
async fn ctrl_c_ends_it_at_once_and_leaves_nothing_behind() {
    let world = World::start().await;
    let folder = project(&world, &[("a.txt", "a\n")]);
    let before = picture(&folder);
    world
        .model
        .plans(Plan::of(&["wait"]))
        .calls("workspace/execute_command", command("echo A > a.txt; sleep 50"));
    let program = world.spawn(&task(&folder, &[]));
    let replies = || {
        world
            .journal()
            .iter()
            .filter(|entry| entry["fact"] == "model_called")
            .count()
    };
    world.until("the model's second reply", || replies() == 2).await;
    let asked = Instant::now();
    program.signal("INT");

    let ended = program.ended().await;

    assert!(asked.elapsed() < Duration::from_secs(45), "{:?}", asked.elapsed());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(130), ""), "{ended:?}");
    assert!(picture(&folder) == before, "the folder is not as it was");
    insta::assert_snapshot!(report(&ended, &folder), @"
    coding-agent: Stopped; FOLDER is as it was.
    Note: The plan selected no environment; the default `python` is used.
    2 model turns ...
    ");
    assert_no_copy_is_left(&world);
    world.finish().await;
}

#[tokio::test]
async fn what_a_killed_task_leaves_is_swept_by_the_next_start() {
    let world = World::start().await;
    let folder = project(&world, &[("a.txt", "a\n")]);
    let before = picture(&folder);
    world.model.plans(Plan::of(&["wait"])).done("Never read.").holds();
    let program = world.spawn(&task(&folder, &[]));
    world.model.until_held(1).await;
    program.kill().await;
    assert_eq!(world.containers().await.len(), 1);
    world.model.release();

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert!(picture(&folder) == before, "the folder is not as it was");
    assert_no_copy_is_left(&world);
    world.finish().await;
}
