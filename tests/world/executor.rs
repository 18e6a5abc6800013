//! The executor as the worker uses it: the real program, spoken to over MCP. (In a container it is
//! the same program.)

use async_trait::async_trait;
use coding_agent::tool::connect::{Connect, Connection};
use coding_agent::tool::mcp::McpServer;
use coding_agent::tool::{ToolError, ToolOutput, ToolServer};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

use crate::processes::{kill, mark, until, with_mark};

/// An executor on a folder of its own.
struct Workspace {
    server: McpServer,
    folder: TempDir,
    executor: Arc<AtomicU32>,
}

/// Starts the executor on this machine.
struct Local {
    root: PathBuf,
    executor: Arc<AtomicU32>,
}

#[async_trait]
impl Connect for Local {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_coding-agent-executor"))
            .arg("--root")
            .arg(&self.root)
            .args(["--max-output-bytes", "20000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        self.executor.store(child.id().unwrap(), Ordering::SeqCst);
        Ok(Connection {
            reader: Box::new(child.stdout.take().unwrap()),
            writer: Box::new(child.stdin.take().unwrap()),
            end: Box::new(move || {
                Box::pin(async move {
                    child.wait().await.unwrap();
                })
            }),
        })
    }
}

impl Workspace {
    fn open() -> Self {
        Self::with_patience(Duration::from_mins(1))
    }

    fn with_patience(patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let executor = Arc::default();
        let local = Local {
            root: folder.path().to_owned(),
            executor: Arc::clone(&executor),
        };
        Self {
            server: McpServer::new("workspace", None, None, patience, Box::new(local)),
            folder,
            executor,
        }
    }

    async fn call(&self, tool: &str, args: Value) -> ToolOutput {
        self.try_call(tool, args).await.unwrap().0
    }

    async fn try_call(&self, tool: &str, args: Value) -> Result<(ToolOutput, Value), ToolError> {
        let args = serde_json::from_value(args).unwrap();
        let output = self.server.call(tool, &args).await?;
        let fields = output.structured.clone();
        Ok((output, fields.unwrap_or_default()))
    }

    /// Runs a command; returns its output without the line about how it ended, and the fields.
    async fn run(&self, command: &str) -> (String, Value) {
        let (output, fields) = self
            .try_call("execute_command", json!({"command": command}))
            .await
            .unwrap();
        let (said, _) = output.text.rsplit_once('[').unwrap();
        (said.to_owned(), fields)
    }

    async fn succeeds(&self, tool: &str, args: Value) -> String {
        let output = self.call(tool, args).await;
        assert!(!output.is_error, "{}", output.text);
        output.text
    }

    async fn fails(&self, tool: &str, args: Value) -> String {
        let output = self.call(tool, args).await;
        assert!(output.is_error, "{}", output.text);
        output.text
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn executor(&self) -> u32 {
        self.executor.load(Ordering::SeqCst)
    }

    async fn finish(self) {
        self.server.close().await;
    }
}

#[tokio::test]
async fn seven_tools_are_offered() {
    let workspace = Workspace::open();
    let names: Vec<_> = workspace
        .server
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(
        names,
        [
            "workspace/execute_command",
            "workspace/list_files",
            "workspace/read_file",
            "workspace/write_file",
            "workspace/str_replace",
            "workspace/insert",
            "workspace/undo_edit"
        ]
    );
    workspace.finish().await;
}

#[tokio::test]
async fn a_command_answers_with_both_streams_in_order_and_its_exit_code() {
    let workspace = Workspace::open();
    let (said, fields) = workspace.run("echo one; echo two >&2; echo three; exit 3").await;
    assert_eq!(said, "one\ntwo\nthree\n");
    assert_eq!((&fields["exit_code"], &fields["timed_out"]), (&json!(3), &json!(false)));

    let (said, fields) = workspace.run("kill -9 $$").await;
    assert_eq!((said.as_str(), &fields["signal"]), ("", &json!(9)));
    let (said, _) = workspace
        .run("printf 'a\\0\\377b'; read x || echo 'no stdin'; echo $CI $PAGER")
        .await;
    assert_eq!(said, "a\u{fffd}\u{fffd}bno stdin\ntrue cat\n");

    fs::create_dir(workspace.path("sub")).unwrap();
    let here = json!({"command": "basename $PWD", "working_directory": "sub"});
    assert!(
        workspace
            .succeeds("execute_command", here)
            .await
            .starts_with("sub\n[exit code 0")
    );
    let nowhere = json!({"command": "true", "working_directory": "none"});
    assert!(
        workspace
            .fails("execute_command", nowhere)
            .await
            .starts_with("not_found 404: none does not exist")
    );
    let long = json!({"command": format!("true {}", "x".repeat(200_000))});
    assert!(
        workspace
            .fails("execute_command", long)
            .await
            .contains("belongs in a file")
    );
    workspace.finish().await;
}

#[tokio::test]
async fn a_time_out_leaves_no_process() {
    let workspace = Workspace::open();
    let mark = mark();
    let command = format!(
        "trap '' TERM; sleep {mark} & setsid sleep {mark} & (env -i setsid sh -c 'trap \"\" TERM; sleep {mark}; :' &)
         echo started; sleep {mark}; sleep {mark}"
    );
    let wanted = json!({"command": command, "timeout_seconds": 3});
    let (output, fields) = workspace.try_call("execute_command", wanted).await.unwrap();
    assert_eq!(with_mark(&mark), [0; 0]);
    assert!(
        output.is_error && output.text.starts_with("started\n[timed out after 3.0 s; "),
        "{}",
        output.text
    );
    assert_eq!(fields["timed_out"], true);
    workspace.finish().await;
}

#[tokio::test]
async fn a_time_out_spares_the_commands_beside_it() {
    let workspace = Workspace::open();
    let (spared, ended) = (mark(), mark());
    let long = json!({"command": format!("setsid sleep {spared} & sleep {spared}")});
    let short = json!({"command": format!("setsid sleep {ended} & sleep {ended}"), "timeout_seconds": 1});
    tokio::select! {
        _ = workspace.call("execute_command", long) => panic!("the long command has ended"),
        () = async {
            until(&spared, 2).await;
            workspace.call("execute_command", short).await;
            assert_eq!((with_mark(&spared).len(), with_mark(&ended).len()), (2, 0));
        } => {}
    }
    // The long call was dropped with its branch, which cancels it.
    until(&spared, 0).await;
    workspace.finish().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled() {
    let workspace = Workspace::with_patience(Duration::from_secs(5));
    let mark = mark();
    let wanted = json!({"command": format!("sleep {mark}")});
    let given_up = workspace.try_call("execute_command", wanted).await.unwrap_err();
    assert!(
        matches!(&given_up, ToolError::TellModel(text) if text.contains("within 5 s")),
        "{given_up}"
    );
    until(&mark, 0).await;
    assert_eq!(workspace.run("echo alive").await.0, "alive\n");
    workspace.finish().await;
}

#[tokio::test]
async fn a_server_started_in_the_background_lives_until_the_end() {
    let workspace = Workspace::open();
    let mark = mark();
    let command = format!("(while :; do echo noise; sleep 0.01; done) & sleep {mark} & sleep 0.5; echo ready");
    let text = workspace.succeeds("execute_command", json!({"command": command})).await;
    assert!(text.starts_with("ready\n") || text.starts_with("noise\n"), "{text}");
    assert!(
        text.contains("[still running in the background: ") && text.contains(" sleep"),
        "{text}"
    );
    assert_eq!(workspace.run("echo next").await.0, "next\n");
    assert_eq!(with_mark(&mark).len(), 1);
    workspace.finish().await;
    assert_eq!(with_mark(&mark), [0; 0]);
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let workspace = Workspace::open();
    workspace.run("mkfifo pipe").await;
    let (read, _) = tokio::join!(workspace.run("cat pipe"), workspace.run("echo hello > pipe"));
    assert_eq!(read.0, "hello\n");
    workspace.finish().await;
}

#[tokio::test]
async fn fifty_megabytes_of_output_are_cut_while_they_are_read() {
    let workspace = Workspace::open();
    let (said, fields) = workspace
        .run("echo head; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo tail")
        .await;
    assert!(said.starts_with("head\nxxx") && said.ends_with("xxx\ntail\n"));
    assert!(said.len() < 21_000, "{}", said.len());
    assert_eq!(fields["cut_bytes"], 50_000_011 - 20_000);
    assert!(said.contains(" bytes cut ..."));

    let endless = json!({"command": "yes", "timeout_seconds": 3});
    let text = workspace.fails("execute_command", endless).await;
    assert!(text.len() < 21_000 && text.starts_with("y\ny\n"), "{}", text.len());

    let status = fs::read_to_string(format!("/proc/{}/status", workspace.executor())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 100_000, "{kilobytes} kB");
    workspace.finish().await;
}

#[tokio::test]
async fn a_killed_executor_takes_its_commands_along_and_comes_back_once() {
    let workspace = Workspace::open();
    let mark = mark();
    for attempt in ["first", "second"] {
        let wanted = json!({"command": format!("setsid sleep {mark} & sleep {mark}")});
        let (answer, ()) = tokio::join!(workspace.try_call("execute_command", wanted), async {
            until(&mark, 2).await;
            kill(workspace.executor());
        });
        let error = answer.unwrap_err();
        match attempt {
            "first" => assert!(
                matches!(&error, ToolError::TellModel(text) if text.contains("started again")),
                "{error}"
            ),
            _ => assert!(matches!(error, ToolError::Lost { .. }), "{error}"),
        }
        until(&mark, 0).await;
    }
    workspace.finish().await;
}

#[tokio::test]
async fn a_file_is_written_edited_and_taken_back() {
    let workspace = Workspace::open();
    let file = json!({"path": "src/new/a.txt"});
    workspace
        .succeeds(
            "write_file",
            json!({"path": "src/new/a.txt", "content": "one\ntwo\ntwo\n"}),
        )
        .await;
    let again = json!({"path": "src/new/a.txt", "content": "x"});
    assert!(workspace.fails("write_file", again).await.starts_with("exists 409: "));

    let twice = json!({"path": "src/new/a.txt", "old": "two", "new": "2"});
    assert_eq!(
        workspace.fails("str_replace", twice).await,
        "exists 409: old occurs 2 times in src/new/a.txt, at the lines 2, 3; add lines around it until it is unique"
    );
    let once = json!({"path": "./src/new/../new/a.txt", "old": "one", "new": "1"});
    workspace.succeeds("str_replace", once).await;
    workspace
        .succeeds(
            "insert",
            json!({"path": workspace.path("src/new/a.txt"), "line": 1, "text": "1.5"}),
        )
        .await;
    workspace
        .succeeds(
            "write_file",
            json!({"path": "src/new/a.txt", "content": "end", "mode": "append"}),
        )
        .await;
    assert_eq!(
        workspace.succeeds("read_file", file.clone()).await,
        "1\n1.5\ntwo\ntwo\nend"
    );
    let range = json!({"path": "src/new/a.txt", "view_range": [2, 3]});
    assert_eq!(
        workspace.succeeds("read_file", range).await,
        "1.5\ntwo\n[lines 2 to 3 of 5]"
    );
    let beyond = json!({"path": "src/new/a.txt", "view_range": [6, -1]});
    assert!(workspace.fails("read_file", beyond).await.contains("the lines 1 to 5"));

    for expected in ["1\n1.5\ntwo\ntwo\n", "1\ntwo\ntwo\n", "one\ntwo\ntwo\n"] {
        workspace.succeeds("undo_edit", file.clone()).await;
        assert_eq!(fs::read_to_string(workspace.path("src/new/a.txt")).unwrap(), expected);
    }
    workspace.succeeds("undo_edit", file.clone()).await;
    assert!(!workspace.path("src/new/a.txt").exists());
    assert!(workspace.fails("undo_edit", file).await.starts_with("not_found 404: "));
    workspace.finish().await;
}

#[tokio::test]
async fn an_edit_is_not_taken_back_over_somebody_elses_change() {
    let workspace = Workspace::open();
    workspace
        .succeeds("write_file", json!({"path": "a", "content": "mine"}))
        .await;
    workspace.run("echo theirs > a").await;
    assert!(
        workspace
            .fails("undo_edit", json!({"path": "a"}))
            .await
            .contains("changed by something else")
    );
    assert_eq!(fs::read_to_string(workspace.path("a")).unwrap(), "theirs\n");
    workspace.finish().await;
}

#[tokio::test]
async fn no_path_leads_out_of_the_project() {
    let workspace = Workspace::open();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), workspace.path("out")).unwrap();
    symlink(outside.path().join("secret"), workspace.path("link")).unwrap();
    symlink("/no/such/thing", workspace.path("dangling")).unwrap();
    let absolute = outside.path().join("secret");
    let neighbour = format!("{}2/secret", workspace.folder.path().display());
    for path in [
        "../x",
        "a/../../x",
        "out/secret",
        "link",
        "/etc/passwd",
        &neighbour,
        absolute.to_str().unwrap(),
    ] {
        for (tool, args) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "content": "x", "mode": "overwrite"})),
            ("str_replace", json!({"path": path, "old": "secret", "new": "x"})),
        ] {
            let text = workspace.fails(tool, args).await;
            let refused = text.starts_with("path_escape 400: ") || text.starts_with("not_found 404: ");
            assert!(refused, "{tool} {path}: {text}");
        }
    }
    let write = |path: &str| json!({"path": path, "content": "x", "mode": "overwrite"});
    assert!(
        workspace
            .fails("write_file", write("out/new"))
            .await
            .starts_with("path_escape 400: ")
    );
    workspace.fails("write_file", write("dangling")).await;
    assert!(
        workspace
            .fails("list_files", json!({"path": "out"}))
            .await
            .starts_with("path_escape 400: ")
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(absolute).unwrap(), "secret");
    workspace.finish().await;
}

#[tokio::test]
async fn git_is_read_only_in_every_spelling() {
    let workspace = Workspace::open();
    fs::create_dir(workspace.path(".git")).unwrap();
    fs::write(workspace.path(".git/config"), "[core]").unwrap();
    symlink(".git", workspace.path("innocent")).unwrap();
    symlink(".git/config", workspace.path("config")).unwrap();
    for path in [
        ".git/config",
        ".GIT/hooks/x",
        "sub/.git/x",
        ".git./x",
        "innocent/config",
        "innocent/x",
        "config",
        ".git",
    ] {
        let write = json!({"path": path, "content": "x", "mode": "overwrite"});
        let text = workspace.fails("write_file", write).await;
        assert!(text.starts_with("path_escape 400: "), "{path}: {text}");
    }
    assert_eq!(
        workspace.succeeds("read_file", json!({"path": ".git/config"})).await,
        "[core]"
    );
    assert_eq!(fs::read_dir(workspace.path(".git")).unwrap().count(), 1);
    workspace
        .succeeds("write_file", json!({"path": ".gitignore", "content": "x"}))
        .await;
    workspace.finish().await;
}

#[tokio::test]
async fn only_text_of_bounded_size_is_handled() {
    let workspace = Workspace::open();
    fs::write(workspace.path("large"), "x".repeat(512 * 1024 + 1)).unwrap();
    fs::write(workspace.path("binary"), b"\xff\xfe").unwrap();
    assert!(
        workspace
            .fails("read_file", json!({"path": "large"}))
            .await
            .starts_with("too_large 413: ")
    );
    assert!(
        workspace
            .fails("read_file", json!({"path": "binary"}))
            .await
            .starts_with("not_utf8 415: ")
    );
    assert!(
        workspace
            .fails("read_file", json!({"path": "none"}))
            .await
            .starts_with("not_found 404: ")
    );
    let more = json!({"path": "new", "content": "x".repeat(512 * 1024 + 1)});
    assert!(workspace.fails("write_file", more).await.starts_with("too_large 413: "));
    assert!(!workspace.path("new").exists());
    workspace.run("mkfifo pipe").await;
    assert!(
        workspace
            .fails("read_file", json!({"path": "pipe"}))
            .await
            .contains("no regular file")
    );
    assert!(
        workspace
            .fails("read_file", json!({"path": "."}))
            .await
            .contains("is a folder")
    );
    assert!(
        workspace
            .fails("insert", json!({"path": "no/such/file", "line": 0, "text": "x"}))
            .await
            .contains("404")
    );
    assert!(!workspace.path("no").exists());

    fs::write(workspace.path("long"), "0123456789\n".repeat(4000)).unwrap();
    let text = workspace.succeeds("read_file", json!({"path": "long"})).await;
    assert!(
        text.ends_with("\n[lines 1 to 1818 of 4000]"),
        "{}",
        &text[text.len() - 40..]
    );
    workspace.finish().await;
}

#[tokio::test]
async fn an_edit_keeps_mode_links_and_line_ends_and_leaves_no_draft() {
    let workspace = Workspace::open();
    fs::write(workspace.path("run.sh"), "echo\r\nexit\r\n").unwrap();
    fs::set_permissions(workspace.path("run.sh"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("run.sh", workspace.path("alias")).unwrap();
    assert_eq!(
        workspace.succeeds("read_file", json!({"path": "alias"})).await,
        "echo\nexit\n"
    );
    workspace
        .succeeds(
            "str_replace",
            json!({"path": "alias", "old": "echo\nexit", "new": "a\nb"}),
        )
        .await;
    assert_eq!(fs::read_to_string(workspace.path("run.sh")).unwrap(), "a\r\nb\r\n");
    assert_eq!(
        fs::metadata(workspace.path("run.sh")).unwrap().permissions().mode() & 0o777,
        0o751
    );
    assert!(workspace.path("alias").is_symlink());
    workspace.succeeds("undo_edit", json!({"path": "run.sh"})).await;
    assert_eq!(fs::read_to_string(workspace.path("alias")).unwrap(), "echo\r\nexit\r\n");
    assert_eq!(fs::read_dir(workspace.folder.path()).unwrap().count(), 2);
    workspace.finish().await;
}

#[tokio::test]
async fn a_folder_is_listed_level_by_level() {
    let workspace = Workspace::open();
    workspace
        .run(
            "mkdir -p .git deep/er src empty; touch b a deep/er/1 deep/er/2 src/x; ln -s /etc out; touch $'new\\nline'",
        )
        .await;
    let text = workspace.succeeds("list_files", json!({"path": "."})).await;
    assert_eq!(text, "a\t0\nb\t0\ndeep/\nempty/\nnew\u{fffd}line\t0\nout@\nsrc/");
    let all = json!({"path": "", "recursive": true});
    let text = workspace.succeeds("list_files", all).await;
    assert_eq!(
        text,
        "a\t0\nb\t0\ndeep/\ndeep/er/\ndeep/er/1\t0\ndeep/er/2\t0\nempty/\nnew\u{fffd}line\t0\nout@\nsrc/\nsrc/x\t0"
    );
    let some = json!({"path": ".", "recursive": true, "max_items": 9});
    let text = workspace.succeeds("list_files", some).await;
    assert!(
        text.contains("src/x\t0\n[cut after 9 items; ") && !text.contains("er/1"),
        "{text}"
    );
    assert_eq!(
        workspace.succeeds("list_files", json!({"path": "empty"})).await,
        "[empty folder]"
    );
    workspace
        .run("printf 12345 > src/B.PY; touch src/c.pyc deep/d.py")
        .await;
    for (asked, expected) in [
        (
            json!({"path": ".", "recursive": true, "extensions": [".py"]}),
            "deep/d.py\t0\nsrc/B.PY\t5",
        ),
        (
            json!({"path": "src", "extensions": ["py", "*.pyc"], "max_items": -1}),
            "B.PY\t5\nc.pyc\t0",
        ),
        (json!({"path": ".", "extensions": ["py"]}), "deep/\nempty/\nsrc/"),
        (
            json!({"path": "empty", "recursive": true, "extensions": ["py"], "max_items": 0}),
            "[no such files]",
        ),
    ] {
        assert_eq!(
            workspace.succeeds("list_files", asked.clone()).await,
            expected,
            "{asked}"
        );
    }
    assert!(
        workspace
            .fails("list_files", json!({"path": "a"}))
            .await
            .starts_with("not_found 404: ")
    );
    workspace.finish().await;
}

#[tokio::test]
async fn a_command_says_what_it_changed_in_the_project() {
    let workspace = Workspace::open();
    let changed = |fields: &Value| fields["changed"].clone();
    let (_, fields) = workspace
        .run("printf 'one\\ntwo\\n' > a.txt; mkdir -p node_modules && touch node_modules/x")
        .await;
    let new = json!({"path": "a.txt", "how": "new", "added": 2, "removed": 0});
    assert_eq!(changed(&fields), json!({"changes": [new], "more": 0}));

    let (_, fields) = workspace.run("sed -i s/three/3/ a.txt").await;
    assert_eq!(changed(&fields), json!({"changes": [], "more": 0}));
    // What a file tool changes is not the command's.
    workspace
        .succeeds("str_replace", json!({"path": "a.txt", "old": "two", "new": "2"}))
        .await;
    let (_, fields) = workspace.run("sed -i s/one/1/ a.txt; chmod +x a.txt").await;
    let edited = json!({"path": "a.txt", "how": "changed", "added": 1, "removed": 1});
    assert_eq!(changed(&fields), json!({"changes": [edited], "more": 0}));
    let (_, fields) = workspace.run("chmod -x a.txt; ln -s a.txt b").await;
    assert_eq!(
        changed(&fields)["changes"],
        json!([{"path": "a.txt", "how": "mode"}, {"path": "b", "how": "new"}])
    );
    workspace.finish().await;
}

#[tokio::test]
async fn a_text_that_does_not_occur_is_answered_with_the_closest_lines() {
    let workspace = Workspace::open();
    let lines: Vec<String> = (1..=30).map(|line| format!("    total_{line} = add({line})")).collect();
    let text = lines.join("\n");
    workspace
        .succeeds("write_file", json!({"path": "a.py", "content": text}))
        .await;
    let misses = json!({"path": "a.py", "old": "total_7 = plus(7)", "new": "x"});
    assert_eq!(
        workspace.fails("str_replace", misses).await,
        "not_found 404: old does not occur in a.py; copy it exactly. The closest lines, with their numbers:\n6:     total_6 = add(6)\n\
         7:     total_7 = add(7)\n8:     total_8 = add(8)"
    );
    // With the numbers, as they were shown.
    let numbered = json!({"path": "a.py", "old": "7:     total_7 = add(7)", "new": "7:     total_7 = 7"});
    workspace.succeeds("str_replace", numbered).await;
    let trailing = json!({"path": "a.py", "old": "    total_7 = 7  \n    total_8 = add(8) ", "new": "    pass"});
    workspace.succeeds("str_replace", trailing).await;
    let range = json!({"path": "a.py", "view_range": [0, 8]});
    assert!(
        workspace
            .succeeds("read_file", range)
            .await
            .contains("total_6 = add(6)\n    pass\n    total_9"),
    );
    workspace.finish().await;
}

#[tokio::test]
async fn harmless_slips_are_taken_as_meant_and_others_are_told_what_there_is() {
    let workspace = Workspace::open();
    workspace
        .run("mkdir -p src/app && printf 'a\\n' > src/app/views.py")
        .await;
    let mut root = workspace.folder.path().components().rev();
    let (name, parent) = (root.next().unwrap(), root.next().unwrap());
    let repeated = Path::new(&parent).join(name).join("src/app/views.py");
    let repeated = repeated.to_str().unwrap();
    assert_eq!(workspace.succeeds("read_file", json!({"path": repeated})).await, "a\n");
    let folder = Path::new(&parent).join(name);
    let here = json!({"command": "ls", "working_directory": folder, "timeout_seconds": -1});
    assert!(workspace.succeeds("execute_command", here).await.starts_with("src\n"));
    workspace
        .succeeds("insert", json!({"path": "src/app/views.py", "line": -1, "text": "b"}))
        .await;
    let all = json!({"path": "src/app/views.py", "view_range": [0, 0]});
    assert_eq!(workspace.succeeds("read_file", all).await, "a\nb\n");

    for (tool, args, expected) in [
        (
            "read_file",
            json!({"path": "views.py"}),
            "views.py does not exist; there is src/app/views.py",
        ),
        (
            "list_files",
            json!({"path": "src/apps"}),
            "src/apps does not exist; did you mean src/app?",
        ),
        (
            "execute_command",
            json!({"command": "ls", "working_directory": "lib/deep"}),
            "lib/deep does not exist; the project has src/",
        ),
        (
            "str_replace",
            json!({"path": "src/model/a.rs", "old": "x", "new": "y"}),
            "src/model/a.rs does not exist; src has app/",
        ),
    ] {
        assert_eq!(workspace.fails(tool, args).await, format!("not_found 404: {expected}"));
    }
    workspace.finish().await;
}

#[tokio::test]
async fn wrong_arguments_are_named() {
    let workspace = Workspace::open();
    let text = workspace
        .fails("str_replace", json!({"path": "a", "old_str": "x", "new": "y"}))
        .await;
    assert!(
        text.contains("the arguments of str_replace") && text.contains("old_str"),
        "{text}"
    );
    assert!(
        workspace
            .fails("dance", json!({}))
            .await
            .contains("there is no tool dance; there are execute_command")
    );
    workspace.finish().await;
}

#[tokio::test]
async fn the_version_is_printed() {
    let program = Path::new(env!("CARGO_BIN_EXE_coding-agent-executor"));
    let output = Command::new(program).arg("--version").output().await.unwrap();
    let expected = format!("coding-agent-executor {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
