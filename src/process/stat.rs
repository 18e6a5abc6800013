//! Reads `/proc/ID/stat`, which says how a process is and how much it has computed.

use std::fs;

/// A process, as the kernel describes it in `/proc/ID/stat`.
#[derive(Debug, PartialEq, Eq)]
pub struct Stat {
    /// The program's short name, as the kernel keeps it.
    pub name: String,
    /// False for a zombie, unless other threads of the process live.
    pub is_alive: bool,
    pub parent: u32,
    pub session: u32,
    /// Clock ticks after boot.
    pub started: u64,
    /// Clock ticks for which the process, and the children that it has waited for, have computed.
    pub ticks: u64,
}

impl Stat {
    /// Returns that of the process with this id; `None` if there is none.
    pub fn of(id: u32) -> Option<Self> {
        parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }
}

/// Parses the needed fields. The name may contain spaces and brackets, so the fields are counted
/// from the last bracket.
fn parse(stat: &str) -> Option<Stat> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let state = *fields.first()?;
    let parent = fields.get(1)?.parse().ok()?;
    let session = fields.get(3)?.parse().ok()?;
    // Own time in programs and in the kernel, then that of the children.
    let times = fields.get(11..15)?.iter();
    let ticks = times
        .filter_map(|time| time.parse::<u64>().ok())
        .fold(0, u64::wrapping_add);
    let threads: u64 = fields.get(17)?.parse().ok()?;
    let started = fields.get(19)?.parse().ok()?;
    // A main thread that has ended looks like a zombie while its other threads work on.
    let is_alive = !matches!(state, "Z" | "X") || threads > 1;
    Some(Stat {
        name,
        is_alive,
        parent,
        session,
        started,
        ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_is_read() {
        let stat = "42 (a) (b c) S 7 42 41 0 -1 4194560 1 0 0 0 11 22 33 44 20 0 1 0 900 0 0";
        let expected = Stat {
            name: "a) (b c".to_owned(),
            is_alive: true,
            parent: 7,
            session: 41,
            started: 900,
            ticks: 110,
        };
        assert_eq!(parse(stat), Some(expected));
    }

    #[test]
    fn a_zombie_is_dead_unless_other_threads_live() {
        let zombie = "42 (a) Z 7 42 42 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 900 0 0";
        assert!(!parse(zombie).unwrap().is_alive);
        let headless = "42 (a) Z 7 42 42 0 -1 0 1 0 0 0 0 0 0 0 20 0 3 0 900 0 0";
        assert!(parse(headless).unwrap().is_alive);
    }

    #[test]
    fn a_cut_line_is_nothing() {
        assert_eq!(parse("42 (a) S 7"), None);
        assert_eq!(parse(""), None);
    }
}
