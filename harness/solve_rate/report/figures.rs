//! Shares with what may be due to chance.

/// Returns the share of `part` in `all` in percent, with Wilson's 95 % interval, which stays within
/// 0 and 100 where the usual one does not.
pub fn share(part: usize, all: usize) -> (f64, f64, f64) {
    if all == 0 {
        return (0.0, 0.0, 100.0);
    }
    let (part, all, z) = (count(part), count(all), 1.959_964);
    let share = part / all;
    let middle = share + z * z / (2.0 * all);
    let spread = z * (share * (1.0 - share) / all + z * z / (4.0 * all * all)).sqrt();
    let whole = 1.0 + z * z / all;
    let percent = |value: f64| (100.0 * value / whole).clamp(0.0, 100.0);
    (100.0 * share, percent(middle - spread), percent(middle + spread))
}

/// Returns how likely a difference as large as this one is by chance: of the tasks that only one of
/// two solved, `one` were solved by the first and `other` by the second (the exact test of
/// pairs, two-sided).
pub fn chance(one: usize, other: usize) -> f64 {
    let all = one + other;
    let fewer = one.min(other);
    let mut term = 0.5_f64.powf(count(all));
    let mut sum = term;
    for taken in 1..=fewer {
        term *= count(all - taken + 1) / count(taken);
        sum += term;
    }
    (2.0 * sum).min(1.0)
}

pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        let rounded = |part, all| {
            let (share, low, high) = share(part, all);
            (share.round(), low.round(), high.round())
        };
        assert_eq!(rounded(0, 8), (0.0, 0.0, 32.0));
        assert_eq!(rounded(5, 10), (50.0, 24.0, 76.0));
        assert_eq!(rounded(20, 20), (100.0, 84.0, 100.0));
        assert_eq!(rounded(0, 0), (0.0, 0.0, 100.0));
    }

    #[test]
    fn few_differences_are_chance() {
        assert!((chance(0, 0) - 1.0).abs() < 1e-9);
        assert!((chance(5, 0) - 0.0625).abs() < 1e-9);
        assert!((chance(0, 6) - 0.031_25).abs() < 1e-9);
        assert!((chance(1, 8) - 20.0 / 512.0).abs() < 1e-9);
    }
}
