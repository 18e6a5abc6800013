//! Plans with planted faults, and plans without.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::conversation::Reply;

const PLANS: &str = include_str!("../../../tests/data/reviewed-plans.txt");

/// Returns the plan of a record: a good one, with the record's fields in the place of its own.
fn plan(changes: &str) -> Plan {
    let mut plan = json!({
        "phase": "planning",
        "goal_understanding": {"main_objective": "Sort the report", "success_criteria": ["The report is sorted by date"]},
        "task_decomposition": {"subtasks": [
            {"id": "1", "description": "Sort the rows in src/report.py:12"},
            {"id": "2", "description": "Add a test", "dependencies": ["1"]}]},
        "action_plan": {"execution_order": ["1", "2"]},
        "selected_environment": {"name": "python", "setup_commands": ["pip install -e ."]},
        "verification": [{"command": "pytest -q"}],
    });
    let changes: Value = serde_json::from_str(changes).unwrap_or_else(|error| panic!("{error}: {changes}"));
    merge(&mut plan, changes);
    let reply = Reply {
        text: plan.to_string(),
        ..Reply::default()
    };
    crate::plan::read(&reply).unwrap()
}

fn merge(into: &mut Value, changes: Value) {
    match (into, changes) {
        (Value::Object(object), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, value) => *into = value,
    }
}

fn surroundings() -> Surroundings<'static> {
    let lines = [
        ("src/report.py", 120),
        ("README.md", 40),
        ("tests/test_report.py", 60),
        ("docs/日付.md", 9),
    ];
    Surroundings {
        environments: &["python", "node", "go", "java", "miniforge"],
        lines: lines.map(|(path, lines)| (path.to_owned(), lines)).into(),
        max_subtasks: 20,
        turns_left: Some(12),
        tokens_left: Some(200_000),
        tokens_per_turn: 8_000,
    }
}

#[test]
fn planted_faults_are_found_and_good_plans_pass() {
    let mut wrong = Vec::new();
    let mut good = 0;
    let mut kinds = BTreeMap::new();
    for line in PLANS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (expected, changes) = line.split_once(' ').unwrap();
        let mut found: Vec<_> = faults(&plan(changes), &surroundings())
            .into_iter()
            .map(|fault| fault.kind)
            .collect();
        found.dedup();
        let found: Vec<String> = found.iter().map(|kind| format!("{kind:?}")).collect();
        if expected == "good" {
            good += 1;
            if !found.is_empty() {
                wrong.push(format!("refused as {found:?}: {changes}"));
            }
        } else {
            *kinds.entry(expected).or_insert(0) += 1;
            if found != [expected] {
                wrong.push(format!("expected {expected}, found {found:?}: {changes}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        good >= 60 && kinds.len() == 8 && kinds.values().sum::<i32>() >= 60,
        "{good} {kinds:?}"
    );
    assert!(kinds.values().all(|count| *count >= 6), "{kinds:?}");
}

#[test]
fn a_fault_says_what_is_wrong() {
    let what = |changes: &str| -> Vec<String> {
        faults(&plan(changes), &surroundings())
            .into_iter()
            .map(|fault| fault.what)
            .collect()
    };
    assert_eq!(
        what(r#"{"verification": ["pytest | tail -5"], "selected_environment": {"name": "ruby"}}"#),
        [
            "the check `pytest | tail -5` passes whatever its commands find: its last command decides, and cannot fail",
            "the environment `ruby` is not configured; there are: python, node, go, java, miniforge",
        ]
    );
    assert_eq!(
        what(r#"{"verification": ["if make test; then echo ok"]}"#),
        ["the check `if make test; then echo ok` cannot be parsed: `if` has no `fi`"]
    );
    assert_eq!(
        what(r#"{"goal_understanding": {"context_analysis": "see src/report.py:900 and src/gone.py:1"}}"#),
        [
            "it cites `src/gone.py`, which does not exist",
            "it cites line 900 of `src/report.py`, which has 120"
        ]
    );
}

#[test]
fn cited_paths_are_those_with_lines() {
    let plan = plan(
        r#"{"goal_understanding": {"context_analysis": "src/a.py:3, `b.rs:1-9` on localhost:8080, api.test:443 with python:3 at 10:30, src/c.py"}}"#,
    );
    let cited: Vec<String> = cited_paths(&plan).into_iter().collect();
    assert_eq!(cited, ["b.rs", "src/a.py", "src/report.py"]);
}

proptest! {
    #[test]
    fn any_command_is_taken(command in r#"([ a-z;&|(){}<>"'`$\\\n!#=]|if|then|fi|do|done|case|esac|in|\$\(|<<|exit){0,60}"#) {
        let _ = shell::read(&command).map(|script| ending::of(&script, 0));
    }

    #[test]
    fn deep_commands_are_taken(piece in "[({`$\"'!]|\\$\\(|if |while ", count in 1..20_000_usize) {
        let _ = shell::read(&piece.repeat(count));
    }
}
