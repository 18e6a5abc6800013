//! Counts how often the kernel has killed a process of this container because memory ran out.
//!
//! The count is read from the container's own control group, version 2 or 1, and only grows. If
//! neither can be read, it stays unknown, and nothing is claimed.

use std::fs;

/// The files with the count, of cgroup version 2, then 1; both have a line `oom_kill COUNT`.
const FILES: [&str; 2] = [
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
];

/// Returns the number of processes that the kernel killed for lack of memory, if it can be read.
pub(super) fn kills() -> Option<u64> {
    FILES.iter().find_map(|file| count(&fs::read_to_string(file).ok()?))
}

fn count(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn both_versions_are_read() {
        assert_eq!(
            count("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"),
            Some(2)
        );
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), Some(1));
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\n"), None);
    }
}
