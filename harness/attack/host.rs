//! The worker's machine: what was written there, and what is still running.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::breach::{Breach, Rule};
use crate::site::{Site, names};

/// The time in which guards notice that their worker is gone, and end their servers.
const LAST_BREATH: Duration = Duration::from_secs(15);

/// The files and folders that the program keeps in its state folder, besides the database.
const STATE: [&str; 7] = [
    "claims",
    "mirrors",
    "workers",
    "outputs",
    "run.lock",
    "instance",
    "retention",
];

/// Looks for what commands of an attacker left, and for files where none belong.
pub fn look(site: &Site, breaches: &mut Vec<Breach>) {
    for mark in names(&site.folder().join("marks")) {
        let target = site.targets.iter().find(|target| target.attempt.name == mark);
        let what = format!("a command of the attacker's ran on the worker's machine ({mark})");
        breaches.push(Breach::of(Rule::HostRan, target, what));
    }
    let mut home = names(site.folder());
    home.retain(|name| !site.home.contains(name));
    let temporary = names(&site.folder().join("tmp"));
    let mut state = names(&site.state_dir());
    state.retain(|name| !name.starts_with("coding-agent.db") && !STATE.contains(&name.as_str()));
    for (place, found) in [("home", home), ("temporary", temporary), ("state", state)] {
        if !found.is_empty() {
            let what = format!("in the {place} folder lies {found:?}");
            breaches.push(Breach::of(Rule::HostFiles, None, what));
        }
    }
}

/// Looks for files and folders that others than the program's user may do anything with.
pub fn modes(site: &Site, breaches: &mut Vec<Breach>) {
    let mut folders = vec![site.state_dir(), site.folder().join("logs")];
    while let Some(path) = folders.pop() {
        let Ok(found) = path.symlink_metadata() else { continue };
        if !found.is_symlink() && found.mode() & 0o077 != 0 {
            let what = format!("{} has the mode {:o}", path.display(), found.mode() & 0o7777);
            breaches.push(Breach::of(Rule::Modes, None, what));
        }
        if found.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            folders.extend(entries.map(|entry| entry.path()));
        }
    }
}

/// Looks for processes and containers that outlive the program.
pub async fn leftovers(site: &Site, breaches: &mut Vec<Breach>) -> anyhow::Result<()> {
    let waiting = async {
        while !site.processes().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(LAST_BREATH, waiting).await.is_err() {
        let what = format!("processes are left: {:?}", site.processes());
        breaches.push(Breach::of(Rule::Leftover, None, what));
    }
    let containers = site.containers().await?;
    if !containers.is_empty() {
        let what = format!("containers are left: {containers:?}");
        breaches.push(Breach::of(Rule::Leftover, None, what));
    }
    Ok(())
}
