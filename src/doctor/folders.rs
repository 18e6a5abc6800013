//! Examines what the program writes: the state folder, the store, and the folder of the logs.

use std::path::{Path, PathBuf};

use super::told_apart;
use crate::config::Config;
use crate::finding::Finding;
use crate::store::{self, Address, Store, StoreError, file_system};

/// Examines the folders and the store. Of the logs, and of a store in a file, only what is wrong is
/// told.
pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let state_dir = state_dir(&config.state_dir);
    let is_bad = state_dir.is_bad();
    let mut findings = vec![state_dir];
    let address = config.store();
    // One that was not made yet, or lies where nothing can be written, has nothing to tell.
    let is_readable = matches!(address, Address::Server(_)) || !is_bad;
    if is_readable && is_made(&address) {
        findings.extend(store(address).await);
    }
    if let Err(error) = config.logs.try_out() {
        findings.push(told_apart("logs", error, "let logs.directory name another folder"));
    }
    findings
}

/// Tells whether there is a store. An examination makes none.
pub(super) fn is_made(address: &Address) -> bool {
    match address {
        Address::Folder(folder) => folder.join("coding-agent.db").exists(),
        Address::Server(_) => true,
    }
}

fn state_dir(path: &Path) -> Finding {
    // The parts leave out the `.` of a configured `./state`.
    let shown: PathBuf = path.components().collect();
    let probe = path.join(".doctor");
    let written = std::fs::create_dir_all(path)
        .and_then(|()| std::fs::write(&probe, b""))
        .and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => match file_system::doubt(path) {
            None => Finding::good("state directory", shown.display()),
            Some(doubt) => {
                let (what, remedy) = doubt.split_once("; ").unwrap_or((&doubt, "look at it"));
                Finding::doubtful("state directory", format!("{}: {what}", shown.display()), remedy)
            }
        },
        Err(error) => Finding::bad(
            "state directory",
            format!("{} cannot be written to: {error}", shown.display()),
            "let state_dir name a folder this user may write to",
        ),
    }
}

/// Looks at the database that several machines share, and opens the store as a run does.
async fn store(address: Address) -> Vec<Finding> {
    const SUBJECT: &str = "store";
    let mut findings = Vec::new();
    if let Address::Server(server) = &address {
        match store::examine(server).await {
            Ok(said) => findings.push(Finding::good(SUBJECT, said)),
            Err(error) => {
                let usual = "see that the server runs and that this machine reaches it, or fix store.url";
                return vec![told_apart(SUBJECT, error, usual)];
            }
        }
    }
    match is_paused(address).await {
        Ok(false) => {}
        Ok(true) => findings.push(Finding::doubtful(
            "runs",
            "all are paused, and no new one is begun",
            "`coding-agent resume --all` lets them go on",
        )),
        Err(error) => {
            findings.retain(|finding| finding.subject != SUBJECT);
            findings.push(told_apart(SUBJECT, error, "see what the log says of it"));
        }
    }
    findings
}

async fn is_paused(address: Address) -> Result<bool, StoreError> {
    let store = Store::open(address).await?;
    store.is_paused().await
}
