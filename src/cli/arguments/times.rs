//! Reads times that are given with their unit, such as `30d`.

use chrono::TimeDelta;

/// Reads a period such as `30d`, `12h` or `2w`.
pub(super) fn period(text: &str) -> Result<TimeDelta, String> {
    let refused = || format!("'{text}' is no period; write it like 30d, 12h or 2w");
    read(text, &['h', 'd', 'w']).ok_or_else(refused)
}

/// Reads a time such as `30m` or `2h`.
pub(super) fn time_to_live(text: &str) -> Result<TimeDelta, String> {
    let refused = || format!("'{text}' is no time; write it like 30m or 2h");
    read(text, &['m', 'h']).ok_or_else(refused)
}

/// Reads a number with one of `units` behind it; `None` if it is no time, or none that passes.
fn read(text: &str, units: &[char]) -> Option<TimeDelta> {
    let unit = text.chars().next_back().filter(|unit| units.contains(unit))?;
    let number: i64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    let time = match unit {
        'm' => TimeDelta::try_minutes(number),
        'h' => TimeDelta::try_hours(number),
        'd' => TimeDelta::try_days(number),
        'w' => TimeDelta::try_weeks(number),
        _ => None,
    };
    time.filter(|time| *time > TimeDelta::zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_read_with_their_units() {
        for (text, hours) in [("12h", 12), ("30d", 720), ("2w", 336)] {
            assert_eq!(period(text), Ok(TimeDelta::hours(hours)));
        }
        for text in ["", "d", "30", "0d", "-1d", "1.5d", "30日", "99999999999999d"] {
            assert!(period(text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_kind_of_time_has_units_of_its_own() {
        assert_eq!(time_to_live("30m"), Ok(TimeDelta::minutes(30)));
        assert_eq!(time_to_live("2h"), Ok(TimeDelta::hours(2)));
        for text in ["2d", "0m", "m", ""] {
            assert!(time_to_live(text).is_err(), "{text}");
        }
        assert!(period("30m").is_err());
    }
}
