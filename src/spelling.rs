//! Finds the name that is most like one that does not exist.

/// Least likeness, from 0 to 1, of two words of a few letters that are taken for the same name.
pub const LIKENESS: f64 = 0.5;

/// Returns how alike two names are, from 0 to 1: one minus the share of letters that must be added,
/// removed, replaced or swapped to make one from the other.
pub fn likeness(one: &str, other: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(one, other)
}

/// Returns the name that is most like `wanted`, if one is at least as alike as `least`. `key` gives
/// the part of a candidate that is compared, such as the last part of a path.
pub fn nearest_by<T>(
    wanted: &str,
    candidates: impl IntoIterator<Item = T>,
    least: f64,
    key: impl Fn(&T) -> String,
) -> Option<T> {
    let alike = candidates.into_iter().map(|candidate| {
        let likeness = likeness(wanted, &key(&candidate));
        (likeness, candidate)
    });
    alike
        .filter(|(likeness, _)| *likeness >= least)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

/// Returns the name that is most like `wanted`, if one is similar enough.
pub fn nearest<'name>(wanted: &str, names: impl IntoIterator<Item = &'name str>) -> Option<&'name str> {
    nearest_by(wanted, names, LIKENESS, |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_names_what_was_meant_and_another_word_names_nothing() {
        let names = ["planner", "worker", "reviewer"];
        for (wanted, expected) in [
            ("plannr", Some("planner")),
            ("wroker", Some("worker")),
            ("reviewers", Some("reviewer")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(wanted, names), expected, "{wanted}");
        }
        assert_eq!(nearest("planner", []), None);
    }
}
