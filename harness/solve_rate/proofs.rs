//! Every task is a task: its hidden tests and the visible one fail before, and pass with the mend
//! that is kept beside it.

use std::collections::HashSet;

use crate::bench::Bench;
use crate::choice;
use crate::task::{self, Language};

async fn prove(language: Language) {
    let tasks = task::shipped().unwrap();
    let mut bench = Bench::start(language).await.unwrap();
    let mut wrong = Vec::new();
    for task in tasks.iter().filter(|task| task.language == language) {
        let questions = [
            (
                "the visible tests before",
                task.with(&[]),
                language.visible_command(),
                false,
            ),
            (
                "the hidden tests before",
                task.with(&[&task.hidden]),
                language.hidden_command(),
                false,
            ),
            (
                "the visible tests after",
                task.with(&[&task.mend]),
                language.visible_command(),
                true,
            ),
            (
                "the hidden tests after",
                task.with(&[&task.mend, &task.hidden]),
                language.hidden_command(),
                true,
            ),
        ];
        for (what, files, command, wanted) in questions {
            let tested = bench.test(&files, command).await.unwrap();
            if tested.passed != wanted {
                wrong.push(format!(
                    "{}: {what} pass: {}\n{}",
                    task.name, tested.passed, tested.output
                ));
            }
        }
    }
    bench.end().await.unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn tasks_in_python_can_be_solved_and_are_not() {
    prove(Language::Python).await;
}

#[tokio::test]
async fn tasks_in_javascript_can_be_solved_and_are_not() {
    prove(Language::JavaScript).await;
}

#[tokio::test]
async fn tasks_in_go_can_be_solved_and_are_not() {
    prove(Language::Go).await;
}

#[tokio::test]
async fn tasks_in_java_can_be_solved_and_are_not() {
    prove(Language::Java).await;
}

#[test]
fn there_are_sixty_in_three_grades_and_the_short_form_has_all_languages() {
    let tasks = task::shipped().unwrap();
    assert!(tasks.len() >= 60, "{} tasks", tasks.len());
    let names: HashSet<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names.len(), tasks.len());
    for task in &tasks {
        assert!((1..=3).contains(&task.grade), "{}", task.name);
        assert!(
            task.sources().count() > 0 && !task.mend.is_empty() && !task.hidden.is_empty(),
            "{}",
            task.name
        );
        assert!(task.body.len() > 20, "{}", task.name);
    }
    for grade in 1..=3 {
        let count = tasks.iter().filter(|task| task.grade == grade).count();
        assert!(count >= 12, "{count} tasks of grade {grade}");
    }
    let short = choice::chosen(tasks.clone(), 8);
    let languages: HashSet<Language> = short.iter().map(|task| task.language).collect();
    assert_eq!(languages.len(), 4);
    let one_half = tasks.iter().filter(|task| choice::half_of(&task.name) == "a").count();
    assert!((20..=40).contains(&one_half), "{one_half} tasks in one half");
}
