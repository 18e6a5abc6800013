//! The memory of a process, as the kernel counts it.

/// Returns the bytes that a line of a process' status tells: `VmRSS` for all that is resident,
/// `RssAnon` for that without the pages of files, such as the program's own, and `VmHWM` for the
/// highest `VmRSS` so far. `None` if the process has ended.
pub fn bytes(process: u32, key: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| *name == key)?;
    let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
