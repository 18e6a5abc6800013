//! Who else on the machine can read what the program writes: nobody, but for what it writes into a
//! folder of the user's.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use serde_json::json;
use tokio::process::Command;

use crate::fake::model::Plan;
use crate::world::{Program, World};

/// Gives this process, and so the program, the mask that most systems begin with.
fn with_the_usual_mask() {
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o777
}

/// Returns what is below the folders and open to others.
fn open_to_others(folders: &[PathBuf]) -> Vec<String> {
    let mut waiting = folders.to_vec();
    let mut open = Vec::new();
    while let Some(path) = waiting.pop() {
        let found = path.symlink_metadata().unwrap();
        if !found.is_symlink() && found.mode() & 0o077 != 0 {
            open.push(format!("{} {:o}", path.display(), found.mode() & 0o777));
        }
        if found.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    open
}

fn writes_a_lot(world: &World) {
    let command = json!({ "command": "seq 100000; echo Hello >> README.md" });
    world
        .model
        .plans(Plan::of(&["greet"]).in_environment("python"))
        .calls("workspace/execute_command", command)
        .done("Greeted.");
}

#[tokio::test]
async fn state_and_logs_are_closed_to_others_whatever_the_mask_and_what_was_open_is_closed_once() {
    with_the_usual_mask();
    let world = World::start().await;
    let (state, logs) = (world.state_dir(), world.folder().join("logs"));
    // As an older version left them, and beside it something that is not the program's.
    std::fs::create_dir_all(state.join("mirrors/old.git/objects")).unwrap();
    std::fs::write(state.join("mirrors/old.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(logs.join("journal-2020-01-01.jsonl"), "").unwrap();
    std::fs::write(logs.join("others.txt"), "").unwrap();
    writes_a_lot(&world);
    world.github.open_issue("Greet").label("coding agent");

    let first = world.run().await;
    let second = world.run().await;

    assert_eq!(
        first.stdout,
        "github:acme/widgets#1: done\n",
        "{first:?}\n{}",
        world.story()
    );
    for folder in ["state", "logs"] {
        let said = format!(
            "in {} could be read by other users",
            world.folder().join(folder).display()
        );
        assert!(first.stderr.contains(&said), "{}", first.stderr);
    }
    assert!(!second.stderr.contains("other users"), "{}", second.stderr);
    assert_eq!(mode(&logs.join("others.txt")), 0o644, "it is somebody else's");
    std::fs::remove_file(logs.join("others.txt")).unwrap();
    std::fs::set_permissions(&logs, Permissions::from_mode(0o700)).unwrap();
    assert!(logs.join("outputs").is_dir(), "{}", world.story());
    assert_eq!(open_to_others(&[state, logs]), [""; 0]);
    world.finish().await;
}

#[tokio::test]
async fn what_a_local_task_writes_into_the_users_folder_has_the_modes_of_the_users_files() {
    with_the_usual_mask();
    let world = World::start().await;
    let folder = world.folder().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "one\n").unwrap();
    let command =
        "echo two > a.txt; mkdir -p bin; printf '#!/bin/sh\\n' > bin/go.sh; chmod +x bin/go.sh; echo x > bin/x";
    world
        .model
        .plans(Plan::of(&["tidy"]))
        .calls("workspace/execute_command", json!({ "command": command }))
        .done("Tidy.");

    let ended = world
        .command(&["run", "--task", "Tidy", "--root", folder.to_str().unwrap()])
        .await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let modes = ["a.txt", "bin", "bin/go.sh", "bin/x"].map(|name| mode(&folder.join(name)));
    assert_eq!(modes.map(|mode| format!("{mode:o}")), ["644", "755", "755", "644"]);
    assert_eq!(open_to_others(&[world.state_dir()]), [""; 0]);
    world.finish().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_looked_at_is_not_passed_over() {
    let world = World::start().await;
    let closed = world.folder().join("closed");
    std::fs::create_dir(&closed).unwrap();
    let config = world.writes_its_configuration();
    std::fs::copy(config, closed.join("config.yaml")).unwrap();
    // Root enters every folder unless these capabilities are taken from it.
    let kept_out = if rustix::process::geteuid().is_root() {
        "setpriv --bounding-set=-dac_override,-dac_read_search"
    } else {
        ""
    };
    let line = format!("chmod 0 . && exec {kept_out} \"$0\" status");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line, env!("CARGO_BIN_EXE_coding-agent")]);
    let mut shell = world.prepared(shell);
    shell.current_dir(&closed);

    let ended = Program::start(shell).ended().await;

    std::fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(78), ""), "{ended:?}");
    insta::assert_snapshot!(ended.stderr, @"coding-agent: config.yaml: is in a folder that this user may not enter; call the program in another one, or name a file with --config");
    world.finish().await;
}

/// A user that no machine has.
const SOMEBODY: u32 = 4711;

#[tokio::test]
async fn root_leaves_the_installation_of_another_user_alone() {
    let world = World::start().await;
    if !rustix::process::geteuid().is_root() {
        // Others cannot come into this: the folders are closed to them.
        assert_eq!(world.command(&["status"]).await.code, Some(0));
        return world.finish().await;
    }
    let refused = async |line: &[&str]| {
        let ended = world.command(line).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(78), ""), "{ended:?}");
        world.settled(&ended.stderr)
    };
    let (state, logs) = (world.state_dir(), world.folder().join("logs"));
    chown(world.folder(), Some(SOMEBODY), None).unwrap();
    for line in [
        &["status"][..],
        &["doctor"],
        &["run"],
        &["run", "--task", "Greet"],
        &["stop", "github:acme/widgets#1"],
        &["pause", "--all"],
        &["auto-approve", "off"],
        &["forget", "github:acme/widgets#1"],
        &["stats"],
    ] {
        let said = refused(line).await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(said, @"coding-agent: FOLDER, below which FOLDER/state would be made, belongs to '#4711', who could not use what root writes there: run `sudo -u '#4711' coding-agent --config FOLDER/config.yaml ...`, make it root's (chown), or name folders of root's in state_dir and logs.directory");
        }
    }
    // The file of the current folder is named so that it is found from another one, too.
    let mut program = world.program();
    program.arg("status");
    let here = Program::start(program).ended().await;
    assert_eq!(here.code, Some(78), "{here:?}");
    let said = world.settled(&here.stderr);
    assert!(
        said.contains("FOLDER/state would be made") && said.contains("--config FOLDER/config.yaml ..."),
        "{said}"
    );
    assert!(!state.exists() && !logs.exists());

    // Root's own installation in somebody's folder.
    std::fs::create_dir(&state).unwrap();
    std::fs::create_dir(&logs).unwrap();
    assert_eq!(world.command(&["status"]).await.code, Some(0));
    chown(&logs, Some(SOMEBODY), None).unwrap();
    let store = state.join("coding-agent.db");
    let mut owned = "FOLDER/logs";
    if store.exists() {
        assert_eq!(world.command(&["status"]).await.code, Some(0));
        chown(&store, Some(SOMEBODY), None).unwrap();
        owned = "FOLDER/state/coding-agent.db";
    }
    let said = refused(&["status"]).await;
    let begins = format!("coding-agent: {owned} belongs to '#4711', who");
    assert!(said.starts_with(&begins), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn files_with_secrets_that_others_can_read_are_named_with_the_mend() {
    with_the_usual_mask();
    let mut world = World::start().await;
    let token = world.folder().join("token");
    std::fs::write(&token, world.github.token()).unwrap();
    std::fs::write(world.folder().join(".env"), "GITHUB_TOKEN=x\n").unwrap();
    world.configure(|config| {
        config["github"]["token"] = json!(null);
        config["github"]["token_file"] = json!("token");
        config["gitlab"]["token"] = json!("${GITLAB_TOKEN:-}");
    });
    let doubts = async || {
        let checked = world.command(&["config", "check"]).await;
        let own = |line: &&str| line.contains("other users of this machine can read it");
        let doubts: Vec<String> = checked.stdout.lines().filter(own).map(str::to_owned).collect();
        world.settled(&doubts.join("\n"))
    };

    // The world closes its own configuration, in which the key of the model stands.
    insta::assert_snapshot!(doubts().await, @r"
    doubtful: FOLDER/token: holds a secret, and other users of this machine can read it; chmod 600 FOLDER/token
    doubtful: FOLDER/.env: holds a secret, and other users of this machine can read it; chmod 600 FOLDER/.env
    ");
    let examined = world.command(&["doctor"]).await;
    let shown = world.settled(&examined.stdout);
    assert!(shown.contains("chmod 600 FOLDER/token"), "{shown}");
    for file in ["token", ".env"] {
        std::fs::set_permissions(world.folder().join(file), Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(doubts().await, "");
    world.finish().await;
}

/// An MCP server that writes a file, as a person's editor would.
const WRITER: &str = r#"
import json, os, sys
def say(number, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + "\n")
    sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    method, number = request.get("method"), request.get("id")
    if method == "initialize":
        say(number, {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "writer", "version": "1"}})
    elif method == "tools/list":
        say(number, {"tools": [{"name": "write", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        open(os.environ["PLACE"], "w").write("x")
        say(number, {"content": [{"type": "text", "text": "written"}]})
"#;

#[tokio::test]
async fn what_a_tool_server_writes_has_the_modes_of_the_users_files() {
    with_the_usual_mask();
    let mut world = World::start().await;
    let place = world.folder().join("written.txt");
    world.configure(|config| {
        config["mcp_servers"] = json!([{
            "mcp_server_name": "writer",
            "command": ["python3", "-c", WRITER],
            "env": { "PLACE": place },
        }]);
    });
    world
        .model
        .plans(Plan::of(&["greet"]).in_environment("python"))
        .calls("writer/write", json!({}))
        .calls(
            "workspace/execute_command",
            json!({ "command": "echo Hello >> README.md" }),
        )
        .done("Greeted.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(format!("{:o}", mode(&place)), "644");
    world.finish().await;
}
