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

/// Checks that each text, which has one fault, is refused with its place.
fn are_refused(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let faults = with_github(text).faults();
        assert!(faults.contains(expected), "{text} gave {faults}");
        assert_eq!(faults.lines().count(), 1, "{text} gave {faults}");
        assert!(faults.starts_with("config.yaml:3:"), "{text} gave {faults}");
    }
}

#[test]
fn models_that_cannot_be_are_refused() {
    are_refused(&[
        ("llm: {ollama: {endpoint: localhost:11434}}", "must begin with http"),
        ("llm: {ollama: {endpoint: 'http://'}}", "is not an address"),
        ("llm: {ollama: {endpoint: 'http://me:pw@host'}}", "must not hold a user"),
        ("llm: {ollama: {context_length: 100}}", "at least 4096"),
        (
            "llm: {ollama: {parallel_requests: 0}}",
            "llm.ollama.parallel_requests: must be at least 1",
        ),
        ("llm: {provider: openai}", "llm.openai.api_key: is missing"),
        (
            "llm: {provider: anthropic, anthropic: {api_key: k, max_tokens: 200000}}",
            "smaller than context_length",
        ),
        (
            "llm: {provider: openai, openai: {api_key: k, context_length: 8192, max_tokens: 7000}}",
            "llm.openai.max_tokens: must be at least 2048 smaller than context_length",
        ),
        (
            "llm: {models: {near: {provider: ollama}}}",
            "llm.models.near.model: is missing",
        ),
        (
            "llm: {models: {near: {provider: ollama, model: m}}, roles: {planer: near}}",
            "llm.roles.planer: unknown key; did you mean `planner`?",
        ),
        (
            "llm: {models: {near: {provider: ollama, model: m}}, roles: {planner: naer}}",
            "llm.roles.planner: names the model `naer`, which llm.models does not have; did you mean `near`?",
        ),
        (
            "llm: {roles: {planner: cloud}}",
            "llm.roles.planner: names the model `cloud`, and llm.models is empty",
        ),
        (
            "index: {embeddings: vektors}\nllm: {models: {vectors: {provider: ollama, model: m}}}",
            "index.embeddings: names the model `vektors`, which llm.models does not have; did you mean `vectors`?",
        ),
        (
            "index: {embeddings: vectors}\nllm: {models: {vectors: {provider: anthropic, model: m, api_key: k}}}",
            "index.embeddings: names `vectors`, whose provider has no embeddings",
        ),
        (
            "llm: {models: {llm: {provider: ollama, model: m}}}",
            "llm.models.llm: is no name for a model",
        ),
        (
            "llm: {models: {near: {provider: ollama, model: m, base_url: 'http://host'}}}",
            "llm.models.near.base_url: is no key of the provider ollama",
        ),
        (
            "llm: {models: {near: {provider: ollama, model: m, contextlength: 5000}}}",
            "llm.models.near.contextlength: unknown key; did you mean `context_length`?",
        ),
        (
            "llm: {models: {near: {provider: ollama, model: m, context_length: 100}}}",
            "llm.models.near.context_length: must be at least 4096",
        ),
        (
            "llm: {models: {cloud: {provider: anthropic, model: m, api_key: k, seed: 1}}}",
            "llm.models.cloud.seed: is not known to this provider",
        ),
        (
            "llm: {models: {a: {provider: ollama, model: m, fallback: a}}}",
            "llm.models.a.fallback: leads back to this model",
        ),
        (
            "llm: {ollama: {fallback: b}}",
            "llm.ollama.fallback: names the model `b`",
        ),
    ]);
}

#[test]
fn programs_and_settings_that_cannot_be_are_refused() {
    are_refused(&[
        (
            "llm: {models: {critic: {provider: command, command: [cat]}}, roles: {planner: critic}}",
            "llm.roles.planner: names `critic`, whose provider is `command`",
        ),
        (
            "llm: {models: {critic: {provider: command, command: [cat]}}, roles: {local_only: critic}}",
            "llm.roles.local_only: names `critic`, whose provider is `command`",
        ),
        (
            "llm: {models: {critic: {provider: command, command: [cat]}}, ollama: {fallback: critic}}",
            "llm.ollama.fallback: names `critic`, which is a program",
        ),
        (
            "llm: {models: {critic: {provider: command}}}",
            "llm.models.critic.command: must begin with a program",
        ),
        (
            "llm: {models: {critic: {provider: command, command: [cat], model: m}}}",
            "llm.models.critic.model: is no key of the provider command",
        ),
        (
            "llm: {models: {critic: {provider: command, command: [cat], temperature: 0}}}",
            "llm.models.critic.temperature: is no key of the provider command",
        ),
        (
            "llm: {models: {critic: {provider: command, command: [cat], timeout_seconds: 1801}}}",
            "llm.models.critic.timeout_seconds: must be at most 1800",
        ),
        (
            "llm: {models: {near: {provider: ollama, model: m, command: [cat]}}}",
            "llm.models.near.command: is no key of the provider ollama",
        ),
        (
            "llm: {models: {n: {provider: ollama, model: m}}, roles: {planner: n, worker: n, summarizer: n}}\nreview: {plan: {enabled: true}}",
            "llm.roles.reviewer: is missing",
        ),
        (
            "llm: {ollama: {temperature: 9}}",
            "llm.ollama.temperature: must be between 0 and 2",
        ),
        (
            "llm: {ollama: {extra_body: {messages: []}}}",
            "llm.ollama.extra_body.messages: is what the program itself writes",
        ),
        ("llm: {ollama: {headers: {'a b': c}}}", "is no header that can be sent"),
        (
            "llm: {ollama: {prices: {input: -1, output: 1}}}",
            "llm.ollama.prices.input: must not be less than 0",
        ),
    ]);
}

#[test]
fn traces_that_reach_nobody_are_refused() {
    are_refused(&[
        ("traces: {endpoint: 'localhost:4318'}", "must begin with http"),
        (
            "traces: {endpoint: 'http://localhost:4318', headers: {'a b': c}}",
            "traces.headers.a b: is no header that can be sent",
        ),
        (
            "traces: {headers: {X-Team: agents}}",
            "traces.headers: are sent to nobody",
        ),
    ]);
}

#[test]
fn a_health_that_cannot_be_is_refused() {
    are_refused(&[
        (
            "llm: {health: {min_context: 9000, max_context: 8000}}",
            "llm.health.min_context: must not be larger than max_context, which is 8000",
        ),
        (
            "llm: {health: {max_context: 16384}}",
            "llm.ollama.context_length: is 32768, and llm.health.max_context is 16384; change one of them",
        ),
        (
            "llm: {health: {cool_down_seconds: 0}}",
            "llm.health.cool_down_seconds: must be at least 1",
        ),
        (
            "llm: {health: {restart_command: ['']}}",
            "llm.health.restart_command[0]: must be the name of a program",
        ),
        ("llm: {health: {restart: [x]}}", "llm.health.restart: unknown key"),
        ("secret: {pii: hide}", "secret.pii: must be one of off, mask"),
        ("secret: {pi: mask}", "secret.pi: unknown key; did you mean `pii`?"),
    ]);
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
fn limits_that_cannot_be_are_refused() {
    are_refused(&[
        ("budget: {cost_usd: 1}", "needs `prices`"),
        ("budget: {prices: {input: -1, output: 1}}", "must not be less than 0"),
        ("budget: {prices: {input: 1}}", "budget.prices.output: is missing"),
        ("budget: {prices: {input: .nan, output: 1}}", "a number must be finite"),
        ("budget: {tokens: 0}", "budget.tokens: must be at least 1"),
        ("budget: {minutes: 0}", "budget.minutes: must be at least 1"),
        ("budget: {minutes: -1}", "zero or more"),
        (
            "budget: {per_day: {tokens: 0}}",
            "budget.per_day.tokens: must be at least 1",
        ),
        ("budget: {per_day: {tokens: -5}}", "zero or more"),
        (
            "budget: {per_day: {cost_usd: 1}}",
            "budget.per_day.cost_usd: needs `prices`",
        ),
        (
            "budget: {per_day: {cost_usd: 0}, prices: {input: 1, output: 1}}",
            "budget.per_day.cost_usd: must be more than 0",
        ),
        (
            "budget: {cost_usd: .inf, prices: {input: 1, output: 1}}",
            "a number must be finite",
        ),
        (
            "steering: {interval_seconds: 0}",
            "steering.interval_seconds: must be at least 1",
        ),
        (
            "steering: {give_up_hours: 0}",
            "steering.give_up_hours: must be at least 1",
        ),
        ("steering: {expire_days: 0}", "steering.expire_days: must be at least 1"),
        ("steering: {expire_days: -1}", "zero or more"),
        ("follow_up: {max_review_rounds: -1}", "zero or more"),
        (
            "follow_up: {max_review_rounds: 0, max_ci_rounds: 0}",
            "set follow_up.enabled to false",
        ),
        ("follow_up: {debounce_seconds: 100000}", "at most 86400"),
        ("planning: {verification: {max_failures: 0}}", "set max_rounds to 0"),
        ("planning: {verification: {max_tries: 0}}", "must be at least 1"),
    ]);
}

#[test]
fn what_a_change_request_cannot_get_is_refused() {
    are_refused(&[
        (
            "change_requests: {labels: ['a, b']}",
            "change_requests.labels[0]: must be a name",
        ),
        (
            "change_requests: {labels: [Coding Agent]}",
            "change_requests.labels[0]: is one of the labels by which the program goes",
        ),
        (
            "change_requests: {reviewers: [alice, '@bob']}",
            "change_requests.reviewers[1]: must be the name of an account without the '@'",
        ),
        (
            "change_requests: {assignees: ['']}",
            "change_requests.assignees[0]: must be a name",
        ),
    ]);
}

#[test]
fn reviews_and_approvals_that_cannot_be_are_refused() {
    are_refused(&[
        (
            "review: {plan: {target_score: 10.5}}",
            "review.plan.target_score: must be from 0 to 10",
        ),
        ("review: {result: {target_score: .nan}}", "a number must be finite"),
        (
            "review: {result: {max_rounds: 0}}",
            "review.result.max_rounds: must be at least 1; to have nothing reviewed set review.result.enabled to false",
        ),
        (
            "review: {timeout_seconds: 0}",
            "review.timeout_seconds: must be at least 1",
        ),
        ("review: {timeout_seconds: 1801}", "must be at most 1800"),
        ("review: {mode: kind}", "one of flexible, strict"),
        ("review: {plan: {on_unready: draft}}", "one of ask, fail, proceed"),
        (
            "approval: {plan: true}\nplanning: {enabled: false}",
            "approval.plan: there is no plan to wait with where planning.enabled is false",
        ),
        ("approval: {result: sometimes}", "one of guarded, always"),
        ("approval: {hard_require: [format]}", "delete, rename, broad_overwrite"),
        (
            "approval: {cost_limit_usd: 1.0}",
            "approval.cost_limit_usd: needs prices; give budget.prices, or prices of the models",
        ),
        (
            "approval: {cost_limit_usd: -1.0}",
            "approval.cost_limit_usd: must be a number above 0",
        ),
        (
            "approval: {auto_approve: {ttl_minutes: 0}}",
            "approval.auto_approve.ttl_minutes: must be at least 1",
        ),
        (
            "approval: {auto_approve: {ttl_minutes: 1441}}",
            "approval.auto_approve.ttl_minutes: must be at most 1440",
        ),
        (
            "approval: {auto_approve: {allowed_paths_prefix: [/docs]}}",
            "approval.auto_approve.allowed_paths_prefix: '/docs' must be a path from the top of the repository, such as docs/",
        ),
        (
            "approval: {auto_approve: {allowed_paths_prefix: [../docs]}}",
            "'../docs' must be a path from the top of the repository",
        ),
        (
            "approval: {auto_approve: {tools: [time]}}",
            "approval.auto_approve.tools: 'time' must name a server and its tool, such as time/now",
        ),
    ]);
}

#[test]
fn values_that_cannot_be_are_refused() {
    are_refused(&[
        ("consumers: 0", "at least 1"),
        ("consumers: 99999999999999999999", "too large"),
        ("consumers: 9007199254740993", "consumers: must be at most 1000"),
        (
            "max_llm_process_num: 5000000000",
            "max_llm_process_num: must be at most 2147483647",
        ),
        (
            "producer: {interval_seconds: 18446744073709551615}",
            "producer.interval_seconds: must be at most 1000000000",
        ),
        (
            "retention: {runs_days: 99999999}",
            "retention.runs_days: must be at most 100000",
        ),
        ("git: {author_email: ''}", "must not be empty"),
        ("git: {author_name: 'a <b>'}", "must not hold"),
        ("git: {author_name: 7}", "put it in quotes"),
        ("state_dir: ''", "state_dir: must not be empty"),
        (
            "store: {url: 'postgres://agent:hush@db/agent'}",
            "store.url: must not hold a password",
        ),
        (
            "store: {url: 'mysql://db/agent'}",
            "store.url: must begin with postgres://",
        ),
        ("store: {password: hush}", "store.password: is of no use without `url`"),
        ("command_executor: {environments: {python: ''}}", "an image"),
        (
            "command_executor: {environments: {a: {build: {dockerfile: x}}}}",
            "image: is missing",
        ),
        (
            "command_executor: {network: {mode: closed}}",
            "one of allowlist, none, open",
        ),
        (
            "command_executor: {network: {allow: [pypi.org, 'https://x.example']}}",
            "network.allow[1]: 'https://x.example' is not a host",
        ),
        (
            "command_executor: {network: {allow_private: ['10.0.0.0/8']}}",
            "network.allow_private[0]: '10.0.0.0/8' is not a host",
        ),
        (
            "command_executor: {environments: {python: {image: x, allow: ['*']}}}",
            "environments.python.allow[0]: '*' is not a host",
        ),
        (
            "command_executor: {services: {Postgres: {image: x}}}",
            "services.Postgres: 'Postgres' cannot be the name of a host",
        ),
        (
            "command_executor: {services: {db: {image: x, environments: [cobol]}}}",
            "services.db.environments: 'cobol' is not among the environments",
        ),
        (
            "command_executor: {services: {db: {image: x, memory_limit: much}}}",
            "services.db.memory_limit: 'much' is not a size",
        ),
        ("command_executor: {services: {db: {env: {}}}}", "image: is missing"),
        (
            "command_executor: {runtime: /usr/bin/runsc}",
            "is not the name of a runtime",
        ),
        ("mcp_servers: [{mcp_server_name: a/b, command: [x]}]", "letters, digits"),
        (
            "mcp_servers: [{mcp_server_name: a, command: [x]}, {mcp_server_name: a, command: [x]}]",
            "called 'a' already",
        ),
        (
            "mcp_servers: [{mcp_server_name: a, command: [x], env: {'A=B': c}}]",
            "name of a variable",
        ),
    ]);
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
