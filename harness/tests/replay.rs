//! The set that ships is played to its end, and what the judge is there for is found.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where something is wrong, and hands PATH and the engine's address on"
)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

/// Runs the replay with these variables and nothing else of the environment.
fn replay(variables: &[(&str, &Path)], names: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_replay"));
    command.env_clear().args(names).stdin(Stdio::null());
    for name in ["PATH", "DOCKER_HOST"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn the_set_that_ships_comes_out_as_it_was_recorded() {
    let output = replay(&[], &[]);
    let shown = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), complaints.as_str()), (Some(0), ""), "{shown}");
    for words in [
        "3 recordings with 29 steps were played; 0 steps never came",
        "16 of 16 (100.0 %) had the same exit status and 19 of 19 (100.0 %) the same output",
        "through the pull request: 3 of 3 (100.0 %)",
        "commands that the program refused: 0; differences without a reason: 0",
        "| cut | 1 | longer than the program shows a model |",
    ] {
        assert!(shown.contains(words), "{words:?} is missing:\n{shown}");
    }
}

#[test]
fn a_recording_of_a_real_repository_is_played_from_the_commit_it_began_at() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(arguments)
            .current_dir(if work.is_dir() { &work } else { folder.path() })
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet", "-b", "main", "work"]);
    for (content, message) in [("one\n", "first"), ("two\n", "second"), ("three\n", "third")] {
        std::fs::write(work.join("a.txt"), content).unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "-m", message]);
    }
    // The second of three commits is the one whose content the difference begins with.
    let before = git(&["rev-parse", "HEAD~1:a.txt"]);
    std::fs::write(work.join("b.txt"), "mended\n").unwrap();
    let after = git(&["hash-object", "b.txt"]);
    std::fs::remove_file(work.join("b.txt")).unwrap();
    git(&["clone", "--quiet", "--mirror", ".", "../repositories/widgets.git"]);
    let recordings = folder.path().join("recordings");
    std::fs::create_dir(&recordings).unwrap();
    let say = |command: &str| json!({ "role": "assistant", "content": format!("Go.\n\n```bash\n{command}\n```") });
    let gave = |status: i32, output: &str| {
        let text = format!("<returncode>{status}</returncode>\n<output>\n{output}</output>");
        json!({ "role": "user", "content": text })
    };
    let recording = json!({
        "instance_id": "acme__widgets-7",
        "info": { "submission": format!(
            "diff --git a/a.txt b/a.txt\nindex {}..{} 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+mended\n",
            &before[..8], &after[..8]
        ) },
        "messages": [
            { "role": "user", "content": "<pr_description>\nMend it\n</pr_description>" },
            say("git log --format=%s"), gave(0, "second\nfirst\n"),
            say("cat /testbed/a.txt; echo /testbed"), gave(0, "two\n/testbed\n"),
            say("cat a.txt a.txt"), gave(0, "two\n"),
            say("echo mended > a.txt"), gave(0, ""),
        ],
    });
    std::fs::write(recordings.join("x.traj.json"), recording.to_string()).unwrap();

    let paths: [(&str, &Path); 2] = [
        ("TRAJECTORIES", &recordings),
        ("REPOS", &folder.path().join("repositories")),
    ];
    let output = replay(&paths, &["x.traj"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    // One recorded output is not what the command gives, and that is found.
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for words in [
        "| acme__widgets-7 | 4 | 4/4 | 3/4 | 0 | the same |",
        "differences without a reason: 1",
        "| other output, unexplained | 1 | no reason was found | `cat a.txt a.txt` |",
    ] {
        assert!(shown.contains(words), "{words:?} is missing:\n{shown}");
    }
    let only_one = replay(&paths[..1], &[]);
    let complaint = String::from_utf8(only_one.stderr).unwrap();
    assert!(complaint.contains("belong together"), "{complaint}");
}
