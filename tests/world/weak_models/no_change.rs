//! Replies that change nothing, by mistake or on purpose.

use super::{ADDS_WRONGLY, WROTE_THE_SAME, adds_wrongly, fails_saying, writes_what_is_there, writing_whole_files};

#[tokio::test]
async fn a_reply_that_changes_nothing_does_not_count_and_the_next_one_is_asked_for_warmly() {
    let world = writing_whole_files().await;
    let same = "Mended.\n\nsums.py\n```python\ndef add(one, other):\n    return one - other\n```";
    world
        .model
        .says(same)
        .says(same)
        .says("```python\nprint('added')\n```")
        .says("```python\ndef add(one, other):\n    return one + other\n```");
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    let told = requests[1].last_user_message();
    assert!(
        told.contains("This did not count: what you wrote is what was there before"),
        "{told}"
    );
    let temperatures: Vec<_> = requests
        .iter()
        .map(|request| request.body["temperature"].as_f64())
        .collect();
    assert_eq!(temperatures, [Some(0.0), Some(0.0), Some(0.8), Some(0.0)]);
    let told = requests[3].last_user_message();
    assert!(
        told.contains("The block that begins with `print('added')` names no file: its path must be the line above it."),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_never_changes_anything_fails_and_is_not_done() {
    let world = writing_whole_files().await;
    writes_what_is_there(&world, 4);
    fails_saying(world, WROTE_THE_SAME).await;
}

#[tokio::test]
async fn that_nothing_has_to_change_counts_when_it_is_said_twice_and_no_test_fails() {
    let world = writing_whole_files().await;
    let mended = ADDS_WRONGLY[0].1.replace('-', "+");
    world
        .github
        .default_repository()
        .commit("main", "Mend", &[("sums.py", &mended)]);
    world.model.says("It is right as it is.").says("It is a sum.");
    let issue = world
        .github
        .open_issue("Is add(2, 3) in sums.py right?")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert!(world.github.pulls().is_empty());
    let told = world.model.requests()[1].last_user_message();
    assert!(told.starts_with("This did not count: you wrote no file."), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn that_nothing_has_to_change_does_not_count_while_tests_fail() {
    let world = writing_whole_files().await;
    let script = world.model.says("It is right as it is.").says("It is a sum.");
    script.says("It is right, really.");
    fails_saying(
        world,
        "The model changed nothing, and the project's tests fail as before",
    )
    .await;
}
