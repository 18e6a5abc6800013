//! Prompts for planner and worker after people did not approve a plan.

use crate::agent::prompt::subtasks;
use crate::approval::proposal::Denial;
use crate::plan::Plan;

/// Returns the part of the planner's task about the plan before, which people denied.
pub(crate) fn of_planner(fence: &str, plan: &Plan, denial: &Denial) -> String {
    format!(
        "\nYou made this plan before:\n<{fence}>\n{}</{fence}>\nIt was not approved. The reason: {}\nMake another plan that \
         takes the reason into account.\n",
        subtasks(plan),
        denial.reason.trim()
    )
}

/// Returns the message for the planner that has made the plan again which people denied.
pub(crate) fn again(denial: &Denial) -> String {
    format!(
        "This is the plan that was not approved. The reason: {}\nMake another plan that takes the reason into account.",
        denial.reason.trim()
    )
}

/// Returns the message for the worker whose revised plan was denied; `plan` is the one before.
pub(crate) fn of_worker(plan: &Plan, reason: &str) -> String {
    format!(
        "People did not approve the new plan. The reason: {}\nThe plan is again:\n{}Go on by it.",
        reason.trim(),
        subtasks(plan)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Subtask, TaskDecomposition};
    use uuid::Uuid;

    #[test]
    fn the_plan_is_quoted_and_the_reason_is_told() {
        let plan = Plan {
            task_decomposition: TaskDecomposition {
                subtasks: vec![Subtask {
                    id: "1".to_owned(),
                    description: "paint\nit".to_owned(),
                    dependencies: Vec::new(),
                }],
                ..TaskDecomposition::default()
            },
            ..Plan::default()
        };
        let denial = Denial {
            question: Uuid::nil(),
            by: "@alice".to_owned(),
            reason: "Not red.".to_owned(),
            plan: None,
        };
        insta::assert_snapshot!(of_planner("data-1", &plan, &denial), @r"
        You made this plan before:
        <data-1>
        - 1: paint it
        </data-1>
        It was not approved. The reason: Not red.
        Make another plan that takes the reason into account.
        ");
        insta::assert_snapshot!(again(&denial), @r"
        This is the plan that was not approved. The reason: Not red.
        Make another plan that takes the reason into account.
        ");
        insta::assert_snapshot!(of_worker(&plan, "Not red."), @r"
        People did not approve the new plan. The reason: Not red.
        The plan is again:
        - 1: paint it
        Go on by it.
        ");
    }
}
