//! Signed commits: what the program pushes carries the signature of its key, by git's own
//! judgement, and the container never holds that key.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::scripts::COMMAND;

const BRANCH: &str = "coding-agent/1-paint-it";
const BOT: &str = "bot@example.com";

/// A history with a merge in it, and something that is not committed.
const WORK: &str = "git checkout -q -b side && echo red > color.txt && git add color.txt && git commit -q -m 'Paint it' && \
                    git checkout -q - && echo dry > state.txt && git add state.txt && git commit -q -m 'Dry it' && \
                    git merge -q --no-edit side && echo open > rest.txt";

/// Makes a key of this kind in the world's folder and has the program sign with it.
fn key(world: &mut World, kind: &str, address: &str) -> PathBuf {
    let file = world.folder().join("signing-key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-N", "", "-C", "", "-f"])
        .arg(&file)
        .status();
    assert!(made.unwrap().success());
    // Relative to the configuration's folder.
    world.configure(|config| config["git"] = json!({"author_email": address, "signing_key_file": "signing-key"}));
    let private = std::fs::read_to_string(&file).unwrap();
    world.model.forbids(private.lines().nth(2).unwrap());
    file
}

fn public(key: &Path) -> String {
    let line = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    line.trim().to_owned()
}

fn git(repository: &Path, arguments: &[&str]) -> String {
    let ended = Command::new("git")
        .arg("--git-dir")
        .arg(repository)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    assert!(ended.status.success(), "{arguments:?}: {text}");
    text
}

/// Returns `branch`'s own commits, oldest first, each with its subject and what git says of its
/// signature.
fn commits(world: &World, branch: &str, key: &Path) -> Vec<(String, String, String)> {
    let signers = world.folder().join("signers");
    std::fs::write(&signers, format!("{BOT} namespaces=\"git\" {}\n", public(key))).unwrap();
    assert!(
        world
            .github
            .default_repository()
            .branches()
            .contains(&branch.to_owned()),
        "{}",
        world.story()
    );
    let repository = world.github.default_repository().git();
    let setting = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    let format = "--format=%H%x09%s%x09%G? %GS %GT";
    let range = format!("main..{branch}");
    let listed = git(
        repository.path(),
        &["-c", &setting, "log", "--reverse", "--topo-order", format, &range],
    );
    let commits = listed.lines().map(|line| {
        let mut parts = line.split('\t').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        (next(), next(), next())
    });
    let commits: Vec<_> = commits.collect();
    for (commit, ..) in &commits {
        git(repository.path(), &["-c", &setting, "verify-commit", commit]);
    }
    commits
}

#[tokio::test]
async fn every_pushed_commit_is_signed_and_what_was_there_before_is_left_alone() {
    let mut world = World::start().await;
    let key = key(&mut world, "ed25519", BOT);
    let before = git(world.github.default_repository().git().path(), &["rev-parse", "main"]);
    world
        .model
        .plans(Plan::of(&["paint it"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": WORK }))
        .calls(
            COMMAND,
            json!({"command": "git config --list; env; grep -rls 'OPENSSH PRIV.TE' /workspace /tmp /root /home; git log --format=%G?"}),
        )
        .done("Painted.");
    world.github.open_issue("Paint it").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let good = format!("G {BOT} fully");
    let told: Vec<_> = commits(&world, BRANCH, &key)
        .into_iter()
        .map(|(_, subject, signature)| (subject, signature))
        .collect();
    let signed = |subject: &str| (subject.to_owned(), good.clone());
    assert_eq!(
        told,
        [
            signed("Dry it"),
            signed("Paint it"),
            signed("Merge branch 'side' into coding-agent/1-paint-it"),
            signed("Paint it"),
        ]
    );
    let repository = world.github.default_repository().git();
    assert_eq!(git(repository.path(), &["rev-parse", "main"]), before);
    let merge = git(repository.path(), &["rev-list", "--merges", "--parents", BRANCH]);
    assert_eq!(merge.split_whitespace().count(), 3, "the merge keeps its parents");
    // Inside nothing is signed, and nothing is known of a key.
    let seen = world.model.requests().last().unwrap().last_user_message();
    assert!(!seen.contains("signing") && !seen.contains("PRIVATE"), "{seen}");
    assert!(seen.contains(r"\nN\nN\nN\nN\n"), "{seen}");
    world.finish().await;
}

#[tokio::test]
async fn a_commit_that_was_pushed_before_a_pause_has_the_same_id_after_it() {
    let mut world = World::start().await;
    let key = key(&mut world, "rsa", BOT);
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    world.model.allows_restarts();
    let work = "echo red > color.txt && git add . && git commit -q -m 'Paint it' && echo wet > state.txt";
    world
        .model
        .plans(Plan::of(&["paint it"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": work }))
        .calls(COMMAND, json!({ "command": "true" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    issue.comment("alice", "/agent pause");
    let ended = run.ended().await;
    ended.prints("github:acme/widgets#1: paused\n", &world);
    let shown = commits(&world, BRANCH, &key);

    world
        .model
        .calls(
            COMMAND,
            json!({"command": "git add . && git commit -q -m 'Dry it' && git rm -q state.txt && git commit -q -m 'Wipe it'"}),
        )
        .done("It is dry.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let delivered = commits(&world, BRANCH, &key);
    let subjects = |commits: &[(String, String, String)]| -> Vec<String> {
        commits.iter().map(|(_, subject, _)| subject.clone()).collect()
    };
    assert_eq!(subjects(&shown), ["Paint it", "Work in progress"]);
    assert_eq!(subjects(&delivered), ["Paint it", "Dry it", "Wipe it"]);
    assert_eq!(
        shown[0], delivered[0],
        "the container's commit was signed twice, to the same id"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_key_that_is_changed_during_a_pause_signs_all_of_the_branch_anew() {
    let mut world = World::start().await;
    let old = key(&mut world, "ed25519", BOT);
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    world.model.allows_restarts();
    let work = "echo red > color.txt && git add . && git commit -q -m 'Paint it' && echo wet > state.txt";
    world
        .model
        .plans(Plan::of(&["paint it"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": work }))
        .calls(COMMAND, json!({ "command": "true" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    issue.comment("alice", "/agent pause");
    assert_eq!(
        run.ended().await.stdout,
        "github:acme/widgets#1: paused\n",
        "{}",
        world.story()
    );
    let shown = commits(&world, BRANCH, &old);
    std::fs::remove_file(&old).unwrap();
    std::fs::remove_file(old.with_extension("pub")).unwrap();

    let new = key(&mut world, "ed25519", BOT);
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    world
        .model
        .calls(COMMAND, json!({"command": "git add . && git commit -q -m 'Dry it'"}))
        .done("It is dry.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let delivered = commits(&world, BRANCH, &new);
    assert!(
        delivered.iter().all(|(_, _, signature)| signature.starts_with('G')),
        "{delivered:?}"
    );
    let subjects: Vec<_> = delivered.iter().map(|(_, subject, _)| subject.as_str()).collect();
    assert_eq!(subjects, ["Paint it", "Dry it"]);
    assert_ne!(
        shown[0].0, delivered[0].0,
        "the same work is another commit with another signature"
    );
    world.finish().await;
}

#[tokio::test]
async fn doctor_signs_something_and_shows_the_key_that_the_forge_needs() {
    let mut world = World::start().await;
    let file = key(&mut world, "ed25519", "coding-agent@localhost");
    let told = async |world: &World| {
        let ended = world.command(&["doctor"]).await;
        let lines: Vec<_> = ended.stdout.lines().map(str::to_owned).collect();
        let first = lines.iter().position(|line| line.contains("signing key  ")).unwrap();
        let count = if lines[first].starts_with("ok") { 1 } else { 2 };
        let text = lines[first..first + count].join("\n");
        let words: Vec<_> = text.split_whitespace().collect();
        world.settled(&words.join(" ")).replace(&public(&file), "PUBLIC-KEY")
    };

    insta::assert_snapshot!(told(&world).await, @"look signing key signs, but no account has the address coding-agent@localhost, so a forge calls the commits unverified -> set git.author_email to a verified address of the bot's account, and give that account this signing key: PUBLIC-KEY");
    world.configure(|config| config["git"]["author_email"] = json!(BOT));
    insta::assert_snapshot!(told(&world).await, @"ok signing key signs; the account of bot@example.com needs it as signing key: PUBLIC-KEY");
    // A machine with git, and without ssh-keygen.
    let programs = world.folder().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink("/usr/bin/git", programs.join("git")).unwrap();
    world.sets("PATH", programs.to_str().unwrap());
    insta::assert_snapshot!(told(&world).await, @"BAD signing key signing a commit: cannot run ssh-keygen: No such file or directory -> install OpenSSH's ssh-keygen (Debian: openssh-client), and give the program's user an entry in /etc/passwd");
    let left: Vec<_> = std::fs::read_dir(world.state_dir()).unwrap().flatten().collect();
    assert!(
        left.iter()
            .all(|entry| !entry.file_name().to_string_lossy().starts_with(".doctor")),
        "{left:?}"
    );
    world.finish().await;
}
