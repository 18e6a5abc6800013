//! The faults of a configuration are told in sentences.

use std::path::Path;

use coding_agent::config::Config;

use crate::{GITHUB, Given, with_github};

#[test]
fn all_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
    let given = Given::file(
        "\
task_sources: [github, github, svn]
github:
  token: ${NO_SUCH_TOKEN}
  repositores: [owner/repo]
  repositories: [owner]
  labels: {done: coding agent, failed: 'a, b'}
llm:
  provider: chatgpt
  ollama: {context_lenght: 5}
consumers: two
git: {author_name: true}
max_llm_process_num: -1
shutdown_grace_seconds: 1.5
logs: {level: loud, retention_days: 0, directory: [x]}
mcp_servers:
  - {mcp_server_name: workspace, command: []}
  - command: [x]
command_executor: {default_environment: cobol, resources: {memory_limit: much}}
planning: yes please
xyzzy: 1
",
    );
    insta::assert_snapshot!(given.faults(), @r#"
    config.yaml:1:24: task_sources[1]: is named twice; leave one of them out
    config.yaml:1:32: task_sources[2]: must be one of github, gitlab, not the text 'svn'
    config.yaml:3:3: github.token: the environment variable NO_SUCH_TOKEN is not set; set it, or name a file that holds the secret in `token_file`
    config.yaml:4:3: github.repositores: unknown key; did you mean `repositories`?
    config.yaml:5:18: github.repositories[0]: 'owner' is not a repository; write owner/repo or owner/*
    config.yaml:6:12: github.labels.done: is the same label as `trigger`; each must have its own
    config.yaml:6:32: github.labels.failed: must not hold a comma or a line break: the platforms separate labels by them
    config.yaml:8:3: llm.provider: must be one of ollama, lmstudio, openai, anthropic, not the text 'chatgpt'
    config.yaml:9:12: llm.ollama.context_lenght: unknown key; did you mean `context_length`?
    config.yaml:10:1: consumers: must be a whole number, zero or more, not the text 'two'
    config.yaml:11:7: git.author_name: must be text, not the truth value true; put it in quotes
    config.yaml:12:1: max_llm_process_num: must be a whole number, zero or more, not the number -1
    config.yaml:13:1: shutdown_grace_seconds: must be a whole number, zero or more, not the number 1.5
    config.yaml:14:8: logs.level: must be one of error, warn, info, debug, trace, not the text 'loud'
    config.yaml:14:21: logs.retention_days: must be at least 1
    config.yaml:14:40: logs.directory: must be text, not a list
    config.yaml:16:6: mcp_servers[0].mcp_server_name: 'workspace' is the name of a built-in server; choose another
    config.yaml:16:34: mcp_servers[0].command: must begin with a program, e.g. ["uvx", "mcp-server-time"]
    config.yaml:17:5: mcp_servers[1].mcp_server_name: is missing and must be given
    config.yaml:18:20: command_executor.default_environment: 'cobol' is not among the environments; write one of go, java, miniforge, node, python
    config.yaml:18:60: command_executor.resources.memory_limit: 'much' is not a size; write a number of bytes, or a number with k, m, g or t, such as 4g
    config.yaml:19:1: planning: must be a section with keys, not the text 'yes please'
    config.yaml:20:1: xyzzy: unknown key; the keys here are approval, budget, ca_file, change_requests, chat, command_executor, consumers, environment, follow_up, git, github, gitlab, http, index, llm, logs, max_llm_process_num, mcp_schema_bytes, mcp_servers, planning, producer, retention, review, secret, shutdown_grace_seconds, state_dir, steering, store, task_sources, traces
    "#);
}

/// Docker Compose hands on as empty what nobody has set.
#[test]
fn an_empty_variable_is_named_where_its_secret_is_needed() {
    let text = "\
task_sources: [gitlab]
gitlab:
  token: ${GITLAB_TOKEN}
  projects: [a/b]
llm:
  provider: openai
  openai: {api_key: '${OPENAI_API_KEY:-}'}
  anthropic: {api_key: '${ANTHROPIC_API_KEY}'}
";
    let given = Given::file(text).with("GITLAB_TOKEN", "").with("ANTHROPIC_API_KEY", "");
    insta::assert_snapshot!(given.faults(), @"
    config.yaml:3:3: gitlab.token: the environment variable GITLAB_TOKEN is empty; set it (for docker compose in ./.env)
    config.yaml:7:12: llm.openai.api_key: the environment variable OPENAI_API_KEY is empty; set it (for docker compose in ./.env)
    ");
    let list = "task_sources: [gitlab]\ngitlab:\n  - {token: '${LAB}', projects: [a/b]}\n";
    insta::assert_snapshot!(Given::file(list).with("LAB", " ").faults(), @"config.yaml:3:6: gitlab[0].token: the environment variable LAB is empty; set it (for docker compose in ./.env)");
    insta::assert_snapshot!(Given::file(list).faults(), @"config.yaml:3:6: gitlab[0].token: the environment variable LAB is not set; set it, or name a file that holds the secret in `token_file`");
}

#[test]
fn the_trigger_does_not_share_its_scope_with_the_label_that_takes_its_place() {
    let gitlab = |processing: &str| {
        let labels = format!("labels: {{trigger: 'agent::wanted', processing: '{processing}'}}");
        let text = format!("task_sources: [gitlab]\ngitlab: {{token: x, projects: [a/b], {labels}}}\n");
        Given::file(&text)
    };
    insta::assert_snapshot!(gitlab("agent::at work").faults(), @"config.yaml:2:72: gitlab.labels.processing: is in the scope `agent::` as the trigger is: GitLab would take the trigger off before the run is stored; give one of them another scope");
    assert!(gitlab("work::begun").load().is_ok());
}

#[test]
fn text_that_is_no_yaml_or_no_mapping_is_told_with_its_place() {
    let faults = |text| Given::file(text).faults();
    insta::assert_snapshot!(faults("consumers: 1\nconsumers: 2\n"), @"config.yaml:2:1: is not readable YAML: the key 'consumers' is given twice; leave one of them out");
    insta::assert_snapshot!(faults("llm: {provider: ollama\nconsumers: 2\n"), @"config.yaml:2:10: is not readable YAML: did not find expected ',' or '}'");
    insta::assert_snapshot!(faults("- a\n"), @"config.yaml: must be a mapping: lines of the form `key: value`");
    insta::assert_snapshot!(faults("---\n# A comment\na: 1\n---\nb: 2\n"), @"config.yaml:4:1: a second document begins here, and a configuration is one; take this `---` out");
    insta::assert_snapshot!(faults("llm:\n\tprovider: ollama\n"), @"config.yaml:2:1: is not readable YAML: found character that cannot start any token: a tab; indent with blanks");
    insta::assert_snapshot!(faults("github: {token: ${GITHUB_TOKEN}}\n"), @"config.yaml:1:18: is not readable YAML: did not find expected ',' or '}'; put `${...}` in quotes inside of braces and brackets");
    insta::assert_snapshot!(faults("\u{feff}llm: {}\nconsumers: 0\n"), @"config.yaml:2:1: consumers: must be at least 1");
    assert!(Given::file("").load().is_ok());
}

#[test]
fn a_file_that_is_not_there_is_one_sentence() {
    let none = |_: &str| None;
    let faults = Config::load(Path::new("/no/such/config.yaml"), &none).expect_err("no file");
    insta::assert_snapshot!(faults[0], @"/no/such/config.yaml: cannot be read: No such file or directory (os error 2)");
}

#[test]
fn a_file_in_another_encoding_is_told_as_that() {
    let utf_16 = b"\xff\xfec\0o\0n\0";
    let given = Given::file("");
    std::fs::write(given.folder.path().join("config.yaml"), utf_16).unwrap();
    insta::assert_snapshot!(given.faults(), @"config.yaml: is not UTF-8; save it as UTF-8");

    let given = with_github("llm: {system_prompt_file: prompt.txt}\n");
    let latin_1 = b"Gr\xfc\xdfe";
    std::fs::write(given.folder.path().join("prompt.txt"), latin_1).unwrap();
    insta::assert_snapshot!(given.faults(), @"config.yaml:3:7: llm.system_prompt_file: the file prompt.txt is not UTF-8; save it as UTF-8");
}

#[test]
fn a_variable_in_the_section_of_a_source_that_is_not_used_need_not_be_set() {
    let other = "github: {token: '${NO_SUCH_TOKEN}', repositories: [a/b]}\n";
    let used = "gitlab: {token: '${TOKEN}', projects: [a/b]}\n";
    let with = |sources: &str| Given::file(&format!("task_sources: {sources}\n{other}{used}")).with("TOKEN", "a-token");
    with("[gitlab]").loads();
    for sources in ["[github, gitlab]", "['${NO_SUCH_SOURCE:-gitlab}']"] {
        let faults = with(sources).faults();
        assert!(
            faults.contains("github.token: the environment variable NO_SUCH_TOKEN"),
            "{faults}"
        );
    }
}

#[test]
fn what_a_variable_holds_is_never_shown() {
    let given = with_github("consumers: ${TOKEN}\nllm: {provider: '${TOKEN}'}\n").with("TOKEN", "hunter2");
    let faults = given.faults();
    assert!(!faults.contains("hunter2") && faults.lines().count() == 2, "{faults}");
    let config = Given::file(GITHUB).loads();
    assert!(!format!("{config:?}").contains("a-token"));
}

#[test]
fn a_secret_file_that_is_missing_empty_or_one_too_many_is_a_fault() {
    let given = Given::file(
        "task_sources: [github, gitlab]\ngithub: {token_file: none, repositories: [a/b]}\n\
         gitlab: {token: x, token_file: token.txt, projects: [a/b]}\n\
         llm: {provider: openai, openai: {api_key_file: empty}}\n",
    )
    .and("token.txt", "a-token")
    .and("empty", "\n");
    insta::assert_snapshot!(given.faults(), @"
    config.yaml:2:10: github.token_file: the file none cannot be read: No such file or directory (os error 2)
    config.yaml:3:20: gitlab.token_file: `token` is given too; leave one of them out
    config.yaml:4:34: llm.openai.api_key_file: the file empty is empty
    ");
}

#[test]
fn a_secret_is_neither_a_variable_of_the_shell_nor_of_several_lines() {
    let github = |secret: &str| {
        let section = format!("github: {{{secret}, repositories: [a/b]}}");
        Given::file(&format!("task_sources: [github]\n{section}\n"))
    };
    insta::assert_snapshot!(github("token: $GITHUB_TOKEN").faults(), @"config.yaml:2:10: github.token: is the text `$GITHUB_TOKEN`; write `${GITHUB_TOKEN}` for the variable, or put a secret that begins so into a file and name that in `token_file`");
    github("token: '${TOKEN}'").with("TOKEN", "$GITHUB_TOKEN").loads();
    github("token: $2b$xyz").loads();
    let file = github("token_file: token.txt");
    insta::assert_snapshot!(file.and("token.txt", "one\ntwo\n").faults(), @"config.yaml:2:10: github.token_file: the file token.txt has 2 lines; a secret is one");
}

#[test]
fn the_label_that_starts_work_has_one_name() {
    let github = |more: &str| {
        let text = format!("task_sources: [github]\ngithub: {{token: x, repositories: [a/b], {more}}}\n");
        Given::file(&text)
    };
    let named = github("trigger: {label: robot, mention: true}").loads();
    let host = &named.github.entries[0];
    assert_eq!(host.labels.trigger, "robot");
    assert!(host.trigger.mention && !host.trigger.assignment);
    assert!(
        github("trigger: {label: robot}, labels: {trigger: robot}")
            .load()
            .is_ok()
    );
    insta::assert_snapshot!(github("trigger: {label: robot}, labels: {trigger: agent}").faults(), @"config.yaml:2:51: github.trigger.label: 'robot' is not 'agent', which `labels.trigger` says; leave one of them out");
    insta::assert_snapshot!(github("trigger: {label: 'a, b'}").faults(), @"config.yaml:2:1: github.labels.trigger: must not hold a comma or a line break: the platforms separate labels by them");
}

#[test]
fn the_address_of_a_page_is_not_that_of_the_api() {
    let faults = |address: &str| {
        let section = format!("github: {{api_url: '{address}', token: t, repositories: [a/b]}}");
        Given::file(&format!("task_sources: [github]\n{section}\n")).load()
    };
    let expected =
        "config.yaml:2:10: github.api_url: is where GitHub has its pages; its API is at https://api.github.com";
    for address in ["https://github.com", "https://www.github.com/acme/widgets"] {
        assert_eq!(faults(address).map(drop), Err(vec![expected.to_owned()]));
    }
    for address in ["https://api.github.com", "https://ghes.example.com/api/v3"] {
        assert!(faults(address).is_ok(), "{address}");
    }
}

#[test]
fn a_secret_over_plain_http_is_doubtful_but_not_on_this_machine() {
    let doubts = |address: &str| {
        let text = format!("task_sources: [gitlab]\ngitlab: {{api_url: '{address}', token: t, projects: [a/b]}}\n");
        let doubts = Given::file(&text).loads().doubts();
        doubts.iter().filter(|doubt| doubt.contains("plain http")).count()
    };
    assert_eq!(doubts("http://gitlab.example.com/api/v4"), 1);
    assert_eq!(doubts("https://gitlab.example.com/api/v4"), 0);
    assert_eq!(doubts("http://127.0.0.1:8080/api/v4"), 0);
    assert_eq!(doubts("http://[::1]:8080"), 0);
}

#[test]
fn a_cluster_is_refused_where_it_was_not_built_in_and_judged_where_it_was() {
    let engine = "environment: {engine: kubernetes, kubernetes: {namespace: Team A, user: 0}}\n";
    let runtime = "command_executor: {runtime: runsc, services: {db: {image: 'postgres:17', user: postgres}}}\n";
    let faults = with_github(&format!("{engine}{runtime}")).faults();
    let (not_built_in, judged): (Vec<&str>, Vec<&str>) = faults
        .lines()
        .partition(|fault| fault.contains("built without clusters"));
    let keys: Vec<&str> = judged.iter().filter_map(|fault| fault.split(' ').nth(1)).collect();
    assert_eq!(
        keys,
        [
            "environment.kubernetes.namespace:",
            "environment.kubernetes.user:",
            "command_executor.runtime:",
            "command_executor.services.db.user:"
        ],
        "{faults}"
    );
    if cfg!(feature = "kubernetes") {
        assert_eq!(not_built_in, Vec::<&str>::new());
    } else {
        assert!(not_built_in[0].contains("--features kubernetes"), "{not_built_in:?}");
    }
}
