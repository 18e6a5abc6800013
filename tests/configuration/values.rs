//! Where values come from: the file, variables, other files, the environment.

use std::path::Path;

use coding_agent::config::Config;
use coding_agent::config::fault::ConfigSource;
use coding_agent::llm::config::ProviderName;
use coding_agent::llm::config::keep_alive::KeepAlive;
use coding_agent::llm::config::model_config::OWN;
use coding_agent::llm::config::role::Role;
use secrecy::ExposeSecret;

use crate::{GITHUB, Given, with_github};

#[test]
fn variables_bring_numbers_truth_values_and_awkward_text() {
    let config = with_github(
        "consumers: ${N}\nplanning: {enabled: '${P:-false}'}\nllm: {function_calling: '${F}', ollama: {model: \"${M}\"}}\n\
         budget: {tokens: '${T:-}', cost_usd: '${C:-}'}\ngit: {author_name: '$${N} ${N}'}\n",
    )
    .with("N", "7")
    .with("F", "true")
    .with("M", "a: \"b\" # 'c'\n- d")
    .loads();
    assert_eq!(config.consumers, 7);
    assert!(!config.planning.enabled);
    assert_eq!(
        config.llm.function_calling,
        coding_agent::llm::config::function_calling::FunctionCalling::On
    );
    assert_eq!(config.llm.ollama.model, "a: \"b\" # 'c'\n- d");
    assert_eq!((config.budget.tokens, config.budget.cost_usd), (None, None));
    assert_eq!(config.git.author_name, "${N} 7");
}

#[test]
fn how_long_a_model_stays_loaded_is_a_text_or_a_number() {
    for (written, expected) in [
        ("30m", KeepAlive::Text("30m".to_owned())),
        ("'-1'", KeepAlive::Text("-1".to_owned())),
        ("-1", KeepAlive::Seconds(-1)),
        ("300", KeepAlive::Seconds(300)),
    ] {
        let near = format!("near: {{provider: ollama, model: m, keep_alive: {written}}}");
        let text = format!("llm: {{ollama: {{keep_alive: {written}}}, models: {{{near}}}}}\n");
        let config = with_github(&text).loads();
        assert_eq!(config.llm.ollama.keep_alive, expected);
        assert_eq!(config.llm.named_model("near").unwrap().keep_alive, expected);
    }
    let faults = with_github("llm: {ollama: {keep_alive: 1.5}}\n").faults();
    assert!(
        faults.contains("llm.ollama.keep_alive: must be text, or a whole number"),
        "{faults}"
    );
}

#[test]
fn a_secret_made_of_digits_stays_text() {
    let config = Given::file("task_sources: [github]\ngithub: {token: '${T}', repositories: [a/b]}\n")
        .with("T", "0123456789\n")
        .loads();
    assert_eq!(
        config.github.entries[0].token.as_ref().unwrap().expose_secret(),
        "0123456789"
    );
}

#[test]
fn secrets_are_read_from_files_beside_the_configuration() {
    let config = Given::file(
        "task_sources: [gitlab]\ngitlab: {token_file: token.txt, projects: [group/sub/*]}\n\
         mcp_servers: [{mcp_server_name: a, command: [b], env: {API_KEY_file: token.txt, PLAIN: x}}]\n",
    )
    .and("token.txt", "  a-token\n")
    .loads();
    assert_eq!(
        config.gitlab.entries[0].token.as_ref().unwrap().expose_secret(),
        "a-token"
    );
    assert_eq!(config.mcp_servers[0].env["API_KEY"].expose_secret(), "a-token");
    let secrets: Vec<_> = config
        .secrets()
        .iter()
        .map(|secret| secret.expose_secret().to_owned())
        .collect();
    assert_eq!(secrets, ["a-token", "a-token"]);
}

#[test]
fn variables_of_commands_of_the_chat_hold_secrets_as_those_of_other_programs() {
    let github = "task_sources: [github]\ngithub: {token: '${T}', repositories: [a/b]}\n";
    let with = |variables: &str| {
        let ops = format!("chat: {{ops: {{disk: {{command: [df], env: {{{variables}}}}}}}}}\n");
        Given::file(&format!("{github}{ops}"))
            .with("T", "a-token")
            .and("ops.txt", "a-token-of-ops\n")
    };
    for variables in ["API_TOKEN_file: ops.txt, LANG: C", "API_TOKEN: a-token-of-ops, LANG: C"] {
        let given = with(variables);
        let config = given.loads();
        let env = &config.chat.ops["disk"].env;
        let names: Vec<&String> = env.keys().collect();
        assert_eq!(names, ["API_TOKEN", "LANG"], "{variables}");
        let secrets: Vec<_> = config
            .secrets()
            .iter()
            .map(|secret| secret.expose_secret().to_owned())
            .collect();
        assert_eq!(secrets, ["a-token", "a-token-of-ops"], "{variables}");
        let file = if variables.contains("_file") {
            "ops.txt"
        } else {
            "config.yaml"
        };
        assert_eq!(config.secret_files, [given.folder.path().join(file)], "{variables}");
    }
    let faults = with("API_TOKEN_file: gone.txt").faults();
    assert!(
        faults.contains("chat.ops.disk.env.API_TOKEN_file: the file gone.txt"),
        "{faults}"
    );
}

#[test]
fn an_app_and_a_token_exclude_each_other_and_the_key_must_be_there() {
    let given = Given::file(
        "task_sources: [github]\ngithub:\n  repositories: [a/b]\n  app: {id: 1, private_key_file: k.pem}\n",
    );
    insta::assert_snapshot!(given.faults(), @"config.yaml:4:16: github.app.private_key_file: the file k.pem is not there");
    let given = given.and("k.pem", "key");
    let app = given.loads().github.entries.remove(0).app.unwrap();
    assert_eq!(app.private_key_file, given.folder.path().join("k.pem"));
}

#[test]
fn paths_are_absolute_wherever_the_file_is_named_from() {
    let text = "task_sources: [github]\ngithub: {token: a-token, repositories: [a/b]}\n\
                command_executor: {executor_path: ./bin/executor}\nlogs: {directory: ./logs/}\n";
    let started_in = std::env::current_dir().unwrap();
    for (folder, expected) in [
        ("", started_in.clone()),
        (".", started_in.clone()),
        ("conf", started_in.join("conf")),
        ("/etc/agent", "/etc/agent".into()),
    ] {
        let config = Config::parse(text, &ConfigSource::Environment, Path::new(folder), &|_| None).unwrap();
        assert_eq!(config.state_dir.as_os_str(), expected.join("state").as_os_str());
        assert_eq!(config.logs.directory.as_os_str(), expected.join("logs").as_os_str());
        assert_eq!(
            config.command_executor.executor_path,
            Some(expected.join("bin/executor"))
        );
    }
}

#[test]
fn a_path_may_begin_at_the_home_of_the_user() {
    let text = "state_dir: ~/state\nlogs: {directory: ~/logs}\nllm: {ollama: {model: ~/model}}\n";
    let config = with_github(text).with("HOME", "/home/me").loads();
    assert_eq!(config.state_dir, Path::new("/home/me/state"));
    assert_eq!(config.logs.directory, Path::new("/home/me/logs"));
    assert_eq!(config.llm.ollama.model, "~/model");
    insta::assert_snapshot!(with_github(text).faults(), @"
    config.yaml:3:1: state_dir: begins with `~/`, and HOME is not set; write the whole path
    config.yaml:4:8: logs.directory: begins with `~/`, and HOME is not set; write the whole path
    ");
    let github = "task_sources: [github]\ngithub: {token_file: ~/token, repositories: [a/b]}\n";
    let faults = Given::file(github).with("HOME", "/nowhere").faults();
    assert!(
        faults.contains("github.token_file: the file /nowhere/token cannot be read"),
        "{faults}"
    );
}

#[test]
fn a_section_whose_lines_are_commented_out_has_its_defaults() {
    let config = with_github("budget:\n  # tokens: 5\nllm:\n  openai:\n    api_key:\n").loads();
    assert!(config.budget.tokens.is_none() && config.llm.openai.api_key.is_none());
}

#[test]
fn sources_that_are_not_used_may_be_incomplete_and_none_at_all_is_enough_for_a_local_task() {
    let config = Given::file("llm: {ollama: {model: small}}\n").loads();
    assert!(config.missing_source().unwrap().contains("task_sources: [github]"));
    assert_eq!(Given::file(GITHUB).loads().missing_source(), None);
}

#[test]
fn without_a_file_the_environment_names_the_model() {
    let load = |variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Config::from_environment(&variable).map_err(|faults| faults[0].to_string())
    };
    let config = load(&[("HOME", "/home/me")]).unwrap();
    assert_eq!(config.llm.provider, ProviderName::Ollama);
    assert_eq!(config.state_dir, Path::new("/home/me/.local/state/coding-agent/state"));
    let hint = config.llm.own_model().start_hint();
    assert!(hint.starts_with("start its server, or set OPENAI_API_KEY, "), "{hint}");

    let config = load(&[("OLLAMA_HOST", "gpu"), ("OLLAMA_MODEL", "m"), ("OPENAI_API_KEY", " ")]).unwrap();
    assert_eq!(config.llm.provider, ProviderName::Ollama);
    assert_eq!(
        (config.llm.ollama.endpoint.as_str(), config.llm.ollama.model.as_str()),
        ("http://gpu:11434", "m")
    );

    let config = load(&[("OPENAI_API_KEY", "a-${key}\n"), ("OLLAMA_HOST", "gpu")]).unwrap();
    assert_eq!(config.llm.provider, ProviderName::Openai);
    assert_eq!(config.secrets()[0].expose_secret(), "a-${key}");

    let config = load(&[("LMSTUDIO_BASE_URL", "http://10.0.0.2:1234")]).unwrap();
    assert_eq!(config.llm.provider, ProviderName::Lmstudio);

    insta::assert_snapshot!(load(&[("OPENAI_BASE_URL", "gpu")]).unwrap_err(), @"environment: OPENAI_BASE_URL: is not an address; write http:// or https:// before it");
    insta::assert_snapshot!(load(&[("LMSTUDIO_BASE_URL", "127.0.0.1:9")]).unwrap_err(), @"environment: LMSTUDIO_BASE_URL: is not an address; write http:// or https:// before it");
    insta::assert_snapshot!(load(&[("OPENAI_BASE_URL", "https://api.openai.com/v1")]).unwrap_err(), @"environment: llm.openai.api_key: is missing; give `api_key` or `api_key_file`");
}

#[test]
fn the_file_is_the_one_that_was_asked_for() {
    let variable = |name: &str| (name == "CODING_AGENT_CONFIG").then(|| "named.yaml".to_owned());
    assert_eq!(
        Config::find(Some(Path::new("asked.yaml")), &variable).unwrap(),
        Path::new("asked.yaml")
    );
    assert_eq!(Config::find(None, &variable).unwrap(), Path::new("named.yaml"));
}

#[test]
fn roles_pick_among_models_and_every_other_one_has_the_providers_own() {
    let given = with_github(
        "llm:
  timeout_seconds: 100
  models:
    near: {provider: ollama, model: small, endpoint: 'http://gpu:11434', temperature: 0, extra_body: {options: {top_k: 4}}}
    cloud: {provider: anthropic, model: large, api_key: '${KEY}', timeout_seconds: 30, prices: {input: 3, output: 15}}
  roles: {planner: cloud, local_only: near}
budget: {cost_usd: 1}
",
    );
    let config = given.with("KEY", "sk-secret").loads();
    let llm = &config.llm;
    assert_eq!(llm.model_of(Role::Planner), "cloud");
    assert_eq!(llm.model_of(Role::Worker), OWN);
    assert_eq!(llm.used_models(), ["cloud", OWN, "near"]);
    let near = llm.named_model("near").unwrap();
    assert_eq!(
        (near.address.as_str(), near.context_length),
        ("http://gpu:11434", 32_768)
    );
    assert_eq!((near.timeout.as_secs(), near.options.temperature), (100, Some(0.0)));
    let cloud = llm.named_model("cloud").unwrap();
    assert_eq!(
        (cloud.address.as_str(), cloud.max_tokens),
        ("https://api.anthropic.com", Some(8_192))
    );
    assert_eq!(cloud.timeout.as_secs(), 30);
    assert_eq!(config.prices().keys().collect::<Vec<_>>(), ["cloud"]);
    assert!(
        config
            .secrets()
            .iter()
            .any(|secret| secret.expose_secret() == "sk-secret")
    );
}

#[test]
fn a_template_of_the_system_prompt_is_read_and_checked_at_the_start() {
    let named = || with_github("llm: {system_prompt_file: mine.txt}\n");
    let config = named().and("mine.txt", "Work on {{ environment }}.\n").loads();
    assert_eq!(config.system_prompt.as_deref(), Some("Work on {{ environment }}.\n"));
    for (text, expected) in [
        (
            "{{ enviroment }}",
            "there is no variable `enviroment`; did you mean `environment`?",
        ),
        ("one\n{% if native %}", "line 2: "),
    ] {
        let faults = named().and("mine.txt", text).faults();
        assert!(
            faults.starts_with("config.yaml:")
                && faults.contains("llm.system_prompt_file: ")
                && faults.contains(&format!("mine.txt: {expected}")),
            "{faults}"
        );
    }
    assert!(
        named().faults().contains("llm.system_prompt_file: the file "),
        "{}",
        named().faults()
    );
    assert_eq!(with_github("").loads().system_prompt, None);
}

#[test]
fn every_variable_of_the_system_prompt_is_documented() {
    let documented = include_str!("../../docs/configuration.md");
    for variable in coding_agent::agent::prompt::system_prompt::VARIABLES {
        assert!(documented.contains(&format!("`{variable}`")), "{variable}");
    }
}
