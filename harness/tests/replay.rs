//! The set that ships is played to its end, and what the judge is there for is found.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use tempfile::TempDir;

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
        "3 recordings with 29 steps were played; 0 steps never came, and for 0 there is no tool",
        "16 of 16 (100.0 %) had the same exit status and 19 of 19 (100.0 %) the same output",
        "of the calls of an editor, 4 of 4 (100.0 %) did the same as the recorded one",
        "through the pull request: 3 of 3 (100.0 %)",
        "commands that the program refused: 0; differences without a reason: 0",
        "| cut | 1 | longer than the program shows a model |",
    ] {
        assert!(shown.contains(words), "{words:?} is missing:\n{shown}");
    }
}

/// A repository of three commits, with recordings that begin at the second.
struct Recorded {
    folder: TempDir,
    /// The names of the contents before and after.
    before: String,
    after: String,
}

impl Recorded {
    fn new() -> Self {
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
        std::fs::create_dir(folder.path().join("recordings")).unwrap();
        Self { folder, before, after }
    }

    /// Writes a recording whose difference leads from one content to another.
    fn record(&self, number: u32, (before, after): (&str, &str), steps: &[(&str, i32, &str)]) {
        let mut messages = vec![json!({ "role": "user", "content": "<pr_description>\nMend it\n</pr_description>" })];
        for (command, status, output) in steps {
            let result = format!("<returncode>{status}</returncode>\n<output>\n{output}</output>");
            messages.push(json!({ "role": "assistant", "content": format!("Go.\n\n```bash\n{command}\n```") }));
            messages.push(json!({ "role": "user", "content": result }));
        }
        let difference = format!(
            "diff --git a/a.txt b/a.txt\nindex {}..{} 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+mended\n",
            &before[..8],
            &after[..8]
        );
        let recording = json!({
            "instance_id": format!("acme__widgets-{number}"),
            "info": { "submission": difference },
            "messages": messages,
        });
        let path = self.folder.path().join(format!("recordings/{number}.traj.json"));
        std::fs::write(path, recording.to_string()).unwrap();
    }

    fn replay(&self, variables: &[(&str, &Path)], names: &[&str]) -> (Option<i32>, String) {
        let recordings = self.folder.path().join("recordings");
        let repositories = self.folder.path().join("repositories");
        let paths: [(&str, &Path); 2] = [("TRAJECTORIES", &recordings), ("REPOS", &repositories)];
        let output = replay(&[&paths, variables].concat(), names);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }
}

fn assert_shown(shown: &str, wanted: &[&str]) {
    for words in wanted {
        assert!(shown.contains(words), "{words:?} is missing:\n{shown}");
    }
}

#[test]
fn a_recording_of_a_real_repository_is_played_from_the_commit_it_began_at() {
    let recorded = Recorded::new();
    let steps = [
        ("git log --format=%s", 0, "second\nfirst\n"),
        ("cat /testbed/a.txt; echo /testbed", 0, "two\n/testbed\n"),
        ("cat a.txt a.txt", 0, "two\n"),
        ("echo mended > a.txt", 0, ""),
    ];
    recorded.record(7, (&recorded.before, &recorded.after), &steps);
    let (code, shown) = recorded.replay(&[], &["7.traj"]);
    // One recorded output is not what the command gives, and that is found.
    assert_eq!(code, Some(1), "{shown}");
    assert_shown(
        &shown,
        &[
            "| acme__widgets-7 | 4 | 4/4 | 3/4 | 0 | the same |",
            "differences without a reason: 1",
            "| other output, unexplained | 1 | no reason was found | `cat a.txt a.txt` |",
        ],
    );
    let only_one = replay(&[("TRAJECTORIES", recorded.folder.path())], &[]);
    let complaint = String::from_utf8(only_one.stderr).unwrap();
    assert!(complaint.contains("belong together"), "{complaint}");
}

#[test]
fn edits_by_the_shell_are_made_with_the_file_tools_where_that_is_asked_for() {
    let recorded = Recorded::new();
    let steps = [
        ("cat > a.txt <<'END'\nmended\nEND", 0, ""),
        ("cat a.txt", 0, "mended\n"),
    ];
    recorded.record(1, (&recorded.before, &recorded.after), &steps);
    let (code, shown) = recorded.replay(&[("EDITS_AS_TOOLS", Path::new("1"))], &[]);
    assert_eq!(code, Some(0), "{shown}");
    assert_shown(
        &shown,
        &[
            "| acme__widgets-1 | 2 | 1/1 | 1/1 | 0 | the same |",
            "of the calls of an editor, 1 of 1 (100.0 %) did the same as the recorded one",
        ],
    );
}

#[test]
fn another_end_and_what_was_not_played_are_faults() {
    let recorded = Recorded::new();
    let same = (recorded.before.as_str(), recorded.after.as_str());
    recorded.record(1, same, &[("echo other > a.txt", 0, "")]);
    recorded.record(2, same, &[("test -f a.txt", 0, "")]);
    recorded.record(3, (&"7".repeat(40), &recorded.after), &[("cat a.txt", 0, "two\n")]);
    // The program ends a conversation that goes round in circles for so long.
    recorded.record(4, same, &[("cat a.txt", 0, "two\n"); 60]);
    for (name, end) in [
        (
            "1.traj",
            "| acme__widgets-1 | 1 | 1/1 | 1/1 | 0 | `a.txt`: another content |",
        ),
        ("2.traj", "| acme__widgets-2 | 1 | 1/1 | 1/1 | 0 | no pull request: "),
        (
            "3.traj",
            "| acme__widgets-3 | not played: no commit of its repository has the contents",
        ),
    ] {
        let (code, shown) = recorded.replay(&[], &[name]);
        assert_eq!(code, Some(1), "{shown}");
        assert_shown(&shown, &[end]);
    }
    // Nor do recordings that nobody can play keep the others from being played and reported.
    for (name, text) in [("0", "{ broken"), ("5", "{\"messages\": []}")] {
        let path = recorded.folder.path().join(format!("recordings/{name}.traj.json"));
        std::fs::write(path, text).unwrap();
    }
    let (code, shown) = recorded.replay(&[], &["0.traj", "1.traj", "5.traj"]);
    assert_eq!(code, Some(1), "{shown}");
    assert_shown(
        &shown,
        &[
            "| 0.traj.json | not played: ",
            "| acme__widgets-1 | 1 | 1/1 | 1/1 | 0 | `a.txt`: another content |",
            "0.traj.json is no recording that can be played: ",
            "5.traj.json is no recording that can be played: it holds no command | | | | |",
            "| **all** | 1 |",
        ],
    );
    let (code, shown) = recorded.replay(&[], &["4.traj"]);
    assert_eq!(code, Some(1), "{shown}");
    assert!(!shown.contains("; 0 steps never came"), "{shown}");
}
