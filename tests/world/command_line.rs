//! The commands that need neither forge nor model nor Docker, as a user meets them.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::fake::model::Plan;
use crate::world::{Ended, Program, World};

fn outcome(world: &World, ended: &Ended) -> String {
    let code = ended.code.unwrap();
    world.settled(&format!("{}{}[exit code {code}]", ended.stdout, ended.stderr))
}

#[tokio::test]
async fn each_command_explains_itself() {
    let world = World::start().await;
    let mut pages = Vec::new();
    for command in [
        "serve",
        "produce",
        "consume",
        "status",
        "logs",
        "doctor",
        "config",
        "completions",
    ] {
        let ended = world.command(&[command, "-h"]).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{command}");
        pages.push(ended.stdout);
    }
    insta::assert_snapshot!(pages.join("\n----\n\n"), @"
    Find and work on labelled items until stopped

    Usage: coding-agent serve [OPTIONS]

    Options:
          --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                           /etc/coding-agent/config.yaml]
      -h, --help           Print help

    ----

    Only find labelled items and queue them, until stopped

    Usage: coding-agent produce [OPTIONS]

    Options:
          --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                           /etc/coding-agent/config.yaml]
      -h, --help           Print help

    ----

    Only work on what has been found, until stopped

    Usage: coding-agent consume [OPTIONS]

    Options:
          --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                           /etc/coding-agent/config.yaml]
      -h, --help           Print help

    ----

    Show what is queued, active and finished

    Usage: coding-agent status [OPTIONS]

    Options:
          --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                           /etc/coding-agent/config.yaml]
          --json           Print JSON
          --quiet          Print nothing; the exit code is 0 if the service works, else 1
      -h, --help           Print help

    ----

    Show what happened in a task

    Usage: coding-agent logs [OPTIONS] <TASK>

    Arguments:
      <TASK>  E.g. github:owner/repo#12, gitlab:group/project#34, 'gitlab:group/project!34', local:<id>

    Options:
          --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                           /etc/coding-agent/config.yaml]
      -f, --follow         Go on until the run ends
          --raw            Print the journal's lines as they are (JSON)
      -h, --help           Print help

    ----

    Check everything a run needs, and say how to fix what is missing

    Usage: coding-agent doctor [OPTIONS]

    Options:
          --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                           /etc/coding-agent/config.yaml]
          --model          Also ask the model for a reply, and send it a prompt as long as its window to
                           see whether all of it arrives; with a paid model this costs as much as that
                           prompt
          --json           Print JSON
      -h, --help           Print help

    Exit codes:
       0  success; for `run` also: another run is active, nothing was done
       1  the task failed, or a check found something bad
       2  a policy refused the task
       3  the model's replies stayed unreadable
      64  wrong usage
      78  wrong configuration
     130  ended by a second signal, or at the end of the grace period; `run --task` by the first signal

    ----

    Check or describe the configuration file

    Usage: coding-agent config [OPTIONS] <COMMAND>

    Commands:
      check   Report everything that is wrong in the file, with line and column
      schema  Print the file's JSON Schema, for editors
      help    Print this message or the help of the given subcommand(s)

    Options:
          --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                           /etc/coding-agent/config.yaml]
      -h, --help           Print help

    ----

    Print a completion script for a shell

    Usage: coding-agent completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>  The shell [possible values: bash, elvish, fish, powershell, zsh]

    Options:
          --config <PATH>  Configuration file [default: $CODING_AGENT_CONFIG, ./config.yaml or
                           /etc/coding-agent/config.yaml]
      -h, --help           Print help (see more with '--help')
    ");
    world.finish().await;
}

#[tokio::test]
async fn help_and_version_are_commands_too() {
    let world = World::start().await;
    for (command, option) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "status"][..], &["status", "--help"][..]),
        (&["version"][..], &["--version"][..]),
    ] {
        let asked = world.command(command).await;
        assert_eq!((asked.code, asked.stderr.as_str()), (Some(0), ""), "{command:?}");
        assert_eq!(asked.stdout, world.command(option).await.stdout, "{command:?}");
    }
    world.finish().await;
}

#[tokio::test]
async fn wrong_usage_is_64() {
    let world = World::start().await;
    let mut answers = Vec::new();
    for line in [
        &["srve"][..],
        &["logs", "widgets#1"],
        &["run", "--dry-run"],
        &["completions", "tcsh"],
        &["pause"],
        &["resume", "--all", "github:acme/widgets#1"],
    ] {
        let ended = world.command(line).await;
        answers.push(format!(
            "$ coding-agent {}\n{}",
            line.join(" "),
            outcome(&world, &ended)
        ));
    }
    insta::assert_snapshot!(answers.join("\n\n"), @"
    $ coding-agent srve
    error: unrecognized subcommand 'srve'

      tip: a similar subcommand exists: 'serve'

    Usage: coding-agent [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit code 64]

    $ coding-agent logs widgets#1
    coding-agent: 'widgets#1' is not a task; write github:owner/repo#12, gitlab:group/project#34, gitlab:group/project!34 or local:<id>
    [exit code 64]

    $ coding-agent run --dry-run
    error: the following required arguments were not provided:
      --task <TEXT>

    Usage: coding-agent run --task <TEXT> --dry-run

    For more information, try '--help'.
    [exit code 64]

    $ coding-agent completions tcsh
    error: invalid value 'tcsh' for '<SHELL>'
      [possible values: bash, elvish, fish, powershell, zsh]

      tip: a similar value exists: 'zsh'

    For more information, try '--help'.
    [exit code 64]

    $ coding-agent pause
    error: the following required arguments were not provided:
      <TASK|--all>

    Usage: coding-agent pause <TASK|--all>

    For more information, try '--help'.
    [exit code 64]

    $ coding-agent resume --all github:acme/widgets#1
    error: the argument '--all' cannot be used with '[TASK]'

    Usage: coding-agent resume <TASK|--all>

    For more information, try '--help'.
    [exit code 64]
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_good_configuration_is_called_good_and_each_fault_of_a_bad_one_is_told() {
    let mut world = World::start().await;
    let good = world.command(&["config", "check"]).await;
    assert_eq!(outcome(&world, &good), "the configuration is good\n[exit code 0]");

    world.configure(|config| {
        config["consumer"] = json!(2);
        config["llm"]["provider"] = json!("opanai");
        config["github"]["repositories"] = json!([]);
        config["command_executor"]["default_environment"] = json!("pyton");
    });
    let bad = world.command(&["config", "check"]).await;
    insta::assert_snapshot!(outcome(&world, &bad), @r#"
    coding-agent: FOLDER/config.yaml:3:5: command_executor.default_environment: 'pyton' is not among the environments; write one of python
    coding-agent: FOLDER/config.yaml:10:3: consumer: unknown key; did you mean `consumers`?
    coding-agent: FOLDER/config.yaml:14:5: github.repositories: names no repository; write ["owner/repo"] or ["owner/*"]
    coding-agent: FOLDER/config.yaml:31:5: llm.provider: must be one of ollama, lmstudio, openai, anthropic, not the text 'opanai'
    [exit code 78]
    "#);
    // Nothing that works with it begins, and nothing is touched.
    for command in ["run", "serve", "doctor"] {
        let ended = world.command(&[command]).await;
        assert_eq!((ended.code, &ended.stderr), (Some(78), &bad.stderr), "{command}");
    }
    assert!(!world.state_dir().exists() && !world.folder().join("logs").exists());
    world.finish().await;
}

#[tokio::test]
async fn a_configuration_for_local_tasks_alone_is_called_that_and_what_is_doubtful_is_told() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["task_sources"] = json!([]);
        config["llm"]["openai"]["base_url"] = json!("http://models.example.com/v1");
    });
    let checked = world.command(&["config", "check"]).await;
    insta::assert_snapshot!(outcome(&world, &checked), @"
    doubtful: llm.openai.base_url: the secret goes over the network in plain http, where others can read it; use https
    the configuration is good, but only for `run --task`: task_sources: no source of tasks is named; write `task_sources: [github]` or `[gitlab]` and fill in that section
    [exit code 0]
    ");
    world.finish().await;
}

#[test]
fn a_missing_configuration_is_78() {
    let folder = tempfile::tempdir().unwrap();
    let answer = |line: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_coding-agent"))
            .args(line)
            .env_clear()
            .current_dir(folder.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = answer(&["run"]);
    assert_eq!(code, Some(78));
    insta::assert_snapshot!(said, @"coding-agent: there is no configuration: copy config.yaml.example to config.yaml and fill it in, or name a file with --config");
    let (code, said) = answer(&["--config", "nowhere.yaml", "run"]);
    assert_eq!(code, Some(78));
    insta::assert_snapshot!(said, @"coding-agent: nowhere.yaml: cannot be read: No such file or directory (os error 2)");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_health_check_tells_whether_a_service_is_at_work() {
    let world = World::start().await;
    let check = async || {
        let ended = world.command(&["status", "--quiet"]).await;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
        ended.code
    };
    assert_eq!(check().await, Some(1));
    let mut stopped = world.spawn(&["serve"]);
    stopped.until_it_prints("at work").await;
    assert_eq!(check().await, Some(0));
    stopped.signal("TERM");
    assert_eq!(stopped.ended().await.code, Some(0));
    assert_eq!(check().await, Some(1));
    let mut killed = world.spawn(&["consume"]);
    killed.until_it_prints("at work").await;
    assert_eq!(check().await, Some(0));
    killed.kill().await;
    assert_eq!(check().await, Some(1));
    world.finish().await;
}

#[tokio::test]
async fn the_schema_is_json_and_knows_every_section() {
    let world = World::start().await;
    let ended = world.command(&["config", "schema"]).await;
    assert_eq!(ended.code, Some(0));
    let schema: Value = serde_json::from_str(&ended.stdout).unwrap();
    let sections: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    insta::assert_snapshot!(sections.join(" "), @"approval budget ca_file change_requests chat command_executor consumers environment follow_up git github gitlab http index llm logs max_llm_process_num mcp_schema_bytes mcp_servers planning producer retention review secret shutdown_grace_seconds state_dir steering store task_sources traces");
    assert_eq!(schema["additionalProperties"], false);
    world.finish().await;
}

#[tokio::test]
async fn each_shell_gets_a_script() {
    let world = World::start().await;
    for shell in ["bash", "zsh", "fish"] {
        let ended = world.command(&["completions", shell]).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{shell}");
        assert!(
            ended.stdout.contains("doctor") && ended.stdout.contains("dry-run"),
            "{shell}"
        );
        assert!(
            !ended.stdout.contains("mcp-guard"),
            "{shell} offers what is not for people"
        );
    }
    let script = world.command(&["completions", "bash"]).await.stdout;
    let question = r#"
        COMP_WORDS=(coding-agent do); COMP_CWORD=1
        _coding__agent coding-agent do coding-agent
        echo "${COMPREPLY[*]}""#;
    let question = format!("{script}\n{question}");
    let answer = std::process::Command::new("bash")
        .args(["-c", &question])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "doctor\n");
    world.finish().await;
}

#[tokio::test]
async fn a_reader_that_stops_early_is_no_fault_and_a_full_disk_is_told() {
    let world = World::start().await;
    for line in [
        &["config", "schema"][..],
        &["config", "check"],
        &["status"],
        &["completions", "bash"],
        &["help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let unheard = world.unheard(line).await;
        assert_eq!((unheard.code, unheard.stderr.as_str()), (Some(0), ""), "{line:?}");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let told = world.prints_to(full, line).await;
        let expected =
            "coding-agent: the result could not be written to stdout: No space left on device (os error 28)\n";
        assert_eq!((told.code, told.stderr.as_str()), (Some(1), expected), "{line:?}");
    }
    world.finish().await;
}

#[tokio::test]
async fn what_a_task_without_a_configuration_file_did_can_be_looked_at_without_one() {
    let mut world = World::start().await;
    let model = world.model.openai_address();
    world.sets("OPENAI_BASE_URL", &model);
    world.sets("OPENAI_MODEL", "scripted");
    let answer = async |line: &[&str]| {
        let mut program = world.program();
        program.args(line);
        Program::start(program).ended().await
    };

    let before = answer(&["status"]).await;
    assert_eq!(
        outcome(&world, &before),
        "no worker is active\nno runs yet\n[exit code 0]"
    );
    let before = answer(&["logs", "github:acme/widgets#1"]).await;
    insta::assert_snapshot!(outcome(&world, &before), @"
    coding-agent: nothing is known about github:acme/widgets#1; `coding-agent status` lists the tasks there are
    [exit code 1]
    ");

    let project = world.folder().join("project");
    std::fs::create_dir(&project).unwrap();
    let script = world.model.plans(Plan::of(&["look"]));
    script.done("There is nothing to do.").done("There is nothing to do.");
    let worked = answer(&["run", "--task", "Look around", "--root", "project"]).await;
    assert_eq!(worked.code, Some(0), "{worked:?}");

    let status = answer(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["runs"][0]["state"], "done");
    let logs = answer(&["logs", status["runs"][0]["task"].as_str().unwrap()]).await;
    assert!(logs.code == Some(0) && logs.stdout.contains("claimed"), "{logs:?}");
    let doctor = answer(&["doctor"]).await;
    assert!(
        doctor.stdout.contains("none is named, so only `run --task` works"),
        "{doctor:?}"
    );
    world.finish().await;
}
