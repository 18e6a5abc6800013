//! The largest number that each key may have.
//!
//! Numbers are bounded before anything is computed with them: times are added to the clock, sizes
//! and counts are multiplied, and some say how much is made at the start. The bounds are far beyond
//! what anybody wants.

/// Bounds of single keys.
const OF_KEYS: [(&str, u64); 3] = [
    // Each is there from the start, whether there is work or not.
    ("consumers", 1_000),
    // The kernel's own.
    ("pids_limit", 4_194_304),
    ("tool_failures", 1_000_000),
];

/// Bounds by the unit with which the name of a key ends.
const OF_UNITS: [(&str, u64); 7] = [
    ("millis", 1_000_000_000),
    ("seconds", 1_000_000_000),
    ("minutes", 100_000_000),
    ("hours", 1_000_000),
    ("days", 100_000),
    ("bytes", 1 << 50),
    ("tokens", 1_000_000_000_000_000),
];

/// Bound of all other numbers, which is the largest that git and clusters take.
const OF_OTHERS: u64 = 2_147_483_647;

/// Returns the largest number that the key at the end of `path` may have; `None` if any will do.
pub(in crate::config) fn most(path: &[String]) -> Option<u64> {
    let key = path.last()?.to_ascii_lowercase();
    if key == "seed" {
        return None;
    }
    let own = OF_KEYS.iter().find(|(name, _)| key == *name);
    let found = own.or_else(|| OF_UNITS.iter().find(|(unit, _)| key.ends_with(unit)));
    Some(found.map_or(OF_OTHERS, |(_, most)| *most))
}
