//! The replies that the model may give, and those that it is asked for again.

use insta::assert_snapshot;
use serde_json::json;

use super::{executes, greeting, greets, plan, steady, told, writes};
use crate::fake::model::{Plan, Request};
use crate::world::World;

/// Returns the last user message of each request but the first.
fn re_asks(world: &World) -> String {
    let requests = world.model.requests();
    let texts: Vec<_> = requests.iter().skip(1).map(Request::last_user_message).collect();
    steady(&texts.join("\n-----\n"))
}

#[tokio::test]
async fn an_answer_is_found_in_whatever_stands_around_it() {
    let world = World::start().await;
    let fenced = format!(
        "Here is my plan:\n```json\n{}\n```\nShall I begin?",
        serde_json::Value::from(plan())
    );
    world
        .model
        .says(&fenced)
        // The comment inside the command, the whole behind a thought that holds another command.
        .says(
            "<think>Perhaps {\"command\": {\"tool\": \"workspace/execute_command\", \"args\": {\"command\": \"false\"}}}?</think>\n\
             First the file: {\"command\": {\"comment\": \"Writing {it}\", \"tool\": \"workspace/write_file\", \
             \"args\": {\"path\": \"README.md\", \"content\": \"Hello }\\\"{\\n\", \"mode\": \"overwrite\"}}}",
        )
        // Python's quotes and trailing commas; several calls in one turn.
        .says(
            "{'comment': 'Two at once', 'commands': [\
             {'tool': 'workspace/write_file', 'args': {'path': 'one.txt', 'content': '1', 'mode': 'create',},},\
             {'tool': 'workspace/write_file', 'args': {'path': 'two.txt', 'content': '2', 'mode': 'create'}},],}",
        )
        .says("All is well.\n\n```\n{\"comment\": \"Greeted.\", \"done\": true}\n```");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(
        (ended.code, issue.labels()),
        (Some(0), vec!["coding agent done".to_owned()])
    );
    assert_eq!(world.model.requests().len(), 4, "nothing was asked again");
    let pull = &world.github.pulls()[0];
    assert_eq!(
        ["README.md", "one.txt", "two.txt"].map(|path| pull.file(path).unwrap()),
        ["Hello }\"{\n", "1", "2"]
    );
    world.finish().await;
}

#[tokio::test]
async fn replies_that_stay_unreadable_fail_the_task_after_five_re_asks() {
    let world = World::start().await;
    let script = world.model.script();
    let script = script
        .says("I would rather talk about it.")
        .says("{\"phase\": \"planning\"");
    let script = script.says("").says("<think>Hm.").says("{\"comment\": \"No.\"}");
    script.says("Still no.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 3
    labels: coding agent failed
    -----
    ### ❌ This could not be done

    The model's replies could not be read, 5 re-asks included; the last error was: The reply holds no plan; a larger model may do better, or replies that are held to their form (llm.constrained_replies: true), or work without a plan (planning.enabled: false).

    To start a new run, set the label `coding agent` again.

    <sub>6 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    assert_snapshot!(re_asks(&world), @r#"
    Your reply could not be used: The reply holds no plan. Reply with exactly one JSON object: {"phase":"planning","goal_understanding":{"main_objective":...,"success_criteria":[...]},"task_decomposition":{"subtasks":[{"id":...,"description":...,"dependencies":[...]}]},"action_plan":{"execution_order":[...]},"selected_environment":{"name":...},"verification":[{"command":...}],"comment":...}.
    Reply again.
    -----
    Your reply could not be used: The JSON that begins at line 1, column 1 is broken at line 1, column 21: expected ',' or '}' after the value, but the reply ends here. Reply with exactly one JSON object: {"phase":"planning","goal_understanding":{"main_objective":...,"success_criteria":[...]},"task_decomposition":{"subtasks":[{"id":...,"description":...,"dependencies":[...]}]},"action_plan":{"execution_order":[...]},"selected_environment":{"name":...},"verification":[{"command":...}],"comment":...}.
    Reply again.
    -----
    Your reply could not be used: The reply holds no plan. Reply with exactly one JSON object: {"phase":"planning","goal_understanding":{"main_objective":...,"success_criteria":[...]},"task_decomposition":{"subtasks":[{"id":...,"description":...,"dependencies":[...]}]},"action_plan":{"execution_order":[...]},"selected_environment":{"name":...},"verification":[{"command":...}],"comment":...}.
    Reply again.
    -----
    Your reply could not be used: The reply ends inside its thinking, without an answer. Reply with exactly one JSON object: {"phase":"planning","goal_understanding":{"main_objective":...,"success_criteria":[...]},"task_decomposition":{"subtasks":[{"id":...,"description":...,"dependencies":[...]}]},"action_plan":{"execution_order":[...]},"selected_environment":{"name":...},"verification":[{"command":...}],"comment":...}.
    Reply again.
    -----
    Your reply could not be used: The reply holds no plan. Reply with exactly one JSON object: {"phase":"planning","goal_understanding":{"main_objective":...,"success_criteria":[...]},"task_decomposition":{"subtasks":[{"id":...,"description":...,"dependencies":[...]}]},"action_plan":{"execution_order":[...]},"selected_environment":{"name":...},"verification":[{"command":...}],"comment":...}.
    Reply again.
    "#);
    assert_eq!(world.model.requests().len(), 6);
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_thinks_until_it_is_cut_is_told_so_and_people_are_told_what_to_raise() {
    let world = World::start().await;
    world.model.thinks_as_vllm();
    for _ in 0..6 {
        world.model.says("").thinking_of("Hm.").cut();
    }
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(3), "{ended:?}\n{}", world.story());
    let told = issue.comments_of(world.github.bot()).pop().unwrap();
    let expected = "the last error was: The reply was cut at the length limit while it was still thought about (the model thinks until \
                    its replies are cut: raise llm.openai.max_tokens or llm.openai.context_length, or lower \
                    llm.openai.reasoning_effort).";
    assert!(told.contains(expected), "{told}");
    let asked = re_asks(&world);
    assert!(
        asked.contains("cut at the length limit while it was still thought about; think less, and reply sooner."),
        "{asked}"
    );
    assert_eq!(world.model.requests().len(), 6);
    world.finish().await;
}

#[tokio::test]
async fn replies_that_become_unreadable_lose_nothing_that_was_done() {
    let world = World::start().await;
    let mut script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    for _ in 0..6 {
        script = script.says("I am tired.");
    }
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 3
    labels: coding agent failed
    -----
    <details><summary>🛠️ Failed: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 8 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ❌ This could not be done

    The model's replies could not be read, 5 re-asks included; the last error was: The reply holds no JSON object; a larger model may do better, or replies that are held to their form (llm.constrained_replies: true).

    The work so far is on the branch `coding-agent/1-greet-the-reader`.

    To start a new run, set the label `coding agent` again.

    <sub>8 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    let repository = world.github.default_repository();
    let saved = repository.file("coding-agent/1-greet-the-reader", "README.md");
    assert_eq!(saved.as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_plan_with_faults_is_asked_for_again_with_each_fault() {
    let world = World::start().await;
    let subtask =
        |id: &str, dependencies: &[&str]| json!({"id": id, "description": "work", "dependencies": dependencies});
    let faulty = |subtasks: serde_json::Value| {
        plan()
            .with("task_decomposition", json!({"reasoning": "", "subtasks": subtasks}))
            .with("action_plan", json!({"execution_order": [], "actions": []}))
    };
    let script = world
        .model
        .plans(faulty(json!([subtask("a", &["b"]), subtask("b", &["a"])])))
        .plans(faulty(json!([subtask("a", &[]), subtask("a", &["x"])])))
        .plans(faulty(json!([])));
    greets(script.plans(plan()));
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{}", world.story());
    let asked = re_asks(&world);
    let about_plans: Vec<&str> = asked.split("\n-----\n").take(3).collect();
    assert_snapshot!(about_plans.join("\n"), @r"
    Your reply could not be used: The plan has faults: subtasks depend on each other in a circle: a -> b -> a. Send the whole plan again, corrected.
    Reply again.
    Your reply could not be used: The plan has faults: the id 'a' is used twice; subtask 'a' depends on 'x', which is not a subtask. Send the whole plan again, corrected.
    Reply again.
    Your reply could not be used: The plan has faults: it has no subtasks. Send the whole plan again, corrected.
    Reply again.
    ");
    world.finish().await;
}

#[tokio::test]
async fn the_examples_of_the_prompt_are_no_answers() {
    let world = World::start().await;
    let form = {
        let mut form = serde_json::Value::from(Plan::of(&[""]).in_environment(""));
        form["goal_understanding"]["main_objective"] = json!("");
        form
    };
    let script = world.model.plans(form).plans(plan());
    let script = script
        .says("{\"comment\": \"why\", \"command\": {\"tool\": \"server/tool\", \"args\": {}}}")
        .says("{\"comment\": \"why\", \"done\": true}");
    greets(script);
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{}", world.story());
    let asked = re_asks(&world);
    let asked: Vec<&str> = asked.split("\n-----\n").collect();
    assert_snapshot!([asked[0], asked[2], asked[3]].join("\n"), @r#"
    Your reply could not be used: The reply repeats the form of a plan without filling it in. Reply with exactly one JSON object: {"phase":"planning","goal_understanding":{"main_objective":...,"success_criteria":[...]},"task_decomposition":{"subtasks":[{"id":...,"description":...,"dependencies":[...]}]},"action_plan":{"execution_order":[...]},"selected_environment":{"name":...},"verification":[{"command":...}],"comment":...}.
    Reply again.
    Your reply could not be used: The reply repeats the example of the prompt. Reply with exactly one JSON object: {"comment":"why","tool":"name","args":{}} to run a tool ("commands":[{"tool":...,"args":...}] for several), or {"comment":"why","done":true} when all is done.
    Reply again.
    Your reply could not be used: The reply repeats the example of the prompt. Reply with exactly one JSON object: {"comment":"why","tool":"name","args":{}} to run a tool ("commands":[{"tool":...,"args":...}] for several), or {"comment":"why","done":true} when all is done.
    Reply again.
    "#);
    world.finish().await;
}

#[tokio::test]
async fn done_beside_a_failing_call_does_not_count() {
    let world = World::start().await;
    let script = world.model.plans(plan());
    let script = executes(script, "echo broken >&2; false").and_done();
    let script = script.calls("workspace/no_such_tool", json!({})).and_done();
    writes(script, "README.md", "Hello\n").and_done();
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(
        (ended.code, issue.labels()),
        (Some(0), vec!["coding agent done".to_owned()])
    );
    let requests = world.model.requests();
    let told: Vec<_> = requests[2..4].iter().map(Request::last_user_message).collect();
    assert_snapshot!(steady(&told.join("\n-----\n")), @r#"
    {"is_error":true,"output":"broken\n[exit code 1]"}

    `done` did not count, because a call of the same reply failed. Read its result and go on.
    -----
    {"is_error":true,"output":"there is no tool workspace/no_such_tool; there are bash, read_file, write_file, str_replace, tell_program, search_code"}

    `done` did not count, because a call of the same reply failed. Read its result and go on.
    "#);
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_reply_that_was_cut_at_its_limit_is_asked_for_again() {
    let world = World::start().await;
    let script = world.model.plans(plan());
    greets(
        script
            .says("{\"comment\": \"Writing\", \"command\": {\"tool\": \"workspace/wri")
            .cut(),
    );
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{}", world.story());
    assert_snapshot!(world.model.requests()[2].last_user_message(), @r#"
    Your reply could not be used: The reply was cut at the length limit before its end; send a shorter one, large files in several calls. Reply with exactly one JSON object: {"comment":"why","tool":"name","args":{}} to run a tool ("commands":[{"tool":...,"args":...}] for several), or {"comment":"why","done":true} when all is done.
    Reply again.
    "#);
    world.finish().await;
}

#[tokio::test]
async fn a_model_with_native_calls_that_calls_none_is_told_to_call_one() {
    let mut world = World::start().await;
    world.configure(|config| config["llm"]["function_calling"] = json!(true));
    let script = world.model.plans(plan());
    let script = script.says("I have greeted the reader.").says("Now I will").cut();
    greets(script.calls("workspace/no_such_tool", json!({})));
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{}", world.story());
    let requests = world.model.requests();
    let told: Vec<_> = requests[2..4].iter().map(Request::last_user_message).collect();
    assert_snapshot!(told.join("\n"), @"
    Your reply could not be used: The reply calls no tool. Call a tool, or call `done` with a comment when the whole task is finished and checked.
    Reply again.
    Your reply could not be used: The reply was cut at the length limit before its end; send a shorter one, large files in several calls. Call a tool, or call `done` with a comment when the whole task is finished and checked.
    Reply again.
    ");
    let known = "there is no tool workspace/no_such_tool; there are bash, read_file, write_file, str_replace, tell_program, search_code, done";
    assert!(requests[4].text().contains(known), "{}", requests[4].text());
    world.finish().await;
}
