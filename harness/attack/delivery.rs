//! The delivered result, as git itself sees it: could anybody check it out, and who does it say has
//! made it?

use std::process::Command;

use crate::fake::bare::Bare;
use crate::judge::git;

const AUTHOR: &str = "coding-agent <coding-agent@localhost>";

/// Returns what is wrong with the commits from `main` to `head`.
pub fn faults(repository: &Bare, head: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let path = repository.path();
    if repository.merge_base("main", head) != repository.resolve("refs/heads/main") {
        faults.push("it does not begin at main".to_owned());
    }
    let listed = git(path, &["rev-list", head, "--not", "main", "--"]);
    for commit in listed.lines() {
        let people = git(path, &["log", "-1", "--format=%an <%ae>%n%cn <%ce>", commit]);
        if people.lines().any(|person| person != AUTHOR) {
            faults.push(format!("it says that {people:?} made it"));
        }
        let message = git(path, &["log", "-1", "--format=%B", commit]);
        let trailers = message
            .to_lowercase()
            .lines()
            .filter(|line| line.replace(' ', "").starts_with("coding-agent-run:"))
            .count();
        if trailers != 1 || message.contains("00000000-0000-7000-8000") {
            faults.push(format!("it bears {trailers} trailers: {message}"));
        }
        if message
            .chars()
            .any(|sign| (sign.is_control() && !matches!(sign, '\n' | '\t')) || sign == '\u{202e}')
        {
            faults.push(format!("its message has control characters: {message:?}"));
        }
        if message.len() > 1_000_000 {
            faults.push(format!("its message has {} bytes", message.len()));
        }
        let date = git(path, &["log", "-1", "--format=%at %ct", commit]);
        if !date
            .split_whitespace()
            .all(|second| second.parse::<u64>().is_ok_and(|second| second < 4_102_444_800))
        {
            faults.push(format!("its dates are {date:?}"));
        }
        entries(path, commit, &mut faults);
    }
    // Git's own guard of checkouts, as strict as on the strangest system.
    let index = std::env::temp_dir().join(format!("coding-agent-attack-index-{}", std::process::id()));
    let read = Command::new("git")
        .arg("--git-dir")
        .arg(path)
        .args([
            "-c",
            "core.protectNTFS=true",
            "-c",
            "core.protectHFS=true",
            "read-tree",
            head,
        ])
        .env("GIT_INDEX_FILE", &index)
        .output();
    let _ = std::fs::remove_file(&index);
    if !read.is_ok_and(|output| output.status.success())
        && git(path, &["rev-parse", "main^{tree}"]) != git(path, &["rev-parse", &format!("{head}^{{tree}}")])
    {
        faults.push("git refuses to check it out".to_owned());
    }
    faults
}

/// Links that lead out, submodules and devices, among what the commit changes.
fn entries(path: &std::path::Path, commit: &str, faults: &mut Vec<String>) {
    let raw = git(
        path,
        &["diff-tree", "-r", "-z", "--no-commit-id", "-m", "--root", commit],
    );
    let mut fields = raw.split('\0');
    while let (Some(head), Some(name)) = (fields.next(), fields.next()) {
        let columns: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let (Some(mode), Some(id)) = (columns.get(1), columns.get(3)) else {
            continue;
        };
        match *mode {
            "000000" | "100644" | "100755" => {}
            "120000" => {
                let target = git(path, &["cat-file", "blob", id]);
                if target.starts_with('/')
                    || target
                        .split('/')
                        .any(|step| step == ".." || step.eq_ignore_ascii_case(".git"))
                {
                    faults.push(format!("the link {name:?} leads to {target:?}"));
                }
            }
            mode => faults.push(format!("{name:?} has the mode {mode}")),
        }
    }
}
