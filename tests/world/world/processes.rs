//! Looking for real processes on this machine.

use std::fs;
use std::time::{Duration, Instant};

use crate::world::PATIENCE;

/// An argument no other process has, e.g. for `sleep`: a number of seconds that is unique.
pub(crate) fn mark() -> String {
    let unique = uuid::Uuid::now_v7().as_u128();
    format!("1000{}.{}", unique % 1_000_000, unique % 1_000_000_007)
}

/// Returns the ids of the living processes that have `mark` among their arguments.
pub(crate) fn with_mark(mark: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let arguments = fs::read(entry.path().join("cmdline")).ok()?;
            let arguments = String::from_utf8_lossy(&arguments).into_owned();
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let is_zombie = stat.rsplit_once(')')?.1.starts_with(" Z");
            (!is_zombie && arguments.split('\0').any(|argument| argument == mark)).then_some(id)
        })
        .collect()
}

/// Waits until `count` processes have `mark`; fails after a minute.
pub(crate) async fn until(mark: &str, count: usize) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while with_mark(mark).len() != count {
        let living = with_mark(mark);
        assert!(
            Instant::now() < deadline,
            "expected {count} processes with {mark}, there are {living:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Kills the process `id` the hard way.
pub(crate) fn kill(id: u32) {
    let id = rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}

/// Waits until any process has `mark`, for as long as whole runs are waited for.
pub(crate) async fn until_some(mark: &str) {
    let deadline = Instant::now() + PATIENCE;
    while with_mark(mark).is_empty() {
        assert!(Instant::now() < deadline, "no process with {mark} came");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
