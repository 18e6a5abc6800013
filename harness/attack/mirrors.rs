//! The mirrors: each holds what its repository on the forge holds, and what the program itself put
//! there.

use std::path::{Path, PathBuf};

use crate::breach::{Breach, Rule};
use crate::judge::git;
use crate::site::{Site, Target, names};

/// Words that no mirror's configuration needs to contain.
const SUSPICIOUS: [&str; 7] = [
    "filter",
    "include",
    "alias",
    "touch",
    "hooksPath",
    "insteadOf",
    "upload-pack",
];

pub fn look(site: &Site, breaches: &mut Vec<Breach>) {
    for mirror in found(&site.state_dir().join("mirrors")) {
        let name = mirror.file_stem().unwrap_or_default();
        let Some(target) = site.targets.iter().find(|target| name == target.attempt.name) else {
            let what = format!("{} belongs to no repository", mirror.display());
            breaches.push(Breach::of(Rule::Mirror, None, what));
            continue;
        };
        references(site, target, &mirror, breaches);
        for what in surroundings(&mirror) {
            breaches.push(Breach::by(target, Rule::Mirror, what));
        }
    }
}

/// Returns the bare mirrors.
pub fn found(folder: &Path) -> Vec<PathBuf> {
    let mut mirrors = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "git") {
            mirrors.push(path);
        } else if path.is_dir() {
            mirrors.extend(found(&path));
        }
    }
    mirrors
}

fn references(site: &Site, target: &Target, mirror: &Path, breaches: &mut Vec<Breach>) {
    // A fork has a mirror of its own, below its owner's name.
    let owner = mirror.parent().and_then(Path::file_name).unwrap_or_default();
    let path = format!("{}/{}", owner.to_string_lossy(), target.attempt.name);
    let forge = site.forge.repository(&path).git();
    for line in git(mirror, &["for-each-ref", "--format=%(objectname) %(refname)"]).lines() {
        let Some((id, name)) = line.split_once(' ') else {
            continue;
        };
        let is_fine = if name.starts_with("refs/heads/") {
            // The branch may have gone on since it was fetched, by what was delivered to it.
            is_before(forge.path(), id, name) || was_there(target, name, id)
        } else {
            // What lies elsewhere on the forge may lie there here, too, unless it claims to be
            // ours.
            is_our_own(name) || (name.starts_with("refs/tags/") && git(forge.path(), &["rev-parse", name]).trim() == id)
        };
        if !is_fine {
            let what = format!("the mirror has {name} at {id}");
            breaches.push(Breach::by(target, Rule::Mirror, what));
        }
    }
}

/// Tells whether a commit is the reference's own, or one that it grew from.
fn is_before(repository: &Path, id: &str, reference: &str) -> bool {
    git(repository, &["merge-base", id, reference]).trim() == id
}

fn was_there(target: &Target, name: &str, id: &str) -> bool {
    let mut before = target.branches.iter();
    before.any(|(branch, at)| name == format!("refs/heads/{branch}") && at == id)
}

/// Tells whether a reference is one that the program makes for itself: below its own prefix and a
/// run's id.
fn is_our_own(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("refs/coding-agent/") else {
        return false;
    };
    let run = rest.split('/').next().unwrap_or_default();
    let is_run = run.len() == 36 && run.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_head = rest.starts_with("pull/") || rest.starts_with("heads/") || rest.starts_with("head/");
    (is_run && run != "00000000-0000-7000-8000-000000000000") || is_head
}

/// Returns what is wrong with a mirror besides its references.
fn surroundings(mirror: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    let config = std::fs::read_to_string(mirror.join("config")).unwrap_or_default();
    if SUSPICIOUS.iter().any(|word| config.contains(word)) {
        wrong.push(format!("the mirror's configuration says {config}"));
    }
    let hooks = names(&mirror.join("hooks"));
    if !hooks.iter().all(|name| name.ends_with(".sample")) {
        wrong.push("the mirror has hooks".to_owned());
    }
    if mirror.join("objects/info/alternates").exists() {
        wrong.push("the mirror borrows objects".to_owned());
    }
    if !names(&mirror.join("quarantine")).is_empty() {
        wrong.push("the quarantine is not empty".to_owned());
    }
    wrong
}
