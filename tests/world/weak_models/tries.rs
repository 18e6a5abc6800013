//! Models that write whole files and cannot mend their own work: the task begins again at its base,
//! and the best of what they made is delivered.

use serde_json::json;

use super::{WROTE_THE_SAME, adds_wrongly, fails_saying, sum, writes_what_is_there, writing_whole_files};
use crate::fake::github::Item;
use crate::world::World;
use crate::world::facts::count;
use crate::world::people::says;

/// A test that passes before the work, and fails if two numbers are no longer told apart.
const TWO_TESTS: &str = "import unittest\n\nfrom sums import add\n\n\nclass Sums(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n\n    def test_zero(self):\n        self.assertEqual(add(2, 0), 2)\n";

async fn trying(most: u32) -> World {
    let mut world = writing_whole_files().await;
    world.configure(|config| config["planning"]["verification"] = json!({ "max_tries": most }));
    world.model.allows_restarts();
    world
}

fn with_two_tests(world: &World) -> Item {
    let repository = world.github.default_repository();
    repository.commit("main", "Test zero", &[("tests/test_sums.py", TWO_TESTS)]);
    adds_wrongly(world)
}

#[tokio::test]
async fn what_does_not_pass_is_begun_again_at_the_base_and_what_passes_is_delivered() {
    let mut world = trying(3).await;
    world.configure(|config| config["llm"]["openai"]["seed"] = json!(7));
    let first = format!(
        "{}\n\nextra.py\n```python\nx = 1\n```",
        sum("A product.", "one * other")
    );
    world
        .model
        .says(&first)
        .says("It is right now.")
        .says(&sum("The sign was wrong.", "one + other"));
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(count(&world, "begun_again"), 1);
    let requests = world.model.requests();
    let anew = &requests[2];
    assert_eq!(requests.len(), 3);
    assert!(
        anew.last_user_message().contains(
            "You have tried this before, and the result was thrown away: every file is as it was at the beginning. Do it in another way. \
             Reply with each file"
        ) && anew.text().contains("return one - other")
            && !anew.text().contains("A product."),
        "{}",
        anew.text()
    );
    assert_eq!(anew.body["temperature"], 0.8);
    // With the same seed, the same text would be answered in the same way at any temperature.
    let seeds: Vec<_> = requests.iter().map(|request| request.body["seed"].as_u64()).collect();
    assert_eq!(seeds, [Some(7), Some(7), Some(8)]);
    let pull = &world.github.pulls()[0];
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other):\n    return one + other\n")
    );
    assert_eq!(pull.file("extra.py"), None);
    let text = pull.text();
    assert!(
        !pull.is_draft()
            && text.contains("The sign was wrong.")
            && !text.contains("A product.")
            && text.contains("The task was begun 2 times, each time from its base; this is the result of the last, the first that passes: its checks \
             have chosen it, so look at what they do not test."),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn of_tries_that_all_fail_the_one_that_breaks_least_is_delivered() {
    let world = trying(3).await;
    let says_again = "It is right now.";
    world
        .model
        .says(&sum("Always five.", "5"))
        .says(says_again)
        // Neither the first nor the last: the next one follows at once.
        .says(&sum("The other way around.", "one - other + 0"))
        .says(&sum("Nothing at all.", "None"))
        .says(says_again);
    let issue = with_two_tests(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let told = world.model.requests()[1].last_user_message();
    assert!(
        told.contains(
            "\nWhat the tests expect there:\n\ntests/test_sums.py, lines 10 to 11, of which line 11 failed\n"
        ),
        "{told}"
    );
    assert_eq!((world.model.requests().len(), count(&world, "begun_again")), (5, 2));
    let pull = &world.github.pulls()[0];
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other):\n    return one - other + 0\n")
    );
    let text = pull.text();
    assert!(
        text.contains(
            "The task was begun 3 times, each time from its base; no result passed, and this one, number 2, is the one whose checks fail \
             least."
        ) && text.contains("ended with 1, as it did before the change"),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_later_try_that_lacks_an_import_is_mended() {
    let world = trying(3).await;
    world
        .model
        .says(&sum("A product.", "one * other"))
        .says("It is right now.")
        .says(&sum("By the library.", "math.fsum([one, other])"))
        .says("Imported.\n\nsums.py\n```python\nimport math\n\n\ndef add(one, other):\n    return math.fsum([one, other])\n```");
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    assert_eq!((requests.len(), count(&world, "begun_again")), (4, 1));
    assert!(
        requests[3]
            .last_user_message()
            .contains("add the line `import math` to sums.py"),
        "{}",
        requests[3].last_user_message()
    );
    let pull = &world.github.pulls()[0];
    assert!(pull.text().contains("Imported.") && !pull.is_draft(), "{}", pull.text());
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_comes_to_nothing_begins_again() {
    let world = trying(2).await;
    // What was there before ends a try at once, since another one may follow.
    writes_what_is_there(&world, 1).says(&sum("The sign was wrong.", "one + other"));
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert!(!world.github.pulls()[0].is_draft());
    assert_eq!((world.model.requests().len(), count(&world, "begun_again")), (2, 1));
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_comes_to_nothing_each_time_fails_for_its_last_reason() {
    let world = trying(2).await;
    writes_what_is_there(&world, 5);
    fails_saying(world, WROTE_THE_SAME).await;
}

#[tokio::test]
async fn a_last_try_that_fails_delivers_the_best_one() {
    let world = trying(2).await;
    let says_again = "It is right now.";
    let script = world
        .model
        .says(&sum("A product.", "one * other"))
        .says(says_again)
        .says(&sum("The other way around.", "other - one"));
    // A block that is of no file: it is asked for again five times.
    (0..6).fold(script, |script, number| {
        script.says(&format!("Try {number}.\n\n```\nsomething else\n```"))
    });
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pull = &world.github.pulls()[0];
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other):\n    return one * other\n")
    );
    let text = pull.text();
    assert!(
        text.contains(
            "The last try failed, and the best of its tries is delivered: the model's replies could not be read"
        ) && text
            .contains("The task was begun 2 times, each time from its base; no result passed, and this one, number 1,"),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_last_try_whose_work_cannot_be_taken_delivers_the_best_one() {
    let world = trying(2).await;
    let says_again = "It is right now.";
    world
        .model
        .says(&sum("A product.", "one * other"))
        .says(says_again)
        .says("A repository of its own comes first.\n\n```bash\ngit init -q app\n```")
        .says(&sum("The other way around.", "other - one"))
        .says(says_again)
        .says(says_again);
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), count(&world, "begun_again")), (6, 1));
    let pull = &world.github.pulls()[0];
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other):\n    return one * other\n")
    );
    let text = pull.text();
    assert!(
        text.contains("The last try failed, and the best of its tries is delivered: the work could not be committed"),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_limit_that_ends_another_try_delivers_the_best_one() {
    let mut world = trying(2).await;
    world.configure(|config| config["max_llm_process_num"] = json!(3));
    world
        .model
        .says(&sum("Always five.", "5"))
        .says("It is right now.")
        .says(&sum("Nothing at all.", "None"));
    let issue = with_two_tests(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pull = &world.github.pulls()[0];
    assert!(pull.is_draft());
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other):\n    return 5\n")
    );
    let text = pull.text();
    assert!(
        text.contains("The work ended at a limit, and the best of its tries is delivered")
            && text.contains(
                "The task was begun 2 times, each time from its base; no result passed, and this one, number 1,"
            ),
        "{text}"
    );
    world.finish().await;
}

#[tokio::test]
async fn what_people_asked_for_meanwhile_is_not_thrown_away() {
    let world = trying(3).await.attentive();
    world
        .model
        .says(&sum("A product.", "one * other"))
        .holds()
        .says(&sum("Named as asked.", "one * other  # the sum"))
        .says("It is right now.");
    let issue = adds_wrongly(&world);

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    says(&world, &issue, "alice", "Write behind the line what it is.").await;
    world.model.release();
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!((world.model.requests().len(), count(&world, "begun_again")), (3, 0));
    let pull = &world.github.pulls()[0];
    assert_eq!(
        pull.file("sums.py").as_deref(),
        Some("def add(one, other):\n    return one * other  # the sum\n")
    );
    assert!(!pull.text().contains("each time from its base"), "{}", pull.text());
    world.finish().await;
}

#[tokio::test]
async fn that_nothing_has_to_change_is_no_failed_try() {
    let world = trying(3).await;
    let mended = "def add(one, other):\n    return one + other\n";
    let repository = world.github.default_repository();
    repository.commit("main", "Mend", &[("sums.py", mended)]);
    world.model.says("It is right as it is.").says("It is a sum.");
    let issue = adds_wrongly(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), count(&world, "begun_again")), (2, 0));
    assert!(world.github.pulls().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_process_that_is_killed_during_another_try_goes_on_with_it() {
    let world = trying(2).await;
    world
        .model
        .says(&sum("A product.", "one * other"))
        .says("It is right now.")
        .says(&sum("The sign was wrong.", "one + other"))
        .holds();
    let issue = adds_wrongly(&world);

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // The journal is written beside the work, and a line of it may be lost with the process.
    world.until("another try", || count(&world, "begun_again") == 1).await;
    run.kill().await;
    world.model.release();
    world.model.says(&sum("The sign was wrong.", "one + other"));
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(count(&world, "begun_again"), 1);
    // The model hears nothing of the try before.
    let last = world.model.requests().pop().unwrap().text();
    assert!(
        last.contains("You have tried this before") && !last.contains("A product."),
        "{last}"
    );
    let text = world.github.pulls()[0].text();
    assert!(
        text.contains("The task was begun 2 times, each time from its base; this is the result of the last, the first that passes: its checks \
             have chosen it, so look at what they do not test."),
        "{text}"
    );
    world.finish().await;
}
