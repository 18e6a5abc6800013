//! Refusals by rules: an answer with a number, a line in the journal, and, three times in a row,
//! the end of the run.

use serde_json::{Value, json};

use crate::fake::model::{Plan, Script};
use crate::world::World;
use crate::world::normalized::told;
use crate::world::scripts::COMMAND;

const READ: &str = "workspace/read_file";
const WRITE: &str = "workspace/write_file";

/// A rules file that denies a tool and leaves a file out.
const RULES: (&str, &str) = (
    ".coding-agent-rules.yaml",
    "denied_tools: [workspace/undo_edit]\nfile_patterns:\n  exclude: [private/**]\n",
);

fn plan(world: &World) -> Script<'_> {
    world.model.plans(Plan::of(&["try it"]).in_environment("python"))
}

/// Returns a made-up token, put together here so that no scanner takes this file for a leak.
fn token() -> String {
    format!("ghp_{}", "Ab3dEf6hIj9lMn2p".repeat(3))
}

/// Returns what the model was told after the calls of a reply.
fn outputs(results: &str) -> Vec<String> {
    let results: Value = serde_json::from_str(results).unwrap();
    // One result stands alone.
    let several = results["previous_output"].as_array().cloned();
    let results = several.unwrap_or_else(|| vec![results]);
    let outputs = results
        .iter()
        .map(|result| result["output"].as_str().unwrap().replace('\n', " ⏎ "));
    outputs.collect()
}

/// Returns the lines of the journal with this fact, as `fields` of them.
fn noted(world: &World, fact: &str, fields: &[&str]) -> Vec<String> {
    let entries = world.journal().into_iter().filter(|entry| entry["fact"] == fact);
    let shown = entries.map(|entry| {
        let values = fields.iter().map(|field| match &entry[*field] {
            Value::String(text) => text.replace('\n', " ⏎ "),
            other => other.to_string(),
        });
        values.collect::<Vec<_>>().join(" | ")
    });
    shown.collect()
}

/// Returns calls that guards let pass and calls that they refuse, for one reply.
fn attempts() -> [(&'static str, Value); 18] {
    let large = "x".repeat(3000);
    let write = |path: &str, content: &str| (WRITE, json!({"path": path, "content": content}));
    let read = |path: &str| (READ, json!({ "path": path }));
    [
        write("notes.md", "One\nTwo\n"),
        write("docs/Makefile", "all:\n"),
        read("notes.md"),
        (
            "workspace/str_replace",
            json!({"path": "notes.md", "old": "Two", "new": "Three"}),
        ),
        (
            "workspace/insert",
            json!({"path": "notes.md", "line": 0, "text": "Zero\n"}),
        ),
        ("workspace/undo_edit", json!({"path": "notes.md"})),
        ("workspace/list_files", json!({"path": "docs"})),
        write("notes.md", "again"),
        read("missing.md"),
        read("../../etc/passwd"),
        write("../outside.md", "x"),
        write(".git/config.txt", "x"),
        write("new/tool.sh", "x"),
        ("workspace/insert", json!({"path": "link.md", "line": 0, "text": "x"})),
        write("long.md", &large),
        read("large.md"),
        read("latin.md"),
        (READ, json!({"path": "notes.md", "lines": 3})),
    ]
}

#[tokio::test]
async fn each_guard_of_the_file_tools_answers_with_its_number_and_each_call_is_in_the_journal() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["files"] =
            json!({"allowed_extensions": [".md", ".TXT", "Makefile"], "max_bytes": 2048});
        // Ten calls of one reply fail here.
        config["planning"] = json!({ "circuit_breaker": { "tool_failures": 0 } });
    });
    let prepare = "printf '\\377\\376' > latin.md && head -c 3000 /dev/zero | tr '\\0' x > large.md && touch tool.sh && ln -s tool.sh link.md";
    plan(&world)
        .calls(COMMAND, json!({ "command": prepare }))
        .calls_all(attempts())
        .done("Tried.");
    world.github.open_issue("Try the tools").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let answers = outputs(&world.model.requests().last().unwrap().last_user_message());
    insta::assert_snapshot!(answers.join("\n"), @"
    wrote notes.md
    wrote docs/Makefile
    One ⏎ Two ⏎ 
    replaced at line 2 of notes.md
    inserted after line 0 of notes.md
    took back the last edit of notes.md
    Makefile	5
    exists 409: notes.md is there already; use mode overwrite or append, or str_replace
    not_found 404: missing.md does not exist; the project has README.md, docs/, large.md, latin.md, link.md, notes.md, tool.sh
    path_escape 400: ../../etc/passwd leads out of the project; use a path inside it
    path_escape 400: ../outside.md leads out of the project; use a path inside it
    path_escape 400: .git/config.txt belongs to git; use git commands instead
    ext_not_allowed 400: new/tool.sh is no file that may be written: the configuration (command_executor.files.allowed_extensions) allows .md .txt makefile; do without it
    ext_not_allowed 400: link.md is no file that may be written: the configuration (command_executor.files.allowed_extensions) allows .md .txt makefile; do without it
    too_large 413: long.md is larger than 2 KiB; use execute_command (sed, head, a script) for it
    too_large 413: large.md is larger than 2 KiB; use execute_command (sed, head, a script) for it
    not_utf8 415: latin.md is no UTF-8 text; use execute_command for it
    the arguments of read_file cannot be used: lines: unknown field `lines`, expected `path` or `view_range`
    ");
    let fields = ["tool", "path", "size", "status"];
    let calls = noted(&world, "tool_called", &fields);
    insta::assert_snapshot!(calls.join("\n"), @"
    workspace/execute_command | null | null | null
    workspace/write_file | notes.md | 8 | 200
    workspace/write_file | docs/Makefile | 5 | 200
    workspace/read_file | notes.md | 8 | 200
    workspace/str_replace | notes.md | 10 | 200
    workspace/insert | notes.md | 15 | 200
    workspace/undo_edit | notes.md | 10 | 200
    workspace/list_files | docs | null | 200
    workspace/write_file | notes.md | null | 409
    workspace/read_file | missing.md | null | 404
    workspace/read_file | ../../etc/passwd | null | 400
    workspace/write_file | ../outside.md | null | 400
    workspace/write_file | .git/config.txt | null | 400
    workspace/write_file | new/tool.sh | null | 400
    workspace/insert | link.md | null | 400
    workspace/write_file | long.md | null | 413
    workspace/read_file | large.md | null | 413
    workspace/read_file | latin.md | null | 415
    workspace/read_file | notes.md | null | 500
    ");
    // One trace id for the whole run.
    let runs = noted(&world, "tool_called", &["run"]);
    let claimed = noted(&world, "claimed", &["run"]);
    assert!(runs.iter().all(|run| *run == claimed[0]), "{runs:?} {claimed:?}");
    let refused = noted(&world, "policy_refused", &["rule"]);
    assert_eq!(
        refused,
        [
            "path_escape",
            "path_escape",
            "path_escape",
            "ext_not_allowed",
            "ext_not_allowed"
        ]
    );
    assert_eq!(
        world.github.pulls()[0].files(),
        [
            "README.md",
            "docs/Makefile",
            "large.md",
            "latin.md",
            "link.md",
            "notes.md",
            "tool.sh"
        ],
        "nothing was made on the way to a refusal"
    );
    world.finish().await;
}

#[tokio::test]
async fn three_refusals_in_a_row_end_the_run_and_none_of_them_repeats_a_secret() {
    let world = World::start().await;
    world.github.default_repository().commit("main", "Rules", &[RULES]);
    let token = token();
    plan(&world)
        .calls("workspace/undo_edit", json!({"path": "README.md"}))
        // What is only not there is no matter of policy, and no success either.
        .calls(READ, json!({"path": "missing.md"}))
        .calls(WRITE, json!({"path": format!("private/{token}.md"), "content": "x"}))
        .calls_all([
            (READ, json!({"path": format!("/etc/{token}")})),
            (WRITE, json!({"path": "@all.md", "content": "[redacted:github-token]"})),
        ]);
    let issue = world.github.open_issue("Try it all").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(2), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    insta::assert_snapshot!(told(&world, issue.comments_of(world.github.bot()).last().unwrap()), @"
    ### ❌ This could not be done

    The model asked 3 times in a row for what rules forbid, and nothing else came of it:

    * ``denied_tool 403: the project's rules deny workspace/undo_edit: denied_tools in .coding-agent-rules.yaml names `workspace/undo_edit`; do without it``
    * `left_out 403: 'private/[redacted:github-token]' is left out by file_patterns in .coding-agent-rules.yaml; do without it`
    * `path_escape 400: /etc/[redacted:github-token] leads out of the project; use a path inside it`

    Allow what is really needed where the rule stands, or ask for something that does without it.

    To start a new run, set the label `coding agent` again.

    <sub>5 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    insta::assert_snapshot!(noted(&world, "policy_refused", &["rule", "reason"]).join("\n"), @r#"
    denied_tool | denied_tool 403: the project's rules deny workspace/undo_edit: denied_tools in .coding-agent-rules.yaml names `workspace/undo_edit`; do without it
    left_out | left_out 403: 'private/[redacted:github-token]' is left out by file_patterns in .coding-agent-rules.yaml; do without it
    path_escape | path_escape 400: /etc/[redacted:github-token] leads out of the project; use a path inside it
    redaction_mark | redaction_mark 403: nothing was written to "@all.md": `[redacted:github-token]` stands in what you were shown for a value that is hidden from you, the file holds the value itself. Leave that line as it is and change the lines around it with str_replace or a command (sed), without the mark; where a value is to be set, read it from the environment
    "#);
    let warned = |text: String| text.contains("The next refusal ends the run.");
    let requests = world.model.requests();
    let warnings: Vec<bool> = requests
        .iter()
        .map(|request| warned(request.last_user_message()))
        .collect();
    assert_eq!(warnings, [false, false, false, false, true]);
    let everything = format!("{}{}{}", ended.stdout, ended.stderr, issue.timeline());
    assert!(!everything.contains(&token), "{everything}");
    let search = std::process::Command::new("grep")
        .args(["-rlF", &token])
        // The store holds what the model said, word for word; nobody is shown that.
        .arg(world.folder().join("logs"))
        .output();
    assert_eq!(String::from_utf8_lossy(&search.unwrap().stdout), "");
    world.finish().await;
}

#[tokio::test]
async fn a_host_that_is_not_reached_is_noted_where_the_command_fails_by_it() {
    let world = World::start().await;
    let asks = |number: usize| json!({"command": format!("curl -fsS http://evil-{number}.example/")});
    plan(&world)
        // One that does not matter to the command is no refusal of it.
        .calls(COMMAND, json!({"command": "curl -fsS http://evil-0.example/; true"}))
        .calls(COMMAND, asks(1))
        .calls(COMMAND, asks(2))
        .calls(COMMAND, asks(3))
        .done("Asked.");
    let issue = world.github.open_issue("Ask around").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(noted(&world, "policy_refused", &["rule"]), ["egress"; 3]);
    assert_eq!(noted(&world, "egress_refused", &["host"]).len(), 4);
    let told = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(
        told.contains("command_executor.network.allow: [evil-3.example]"),
        "{told}"
    );
    world.finish().await;
}

#[tokio::test]
async fn refusals_while_planning_count_as_well() {
    let world = World::start().await;
    world
        .github
        .default_repository()
        .commit("main", "Rules", &[RULES, ("private/key.txt", "k\n")]);
    let look = json!({"path": "private/key.txt"});
    world
        .model
        .calls("repository/read_file", look.clone())
        .calls("repository/read_file", look.clone())
        .calls("repository/read_file", look);
    let issue = world.github.open_issue("Look").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(2), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    assert_eq!(
        noted(&world, "tool_called", &["tool", "path", "status"]),
        ["repository/read_file | private/key.txt | 403"; 3]
    );
    assert_eq!(noted(&world, "policy_refused", &["rule"]), ["left_out"; 3]);
    world.finish().await;
}
