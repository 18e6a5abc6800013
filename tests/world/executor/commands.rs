//! Commands: what they answer, how they are ended, and what they leave behind.

use coding_agent::tool::ToolError;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

use super::Workspace;
use crate::world::processes::{mark, until, with_mark};

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
async fn a_pkill_ends_what_it_means_and_no_supervisor() {
    let workspace = Workspace::open();
    let mark = mark();
    let background = format!("sleep {mark} &");
    workspace.run(&background).await;
    // The shell has the pattern among its arguments, as everywhere.
    let beside = json!({"command": format!("echo before; pkill -f 'sleep {mark}'; echo after")});
    let text = workspace.fails("execute_command", beside).await;
    assert!(text.starts_with("before\n[killed by signal 15]"), "{text}");
    until(&mark, 0).await;

    workspace.run(&background).await;
    let alone = json!({"command": format!("pkill -f 'sleep {mark}'")});
    let text = workspace.succeeds("execute_command", alone).await;
    assert!(text.starts_with("[exit code 0]"), "{text}");
    until(&mark, 0).await;
    workspace.finish().await;
}

#[tokio::test]
async fn a_supervisor_withstands_what_a_command_sends_it_and_hands_it_on_to_nobody() {
    let workspace = Workspace::open();
    let (said, fields) = workspace
        .run("for signal in TERM INT HUP; do kill -$signal $PPID; done; echo after")
        .await;
    assert_eq!((said.as_str(), &fields["exit_code"]), ("after\n", &json!(0)));
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let (_, fields) = workspace.run(&format!("kill -{signal} $$")).await;
        assert_eq!(fields["signal"], number, "{signal}");
    }
    workspace.finish().await;
}

#[tokio::test]
async fn what_a_killed_supervisor_leaves_is_ended_and_the_output_is_told() {
    let workspace = Workspace::open();
    let mark = mark();
    let command = format!("echo before; sleep {mark} & kill -KILL $PPID; sleep {mark}");
    let text = workspace.fails("execute_command", json!({"command": command})).await;
    assert!(text.starts_with("before\n[ended, and nobody knows how: "), "{text}");
    assert_eq!(with_mark(&mark), [0; 0]);
    assert_eq!(workspace.run("echo next").await.0, "next\n");
    workspace.finish().await;
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
