//! `doctor`: what it says on a healthy machine, and on broken ones.

mod owners;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::fake::fault::{Disturbance, Fault};
use crate::fake::github::Permission;
use crate::fake::model::{Answer, Model};
use crate::least_rights::told_by_doctor;
use crate::world::facts::{count, facts};
use crate::world::{Ended, World};

/// Returns what it printed, without what differs from machine to machine.
pub fn said(world: &World, ended: &Ended) -> String {
    static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"(?m)^(ok    Docker +).*$", "${1}ENGINE"),
            (r"after \d+\.\d s", "after TIME"),
            (r"127\.0\.0\.1:\d+", "ADDRESS"),
        ]
        .map(|(pattern, name)| (Regex::new(pattern).unwrap(), name))
        .into()
    });
    assert_eq!(ended.stderr, "");
    PATTERNS
        .iter()
        .fold(world.settled(&ended.stdout), |text, (pattern, name)| {
            pattern.replace_all(&text, *name).into_owned()
        })
}

/// A server with one tool, in the protocol's own words.
const CLOCK: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "clock", "version": "1"}},
        "tools/list": {"tools": [{"name": "now", "inputSchema": {"type": "object"}}]},
    }
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}), flush=True)
"#;

#[tokio::test]
async fn a_healthy_world_is_told_line_by_line() {
    let mut world = World::with(Model::repeating().await).await;
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["repositories"] = json!(["acme/widgets", "acme/*"]);
        config["mcp_servers"] = json!([{"mcp_server_name": "clock", "command": ["python3", "-c", CLOCK]}]);
    });
    let ended = world.command(&["doctor", "--model"]).await;

    insta::assert_snapshot!(said(&world, &ended), @r#"
    ok    state directory                 FOLDER/state
    ok    GitHub token                    works, as coding-agent-bot
    ok    GitHub repository acme/widgets  can be read and pushed to
    look  GitHub labels in acme/widgets   'coding agent' is for you to create; the others will be made when they are needed
                                          -> create that label there: work begins where people put it on
    ok    GitHub repositories acme/*      can be searched; 0 items carry the trigger label now; repositories looked at: 1
    ok    GitHub git of acme/widgets      can be fetched, and takes claims
    ok    GitLab token                    works, as coding-agent-bot
    ok    GitLab project acme/widgets     can be read and pushed to
    look  GitLab labels in acme/widgets   'coding agent' is for you to create; the others will be made when they are needed
                                          -> create that label there: work begins where people put it on
    ok    GitLab git of acme/widgets      can be fetched, and takes claims
    ok    executor                        EXECUTOR
    ok    Docker                          ENGINE
    ok    environment python              coding-agent-executor-python:latest
    ok    MCP server clock                clock/now
    ok    model                           openai at MODEL/v1 has scripted, window 128000 as configured (the server does not tell)
    ok    model's reply                   "ready" after TIME; 21 tokens in, 2 out
    ok    model's edits                   one line of a file was mended by an exact edit
    ok    model's window                  a prompt of 101439 tokens was read from its first word on; 128000 are configured

    Everything is there; 2 to look at.
    "#);
    assert_eq!(ended.code, Some(0));
    // Nothing was changed: not even a label was made.
    let written = [world.github.requests(), world.gitlab.requests()].concat();
    assert!(written.iter().all(|request| request.method == "GET"), "{written:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_pause_of_all_runs_a_broken_store_and_logs_that_cannot_be_written_are_told() {
    let mut world = World::start().await;
    world.configure(|config| config["store"] = json!({}));
    world.all_runs("pause").await;
    insta::assert_snapshot!(told_by_doctor(&world, "runs").await, @"
    look runs all are paused, and no new one is begun
    -> `coding-agent resume --all` lets them go on
    ");

    let store = world.state_dir().join("coding-agent.db");
    std::fs::write(store, "no database at all".repeat(100)).unwrap();
    let file = world.keeps("a-file", "");
    world.configure(|config| config["logs"] = json!({ "directory": file }));
    let told = told_by_doctor(&world, "store").await;
    let (what, remedy) = told.split_once("\n-> ").unwrap_or_default();
    assert!(what.starts_with("BAD store the store FOLDER/state/"), "{told}");
    assert!(remedy.starts_with("the file is damaged"), "{told}");
    insta::assert_snapshot!(told_by_doctor(&world, "logs").await, @"
    BAD logs the log folder FOLDER/a-file cannot be used: File exists (os error 17)
    -> set logs.directory to a folder this user may write to
    ");
    assert_eq!(world.command(&["doctor"]).await.code, Some(1));
    world.finish().await;
}

#[tokio::test]
async fn wrong_tokens_are_told_once() {
    let mut world = World::start().await;
    world.configure(|config| config["task_sources"] = json!(["github", "gitlab"]));
    world.github.revokes_tokens();
    world.gitlab.revokes_tokens();

    let ended = world.command(&["doctor"]).await;

    insta::assert_snapshot!(said(&world, &ended), @"
    ok    state directory     FOLDER/state
    BAD   GitHub token        the answer was 401 Unauthorized: Bad credentials
                              -> the token is wrong, expired or revoked; make a new one and set github.token (for an App: check github.app)
    BAD   GitLab token        the answer was 401 Unauthorized: 401 Unauthorized
                              -> the token is wrong, expired or revoked; make a new one with the scope 'api' and set gitlab.token
    ok    executor            EXECUTOR
    ok    Docker              ENGINE
    ok    environment python  coding-agent-executor-python:latest
    ok    model               openai at MODEL/v1 has scripted, window 128000 as configured (the server does not tell)

    2 to fix.
    ");
    assert_eq!(ended.code, Some(1));
    let for_scripts = world.command(&["doctor", "--json"]).await;
    assert_eq!(for_scripts.code, Some(1));
    let found: Value = serde_json::from_str(&for_scripts.stdout).unwrap();
    let expected = json!({
        "subject": "GitHub token",
        "verdict": "bad",
        "detail": "the answer was 401 Unauthorized: Bad credentials",
        "remedy": "the token is wrong, expired or revoked; make a new one and set github.token (for an App: check github.app)",
    });
    assert_eq!(found[1], expected);
    world.finish().await;
}

#[tokio::test]
async fn an_address_at_which_no_api_answers_is_told_as_that() {
    let mut world = World::start().await;
    world.configure(|config| config["task_sources"] = json!(["github", "gitlab"]));
    let page = Fault::Refuses(404, "<!DOCTYPE html><title>Page not found</title>");
    world.github.disturb(Disturbance::of("GET /user", page).always());
    let nothing = Fault::Refuses(404, r#"{"message":"404 Not Found"}"#);
    world.gitlab.disturb(Disturbance::of("GET /user", nothing).always());
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub token").await, @"
    BAD GitHub token the answer was 404 Not Found: (a page of HTML)
    -> check that github.api_url is the address of a GitHub REST API: https://api.github.com, or https://HOST/api/v3 of your own server
    ");
    insta::assert_snapshot!(told_by_doctor(&world, "GitLab token").await, @"
    BAD GitLab token the answer was 404 Not Found: 404 Not Found
    -> check that gitlab.api_url is the address of a GitLab: https://HOST/api/v4; if it is, the token is wrong, expired or revoked; make a new one with the scope 'api' and set gitlab.token
    ");
    world.finish().await;
}

#[tokio::test]
async fn missing_and_needless_rights_are_told() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["task_sources"] = json!(["github", "gitlab"]);
        config["github"]["repositories"] = json!(["acme/widgets", "acme/nowhere"]);
        config["gitlab"]["projects"] = json!(["acme/widgets", "nobody/*"]);
    });
    world.github.scopes("repo, delete_repo, admin:org");
    let bot = world.github.bot();
    world.github.default_repository().member(bot, Permission::Read);
    world.gitlab.scopes(&["read_api"]);

    let ended = world.command(&["doctor"]).await;

    insta::assert_snapshot!(said(&world, &ended), @"
    ok    state directory                 FOLDER/state
    look  GitHub token                    works, as coding-agent-bot; it may do more than the program needs: delete_repo, admin:org
                                          -> use a fine-grained token for these repositories alone, with Contents, Issues and Pull requests (read and write) and Commit statuses and Actions (read-only); or a classic one with the scope 'repo' alone
    BAD   GitHub repository acme/widgets  can be read, but the token's account may not push to it
                                          -> give the account the role Write, and a fine-grained token the permission 'Contents' (Read and write)
    BAD   GitHub repository acme/nowhere  the answer was 404 Not Found: Not Found
                                          -> see that acme/nowhere exists and give the token access to it: a fine-grained token or an App needs the repository permission 'Issues' (Read-only), a classic token the scope 'repo'
    ok    GitHub git of acme/widgets      can be fetched
    BAD   GitLab token                    works, as coding-agent-bot, but without the scope 'api'
                                          -> make a token with the scope 'api'
    ok    executor                        EXECUTOR
    ok    Docker                          ENGINE
    ok    environment python              coding-agent-executor-python:latest
    ok    model                           openai at MODEL/v1 has scripted, window 128000 as configured (the server does not tell)

    3 to fix, 1 to look at.
    ");
    assert_eq!(ended.code, Some(1));
    world.finish().await;
}

#[tokio::test]
async fn a_machine_without_docker_executor_tools_and_model_is_told_what_to_mend() {
    let mut world = World::start().await;
    world.sets("DOCKER_HOST", "tcp://127.0.0.1:1");
    world.configure(|config| {
        config["command_executor"]["executor_path"] = json!("/nowhere/executor");
        config["mcp_servers"] = json!([
            {"mcp_server_name": "gone", "command": ["/nowhere/server"]},
            {"mcp_server_name": "silent", "command": ["true"]},
        ]);
        config["llm"]["openai"]["base_url"] = json!("http://127.0.0.1:1/v1");
    });

    let ended = world.command(&["doctor", "--model"]).await;

    insta::assert_snapshot!(said(&world, &ended), @"
    ok    state directory                 FOLDER/state
    ok    GitHub token                    works, as coding-agent-bot
    ok    GitHub repository acme/widgets  can be read and pushed to
    look  GitHub labels in acme/widgets   'coding agent' is for you to create; the others will be made when they are needed
                                          -> create that label there: work begins where people put it on
    ok    GitHub git of acme/widgets      can be fetched, and takes claims
    BAD   executor                        the executor /nowhere/executor cannot be read: No such file or directory (os error 2)
                                          -> `make build` or `make install` puts a static one beside the program, and so does `cargo install` with RUSTFLAGS='-C target-feature=+crt-static' and --target; or set command_executor.executor_path
    BAD   Docker                          the engine at tcp://ADDRESS cannot be used: Connection refused (os error 111)
                                          -> start it, let this user into the group docker (counts from the next login), or set DOCKER_HOST
    BAD   MCP server gone                 `/nowhere/server` cannot be started: No such file or directory (os error 2)
                                          -> install it, or name it with its whole path in mcp_servers[].command
    BAD   MCP server silent               `true` failed the handshake: connection closed: initialize response
                                          -> run its command by hand: it should wait for input and print nothing
    BAD   model                           the model at http://ADDRESS/v1 cannot be reached: Connection refused (os error 111)
                                          -> start its server, or check llm.openai.base_url

    5 to fix, 1 to look at.
    ");
    assert_eq!(ended.code, Some(1));
    world.finish().await;
}

#[tokio::test]
async fn a_missing_image_and_a_missing_model_are_named() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["environments"] = json!({
            "python": "coding-agent-executor-that-never-was:latest",
            "built": {"image": "coding-agent-executor-not-built-yet:latest", "build": {"dockerfile": "Dockerfile"}},
        });
        config["llm"]["openai"]["model"] = json!("missing-model");
    });

    let ended = world.command(&["doctor"]).await;

    insta::assert_snapshot!(said(&world, &ended), @"
    ok    state directory                 FOLDER/state
    ok    GitHub token                    works, as coding-agent-bot
    ok    GitHub repository acme/widgets  can be read and pushed to
    look  GitHub labels in acme/widgets   'coding agent' is for you to create; the others will be made when they are needed
                                          -> create that label there: work begins where people put it on
    ok    GitHub git of acme/widgets      can be fetched, and takes claims
    ok    executor                        EXECUTOR
    ok    Docker                          ENGINE
    look  environment built               coding-agent-executor-not-built-yet:latest is not there yet
                                          -> nothing to do: it is built at the first need
    BAD   environment python              coding-agent-executor-that-never-was:latest, the default environment's image, is not there, and no registry has it
                                          -> build it: `scripts/setup images python` in the folder of coding-agent's source, `docker build -t coding-agent-executor-that-never-was:latest - <docker/Dockerfile-executor-python` in that of the archive or in /usr/share/coding-agent (Debian package), or `docker compose --profile executor-build build` beside the compose file
    BAD   model                           the openai server at MODEL/v1 does not list the model 'missing-model' (it has: scripted, qwen3-coder:30b, qwen/qwen3-coder-30b, gpt-5-mini, claude-sonnet-4-5)
                                          -> choose a model the server has in llm.openai.model (MODEL/v1/models lists them)

    2 to fix, 2 to look at.
    ");
    assert_eq!(ended.code, Some(1));
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_cannot_copy_a_text_is_to_write_whole_files() {
    let world = World::with(Model::repeating_and_editing("return  net*TAX").await).await;

    let ended = world.command(&["doctor", "--model"]).await;

    let said = said(&world, &ended);
    let edits: Vec<&str> = said
        .lines()
        .skip_while(|line| !line.contains("model's edits"))
        .take(2)
        .collect();
    insta::assert_snapshot!(edits.join("\n"), @"
    look  model's edits                   asked to mend one line of a small file by an exact edit, it named a text that does not occur in the file
                                          -> set llm.edits to whole and llm.function_calling to false: written whole, it mended the same file
    ");
    assert_eq!(ended.code, Some(0), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn what_the_examination_of_a_model_uses_is_counted_where_there_is_a_store() {
    let mut world = World::with(Model::repeating().await).await;
    world.configure(|config| config["budget"] = json!({ "per_day": { "tokens": 2000 } }));
    let ended = world.command(&["doctor", "--model"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(count(&world, "model_called"), 0);
    assert!(!world.state_dir().join("coding-agent.db").exists());

    assert_eq!(world.command(&["status"]).await.code, Some(0));
    let before = world.model.requests().len();
    let ended = world.command(&["doctor", "--model"]).await;

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let called = facts(&world, "model_called");
    let asked: Vec<[&Value; 3]> = called
        .iter()
        .map(|fact| [&fact["model"], &fact["role"], &fact["turn"]])
        .collect();
    let one = [&json!("llm"), &json!("planner"), &json!(0)];
    assert_eq!(asked, vec![one; world.model.requests().len() - before]);
    world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn without_the_image_that_each_run_needs_nothing_is_well() {
    let mut world = World::start().await;
    for (image, remedy) in [
        // A registry that is surely not there.
        ("127.0.0.1:1/acme/python:1", "docker pull 127.0.0.1:1/acme/python:1"),
        ("coding-agent-executor-that-never-was", "scripts/setup images python"),
    ] {
        world.configure(|config| config["command_executor"]["environments"] = json!({ "python": image }));

        let ended = world.command(&["doctor"]).await;

        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.contains("BAD   environment python"), "{}", ended.stdout);
        assert!(ended.stdout.contains(remedy), "{}", ended.stdout);
        assert!(ended.stdout.contains("\n1 to fix, 1 to look at."), "{}", ended.stdout);
    }
    // One that only some plans choose may wait.
    world.configure(|config| {
        config["command_executor"]["environments"] = json!({
            "python": "coding-agent-executor-python:latest",
            "node": "coding-agent-executor-that-never-was",
        });
    });
    let ended = world.command(&["doctor"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("look  environment node"), "{}", ended.stdout);
    world.finish().await;
}

#[tokio::test]
async fn a_weak_model_that_forgets_a_long_prompt_is_not_one_whose_server_cuts_it() {
    // It does not repeat a word from the beginning of a long text. Its server counts digits one by
    // one, and some sixty tokens that stand around every conversation, as llama.cpp's with a small
    // SmolLM2 does.
    let model = Model::answering(|request| {
        let password = request.seen.split_once("The password is ").map_or("", |(_, rest)| rest);
        let password = password.split_once(".\n").map_or("ready", |(word, _)| word);
        let is_long = request.seen.len() > 4_000;
        let mut answer = Answer::says(if is_long { "I do not know." } else { password });
        answer.prompt_tokens = Some(60 + request.seen.len() as u64 * 19 / 62);
        answer
    });
    let mut world = World::with(model.await).await;
    world.configure(|config| config["llm"]["openai"]["context_length"] = json!(4_096));
    world.model.is_alone_with_window(4_096);

    let ended = world.command(&["doctor", "--model"]).await;

    let said = said(&world, &ended);
    let window = said
        .lines()
        .find(|line| line.contains("model's window"))
        .unwrap_or_default();
    insta::assert_snapshot!(window, @"ok    model's window                  the server counted a whole prompt of 4076 tokens, and tells a window of 4096; 4096 are configured");
    assert_eq!(ended.code, Some(0), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn a_server_that_cuts_long_prompts_without_a_word_is_found_out() {
    let mut world = World::with(Model::repeating().await).await;
    let endpoint = world.model.address();
    world.configure(|config| {
        config["llm"]["provider"] = json!("ollama");
        config["llm"]["ollama"] = json!({"endpoint": endpoint, "model": "scripted", "context_length": 16_384});
    });
    world.model.cuts_prompts_at(4_096);

    let ended = world.command(&["doctor", "--model"]).await;

    let said = said(&world, &ended);
    let (_, about_the_model) = said.split_once("\nok    model ").unwrap();
    insta::assert_snapshot!(about_the_model, @r#"
                              ollama 0.32.9 at MODEL has scripted, window 131072, 16384 used
    ok    model's reply                   "ready" after TIME; 21 tokens in, 2 out
    ok    model's edits                   one line of a file was mended by an exact edit
    BAD   model's window                  of a long prompt about 4096 tokens arrive, and 16384 are configured; the server silently drops what comes before them
                                          -> lower llm.ollama.context_length to what the model and the memory allow, or raise the limit on the server (OLLAMA_CONTEXT_LENGTH; `ollama ps` shows the window in use)

    1 to fix, 1 to look at.
    "#);
    assert_eq!(ended.code, Some(1));
    world.finish().await;
}
