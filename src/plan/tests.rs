//! Plans as models write them.

use super::*;
use serde_json::json;

fn read_text(text: &str) -> Result<Plan, String> {
    read(&Reply {
        text: text.to_owned(),
        ..Reply::default()
    })
    .map_err(|unreadable| unreadable.to_string())
}

fn subtask(id: &str, description: &str, dependencies: &[&str]) -> Subtask {
    Subtask {
        id: id.to_owned(),
        description: description.to_owned(),
        dependencies: dependencies.iter().map(|&id| id.to_owned()).collect(),
    }
}

fn with_environment(environment: &Value) -> Plan {
    let plan = json!({
        "phase": "planning",
        "task_decomposition": {"subtasks": [{"id": 1, "description": "greet"}]},
        "selected_environment": environment,
    });
    read_text(&plan.to_string()).unwrap()
}

#[test]
fn a_full_plan_is_read_and_stored_and_read_back() {
    let text = r#"Here is the plan:
        {"phase": "planning",
         "goal_understanding": {"main_objective": "greet", "success_criteria": ["a file"], "constraints": [], "context_analysis": "empty"},
         "task_decomposition": {"reasoning": "two steps", "subtasks": [
            {"id": "t1", "description": "write", "dependencies": []},
            {"id": "t2", "description": "test", "dependencies": ["t1"]}]},
         "action_plan": {"execution_order": ["t1", "t2"], "actions": [
            {"task_id": "t1", "purpose": "greet", "expected_outcome": "file", "tool": "workspace/write_file"}]},
         "selected_environment": {"name": "python", "reasoning": "pip", "setup_commands": ["pip install x"]},
         "verification": [{"command": "cat README.md"}, {"command": "false", "expect_exit": 1}],
         "test_command": "make test",
         "base_branch": "develop",
         "comment": "planned"}"#;
    let plan = read_text(text).unwrap();
    assert_eq!(
        plan,
        Plan {
            goal_understanding: GoalUnderstanding {
                main_objective: "greet".to_owned(),
                success_criteria: vec!["a file".to_owned()],
                constraints: vec![],
                context_analysis: "empty".to_owned(),
            },
            task_decomposition: TaskDecomposition {
                reasoning: "two steps".to_owned(),
                subtasks: vec![subtask("t1", "write", &[]), subtask("t2", "test", &["t1"])],
            },
            action_plan: ActionPlan {
                execution_order: vec!["t1".to_owned(), "t2".to_owned()],
                actions: vec![Action {
                    task_id: "t1".to_owned(),
                    purpose: "greet".to_owned(),
                    expected_outcome: "file".to_owned(),
                }],
            },
            selected_environment: Some(SelectedEnvironment {
                name: "python".to_owned(),
                reasoning: "pip".to_owned(),
                setup_commands: vec!["pip install x".to_owned()],
            }),
            environment_flaw: None,
            verification: vec![
                Check {
                    command: "cat README.md".to_owned(),
                    expect_exit: 0,
                },
                Check {
                    command: "false".to_owned(),
                    expect_exit: 1,
                },
            ],
            test_command: "make test".to_owned(),
            risk: String::new(),
            need_approval: String::new(),
            cost_hint: String::new(),
            comment: "planned".to_owned(),
            evidence: vec![],
            base_branch: Some("develop".to_owned()),
        }
    );
    let stored = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
}

#[test]
fn harmless_slips_are_forgiven() {
    let plan = read_text(
        r#"{"phase":"planning","goal_understanding":null,"unknown":1,"verification":["make test"],
            "action_plan":{"execution_order":["write a",2,"..."]},
            "task_decomposition":{"subtasks":[{"id":1,"description":"a"},{"id":2,"description":"b","dependencies":1}]}}"#,
    )
    .unwrap();
    assert_eq!(
        plan.task_decomposition.subtasks,
        [subtask("1", "a", &[]), subtask("2", "b", &["1"])]
    );
    assert_eq!(plan.verification[0].command, "make test");
    assert_eq!(plan.action_plan.execution_order, ["2"]);
    assert_eq!(plan.validate(20), Ok(()));
}

#[test]
fn a_look_at_the_repository_is_not_a_plan() {
    for text in [
        r#"{"phase":"planning","comment":"look","command":{"tool":"repository/read_file","args":{}}}"#,
        r#"{"phase":"working","task_decomposition":{"subtasks":[]}}"#,
        r#"{"comment":"x","done":true}"#,
    ] {
        let error = read_text(text).unwrap_err();
        assert!(error.starts_with("The reply holds no plan. Reply with"), "{error}");
    }
}

#[test]
fn the_model_is_told_where_a_plan_breaks() {
    let error = read_text(r#"{"phase":"planning","task_decomposition":{"subtasks":[{"id":1}]}}"#).unwrap_err();
    assert!(
        error.starts_with("The plan cannot be read: at `task_decomposition.subtasks[0]`: missing field `description`."),
        "{error}"
    );
    let error = read_text(r#"{"phase":"planning","#).unwrap_err();
    assert!(
        error.starts_with("The JSON that begins at line 1, column 1 is broken"),
        "{error}"
    );
    let error =
        read_text(r#"{"phase":"planning","task_decomposition":{"subtasks":[{"id":"...","description":"..."}]}}"#)
            .unwrap_err();
    assert!(error.starts_with("The reply repeats the form"), "{error}");
}

#[test]
fn the_environment_falls_back_to_the_default_and_says_why() {
    let known = ["python", "node"];
    let choose = |environment: Value| choose_environment(&with_environment(&environment), &known, "python");
    assert_eq!(
        choose(json!({"name": "node"})),
        Choice {
            name: "node".to_owned(),
            note: None
        }
    );
    for (environment, note) in [
        (
            json!({"name": "rust"}),
            "The plan selected the environment `rust`, which is not configured (there are: python, node); the default `python` is used.",
        ),
        (
            json!(null),
            "The plan selected no environment; the default `python` is used.",
        ),
        (
            json!({"reasoning": "x"}),
            "The plan's `selected_environment` could not be read (missing field `name`); the default environment `python` is used.",
        ),
    ] {
        assert_eq!(
            choose(environment),
            Choice {
                name: "python".to_owned(),
                note: Some(note.to_owned())
            }
        );
    }
    assert_eq!(choose(json!("node")).name, "python");
}

#[test]
fn an_environment_is_known_whatever_the_case_of_its_name() {
    let known = ["node", "Python", "python"];
    let choose = |name: &str| choose_environment(&with_environment(&json!({ "name": name })), &known, "node");
    for (written, meant) in [
        ("Node", "node"),
        (" NODE\n", "node"),
        ("python", "python"),
        ("PYTHON", "Python"),
    ] {
        assert_eq!(
            choose(written),
            Choice {
                name: meant.to_owned(),
                note: None
            }
        );
    }
}

#[test]
fn the_order_follows_the_plan_but_never_precedes_a_dependency() {
    let plan = Plan {
        task_decomposition: TaskDecomposition {
            reasoning: String::new(),
            subtasks: vec![
                subtask("a", "first\nline", &["c"]),
                subtask("b", "second", &[]),
                subtask("c", "third", &[]),
            ],
        },
        action_plan: ActionPlan {
            execution_order: vec!["a".to_owned(), "c".to_owned()],
            actions: vec![],
        },
        ..Plan::default()
    };
    let ids: Vec<_> = plan.ordered().iter().map(|subtask| subtask.id.as_str()).collect();
    assert_eq!(ids, ["c", "a", "b"]);
}

#[test]
fn a_criterion_that_is_a_command_is_checked() {
    let plan = json!({
        "phase": "planning",
        "goal_understanding": { "success_criteria": ["`make check`", "`greet()` greets", "`README.md`", " `npm test` "] },
        "task_decomposition": { "subtasks": [{ "id": "1", "description": "greet" }] },
        "action_plan": { "actions": [{ "task_id": "1", "expected_outcome": " It greets. " }, { "task_id": "2" }] },
        "verification": [{ "command": "npm test", "expect_exit": 1 }],
    });
    let plan = read(&Reply {
        text: plan.to_string(),
        ..Reply::default()
    })
    .unwrap();
    let commands: Vec<&str> = plan.verification.iter().map(|check| check.command.as_str()).collect();
    assert_eq!(commands, ["npm test", "make check"]);
    assert_eq!(plan.expected_outcome("1"), Some("It greets."));
    assert_eq!(plan.expected_outcome("2"), None);
}

#[test]
fn evidence_is_read_in_the_forms_that_models_write() {
    let plan = read_text(
        r#"{"phase":"planning","task_decomposition":{"subtasks":[{"id":1,"description":"a"}]},
            "evidence":[{"path":"./src/a.py","lines":"12-40","why":"`greet` is here"},{"path":"b.py","lines":[3,9]},
                        {"path":"c.py:7"},"d.py#L1-L2",{"path":"e.py","lines":5,"why":null},{"lines":"1"},7]}"#,
    )
    .unwrap();
    let places: Vec<_> = plan.evidence.iter().map(super::evidence::Citation::place).collect();
    assert_eq!(places, ["src/a.py:12-40", "b.py:3-9", "c.py:7", "d.py:1-2", "e.py:5"]);
    let stored = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&stored).unwrap(), plan);
}
