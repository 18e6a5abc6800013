//! Economy with a model at home: it is asked one thing at a time, stays loaded, and finds the
//! beginning of each request in its cache.

use std::collections::BTreeSet;

use serde_json::json;

use crate::fake::model::{Plan, Request};
use crate::world::World;

/// Returns a world with two tasks, and a model behind this provider that holds its first reply
/// back.
async fn two_tasks(provider: &str) -> World {
    let mut world = World::start().await;
    let (root, name) = (world.model.address(), "scripted");
    world.configure(|config| {
        config["llm"]["provider"] = json!(provider);
        config["llm"]["ollama"] = json!({ "endpoint": root, "model": name });
        config["logs"]["level"] = json!("debug");
    });
    for title in ["Greet", "Part"] {
        world
            .model
            .for_task(title)
            .plans(Plan::of(&["look at it"]))
            .holds()
            .done("Nothing to do.")
            .done("Nothing to do.");
        world.github.open_issue(title).label("coding agent");
    }
    world
}

#[tokio::test]
async fn ollama_is_asked_one_thing_at_a_time() {
    let world = two_tasks("ollama").await;
    let mut program = world.spawn(&["run"]);
    let both = async {
        world.model.until_held(1).await;
        world.until_logged("a request waits for its turn at the model").await;
        world.model.release();
        world.model.release();
    };
    program.until(&world, both).await;

    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.model.most_at_once(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_server_without_a_limit_is_asked_by_all_at_once() {
    let world = two_tasks("openai").await;
    let mut program = world.spawn(&["run"]);
    let both = async {
        world.model.until_held(2).await;
        world.model.release();
        world.model.release();
    };
    program.until(&world, both).await;

    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.model.most_at_once(), 2, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_task_that_waits_for_its_turn_is_stopped_at_once() {
    let world = two_tasks("ollama").await;
    let mut program = world.spawn(&["run"]);
    let waiting = async {
        world.model.until_held(1).await;
        world.until_logged("a request waits for its turn at the model").await;
    };
    program.until(&world, waiting).await;

    program.signal("TERM");
    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(
        ended.outcomes(),
        [
            "github:acme/widgets#1: interrupted",
            "github:acme/widgets#2: interrupted"
        ]
    );
    assert_eq!(world.model.counts().0, 1, "{}", world.story());
}

/// Every request of a run is for the same model with the same window, or the server would load it
/// anew and begin with an empty cache.
#[tokio::test]
async fn nothing_changes_between_the_requests_of_a_run_but_what_was_said() {
    let mut world = World::start().await;
    let root = world.model.address();
    world.configure(|config| {
        config["llm"]["provider"] = json!("ollama");
        config["llm"]["function_calling"] = json!(true);
        config["llm"]["ollama"] = json!({
            "endpoint": root, "model": "scripted", "context_length": 16_384, "keep_alive": -1,
        });
    });
    world
        .model
        .plans(Plan::of(&["look at it"]))
        .calls("workspace/read_file", json!({ "path": "README.md" }))
        .calls("workspace/execute_command", json!({ "command": "ls" }))
        .done("Nothing to do.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let settings: BTreeSet<String> = requests
        .iter()
        .map(|request| {
            let mut body = request.body.clone();
            for key in ["messages", "tools"] {
                body.as_object_mut().unwrap().remove(key);
            }
            body.to_string()
        })
        .collect();
    insta::assert_snapshot!(settings.into_iter().collect::<Vec<_>>().join("\n"), @r#"{"keep_alive":-1,"model":"scripted","options":{"num_ctx":16384},"shift":false,"stream":true,"truncate":false}"#);
    let tools: BTreeSet<String> = requests[1..]
        .iter()
        .map(|request| request.body["tools"].to_string())
        .collect();
    assert_eq!((requests.len(), tools.len()), (4, 1));
    // Each description is paid for in every request.
    assert_eq!(
        requests[1].offered,
        [
            "bash",
            "read_file",
            "write_file",
            "str_replace",
            "tell_program",
            "search_code",
            "done"
        ]
    );
    world.finish().await;
}

/// A reply and its result are in every later request, so both have to be short.
#[tokio::test]
async fn replies_and_results_in_json_are_short() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["write a note"]).in_environment("python"))
        .says(r#"{"comment":"Write.","tool":"write_file","args":{"path":"note.md","content":"A line.\n"}}"#)
        // The arguments beside the tool, as small models write them.
        .says(r#"{"comment":"Look.","tool":"bash","command":"cat note.md"}"#)
        .says(r#"{"comment":"Tell.","tool":"tell_program","args":{"finish_subtask":"task-1","ask_people":""}}"#)
        .done("Written.");
    world.github.open_issue("Write a note").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let system = requests[1].system();
    let tools = system.split("# Tools\n").nth(1).unwrap_or_default();
    insta::assert_snapshot!(tools, @r"
    - bash {command}: Run a bash command in the project.
    - read_file {path, view_range?: [integer]}: Read a text file, or its lines view_range [first, last].
    - write_file {path, content, mode?: create|overwrite|append}: Write a text file. Mode create (the default) fails if it exists.
    - str_replace {path, old, new}: Replace old, which must occur exactly once in the file.
    - tell_program {add_set_up?, ask_people?, finish_subtask?, revise_plan?}: Beside the next step. finish_subtask: its id; revise_plan: why; add_set_up: a command for the container of the checks; ask_people: what neither task nor files tell, and waits.
    - search_code {query, path_prefix?}: Finds the places of the project, as it was before the work, that fit a question best.
    ");
    let results: Vec<String> = requests[2..].iter().map(Request::last_user_message).collect();
    insta::assert_snapshot!(results.join("\n"), @r#"
    {"output":"wrote note.md"}
    {"output":"A line.\n[exit code 0]"}
    {"output":"Ticked."}
    "#);
    assert_eq!(world.github.pulls()[0].file("note.md").as_deref(), Some("A line.\n"));
    world.finish().await;
}

/// The tokens that mini-swe-agent 2.4.6 sends in sixty turns with the same commands and the same
/// words of the model, at four bytes each, as `make bench ONLY=peer` counts them.
const TOKENS_OF_MINI_SWE_AGENT: usize = 83_107;

/// Sixty requests repeat the prompt, the tools and each result so far, so that a sentence more in
/// one of them is paid for sixty times.
#[tokio::test]
async fn sixty_turns_send_fewer_tokens_than_mini_swe_agent_in_native_calls_and_in_json() {
    for is_native in [true, false] {
        let mut world = World::start().await;
        world.configure(|config| config["llm"]["function_calling"] = json!(is_native));
        let mut script = world
            .model
            .script()
            .plans(Plan::of(&["stand still"]).in_environment("python"));
        let note = json!({ "path": "NOTES.md", "content": "A line.\n", "mode": "overwrite" });
        for turn in 0..59 {
            let (tool, short, args) = match turn {
                0 => ("workspace/write_file", "write_file", note.clone()),
                _ => (
                    "workspace/execute_command",
                    "bash",
                    json!({ "command": format!("true {turn}") }),
                ),
            };
            script = if is_native {
                script.calls(tool, args).because("Standing still.")
            } else {
                script.says(&json!({ "comment": "Standing still.", "tool": short, "args": args }).to_string())
            };
        }
        script.done("Stood still.");
        world.github.open_issue("Stand still").label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        // The plan's request, and sixty of the work.
        let requests = world.model.requests();
        assert_eq!(requests.len(), 61, "{}", world.story());
        let bytes = |request: &Request| {
            let tools = request.body.get("tools").map_or(0, |tools| tools.to_string().len());
            request.seen.len() + tools
        };
        let tokens = requests.iter().map(bytes).sum::<usize>() / 4;
        assert!(
            tokens < TOKENS_OF_MINI_SWE_AGENT,
            "{tokens} tokens with native calls: {is_native}"
        );
        world.finish().await;
    }
}
