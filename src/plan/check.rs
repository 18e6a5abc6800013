//! Checks whether a plan can be worked on.

use std::collections::BTreeSet;

use super::{Plan, Subtask};
use crate::conversation::decode::Unreadable;

/// Most faults that are reported. A reply of a few kilobytes can have thousands, and to name each
/// would fill the window.
const MOST_FAULTS: usize = 20;
/// Most characters of an id that are shown in a fault.
const LONGEST_ID: usize = 80;

impl Plan {
    /// Checks that the plan can be worked on; the error names the faults to the model.
    pub fn validate(&self, max_subtasks: usize) -> Result<(), Unreadable> {
        let mut faults = self.faults(max_subtasks);
        if faults.is_empty() {
            return Ok(());
        }
        if faults.len() > MOST_FAULTS {
            let more = faults.len() - MOST_FAULTS;
            faults.truncate(MOST_FAULTS);
            faults.push(format!("and {more} more"));
        }
        Err(Unreadable::new(format!(
            "The plan has faults: {}. Send the whole plan again, corrected",
            faults.join("; ")
        )))
    }

    fn faults(&self, max_subtasks: usize) -> Vec<String> {
        let subtasks = &self.task_decomposition.subtasks;
        if subtasks.is_empty() {
            return vec!["it has no subtasks".to_owned()];
        }
        if subtasks.len() > max_subtasks {
            return vec![format!(
                "it has {} subtasks and at most {max_subtasks} are allowed",
                subtasks.len()
            )];
        }
        let mut faults = Vec::new();
        let mut known = BTreeSet::new();
        for subtask in subtasks {
            if subtask.id.is_empty() {
                faults.push("a subtask has an empty id".to_owned());
            } else if !known.insert(subtask.id.as_str()) {
                faults.push(format!("the id '{}' is used twice", short(&subtask.id)));
            }
            if subtask.description.is_empty() {
                faults.push(format!("subtask '{}' has no description", short(&subtask.id)));
            }
        }
        for subtask in subtasks {
            for id in subtask.dependencies.iter().filter(|id| !known.contains(id.as_str())) {
                faults.push(format!(
                    "subtask '{}' depends on '{}', which is not a subtask",
                    short(&subtask.id),
                    short(id)
                ));
            }
        }
        faults.extend(
            circle(subtasks)
                .map(|ids| ids.into_iter().map(short).collect::<Vec<_>>().join(" -> "))
                .map(|ids| format!("subtasks depend on each other in a circle: {ids}")),
        );
        for check in self.verification.iter().filter(|check| check.command.trim().is_empty()) {
            faults.push(format!(
                "a verification has no command (expect_exit {})",
                check.expect_exit
            ));
        }
        faults
    }
}

fn short(id: &str) -> &str {
    id.char_indices().nth(LONGEST_ID).map_or(id, |(end, _)| &id[..end])
}

/// Returns one cycle of dependencies, its first id repeated at the end.
///
/// When all subtasks that could be finished are removed, each one left depends on another one left,
/// so following the dependencies must lead back to where it has been.
fn circle(subtasks: &[Subtask]) -> Option<Vec<&str>> {
    let mut left: Vec<&Subtask> = subtasks.iter().collect();
    loop {
        let ids: BTreeSet<&str> = left.iter().map(|subtask| subtask.id.as_str()).collect();
        let before = left.len();
        left.retain(|subtask| subtask.dependencies.iter().any(|id| ids.contains(id.as_str())));
        if left.len() == before {
            break;
        }
    }
    let mut way: Vec<&str> = vec![left.first()?.id.as_str()];
    loop {
        let here = left.iter().find(|subtask| Some(&subtask.id.as_str()) == way.last())?;
        let next = here
            .dependencies
            .iter()
            .find(|id| left.iter().any(|subtask| subtask.id == **id))?;
        let seen = way.iter().position(|id| id == next);
        way.push(next);
        if let Some(start) = seen {
            return Some(way.split_off(start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ActionPlan, TaskDecomposition};
    use super::*;
    use proptest::prelude::*;

    fn plan(subtasks: &[(&str, &[&str])], order: &[&str]) -> Plan {
        let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
        Plan {
            task_decomposition: TaskDecomposition {
                reasoning: String::new(),
                subtasks: subtasks
                    .iter()
                    .map(|(id, dependencies)| Subtask {
                        id: (*id).to_owned(),
                        description: "work".to_owned(),
                        dependencies: owned(dependencies),
                    })
                    .collect(),
            },
            action_plan: ActionPlan {
                execution_order: owned(order),
                actions: vec![],
            },
            ..Plan::default()
        }
    }

    #[test]
    fn every_fault_is_named_to_the_model() {
        for (plan, fault) in [
            (plan(&[], &[]), "it has no subtasks"),
            (
                plan(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])], &[]),
                "it has 4 subtasks and at most 3 are allowed",
            ),
            (
                plan(&[("a", &["x"]), ("a", &[])], &[]),
                "the id 'a' is used twice; subtask 'a' depends on 'x', which is not a subtask",
            ),
            (
                plan(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"])], &[]),
                "subtasks depend on each other in a circle: b -> c -> b",
            ),
            (
                plan(&[("a", &["a"])], &[]),
                "subtasks depend on each other in a circle: a -> a",
            ),
        ] {
            let expected = format!("The plan has faults: {fault}. Send the whole plan again, corrected");
            assert_eq!(plan.validate(3), Err(Unreadable::new(expected)));
        }
    }

    #[test]
    fn an_order_that_names_no_subtask_does_no_harm() {
        let plan = plan(
            &[("a", &["b"]), ("b", &[]), ("c", &[])],
            &["...", "c", "write the test", "a"],
        );
        assert_eq!(plan.validate(3), Ok(()));
        let ids: Vec<&str> = plan.ordered().iter().map(|subtask| subtask.id.as_str()).collect();
        assert_eq!(ids, ["c", "b", "a"]);
    }

    #[test]
    fn a_plan_with_thousands_of_faults_is_answered_in_few_words() {
        let long = "x".repeat(1_000);
        let names = vec![long.as_str(); 1_000];
        let said = plan(&[("a", &names), ("b", &names)], &[])
            .validate(3)
            .unwrap_err()
            .to_string();
        assert!(said.contains("; and 1980 more. Send the whole plan again"), "{said}");
        assert!(said.len() < 4_000, "{} bytes", said.len());
    }

    proptest! {
        #[test]
        fn a_valid_plan_has_an_order_and_an_invalid_one_does_no_harm(
            edges in proptest::collection::vec((0_usize..6, 0_usize..6), 0..10)
        ) {
            let names = ["a", "b", "c", "d", "e", "f"];
            let dependencies: Vec<Vec<&str>> = (0..6)
                .map(|from| edges.iter().filter(|edge| edge.0 == from).map(|edge| names[edge.1]).collect())
                .collect();
            let subtasks: Vec<(&str, &[&str])> =
                names.iter().zip(&dependencies).map(|(name, ids)| (*name, ids.as_slice())).collect();
            let plan = plan(&subtasks, &[]);
            let ordered = plan.ordered();
            prop_assert_eq!(ordered.len(), 6);
            if plan.validate(6).is_ok() {
                for (place, subtask) in ordered.iter().enumerate() {
                    for id in &subtask.dependencies {
                        prop_assert!(ordered[..place].iter().any(|before| before.id == *id));
                    }
                }
            }
        }
    }
}
