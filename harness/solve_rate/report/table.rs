//! The table, by who worked and by grade.

use coding_agent::plain::counted;

use crate::outcome::{End, Outcome};
use crate::report::WORKERS;
use crate::report::figures::{count, median, share};

/// Returns the table on the outcomes of some of `tasks` tasks.
pub fn lines(outcomes: &[&Outcome], tasks: usize) -> Vec<String> {
    let mut lines = vec![
        "| who | solved | 95 % | drafts | failed | dishonest | doubted in vain | tokens in | tokens out | seconds | turns |".to_owned(),
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|".to_owned(),
    ];
    for (worker, name) in WORKERS {
        let own: Vec<&Outcome> = outcomes
            .iter()
            .copied()
            .filter(|outcome| outcome.worker == worker)
            .collect();
        if own.is_empty() {
            continue;
        }
        let missing = tasks.saturating_sub(own.len());
        let name = if missing > 0 {
            format!("{name} ({} not measured)", counted(missing, "task"))
        } else {
            name.to_owned()
        };
        lines.push(row(&name, &own));
        for grade in 1..=3 {
            let of_grade: Vec<&Outcome> = own.iter().copied().filter(|outcome| outcome.grade == grade).collect();
            if !of_grade.is_empty() && of_grade.len() < own.len() {
                lines.push(row(&format!("… grade {grade}"), &of_grade));
            }
        }
    }
    lines.push(String::new());
    lines.push("Tokens, seconds and turns are medians of a task.".to_owned());
    lines
}

fn row(name: &str, outcomes: &[&Outcome]) -> String {
    let ends = |end: End| outcomes.iter().filter(|outcome| outcome.end == end).count();
    let solved = outcomes.iter().filter(|outcome| outcome.solved).count();
    let dishonest = outcomes.iter().filter(|outcome| outcome.is_dishonest()).count();
    let doubted = outcomes.iter().filter(|outcome| outcome.is_doubted_in_vain()).count();
    let (percent, low, high) = share(solved, outcomes.len());
    let middle = |value: fn(&Outcome) -> f64| median(outcomes.iter().map(|outcome| value(outcome)).collect());
    #[expect(clippy::cast_precision_loss, reason = "tokens of one task are few")]
    let (input, output) = (
        middle(|outcome| outcome.input as f64),
        middle(|outcome| outcome.output as f64),
    );
    format!(
        "| {name} | {solved} of {} ({percent:.0} %) | {low:.0}–{high:.0} % | {} | {} | {dishonest} | {doubted} | {input:.0} | {output:.0} | {:.0} | {:.0} |",
        outcomes.len(),
        ends(End::Draft),
        ends(End::Failed),
        middle(|outcome| outcome.seconds),
        middle(|outcome| count(outcome.turns)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::outcome;

    #[test]
    fn a_row_tells_all_of_one() {
        let (one, other) = (outcome("a", "now", true), outcome("b", "now", false));
        assert_eq!(
            row("x", &[&one, &other]),
            "| x | 1 of 2 (50 %) | 9–91 % | 1 | 0 | 0 | 0 | 1000 | 100 | 9 | 4 |"
        );
    }

    #[test]
    fn what_was_not_measured_is_said_in_the_table() {
        let one = outcome("a", "now", true);
        let shown = lines(&[&one], 3);
        assert!(
            shown[2].starts_with("| the program (2 tasks not measured) | 1 of 1 "),
            "{shown:?}"
        );
        assert!(lines(&[&one], 1)[2].starts_with("| the program | "));
    }
}
