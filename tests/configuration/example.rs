//! The example holds the defaults, and everything there is.

use coding_agent::config::Config;
use coding_agent::config::TaskSource;
use serde_json::Value;

use crate::Given;

const EXAMPLE: &str = include_str!("../../config.yaml.example");

#[test]
fn the_example_holds_the_defaults() {
    let given = Given::file(EXAMPLE).with("GITHUB_TOKEN", "a-token");
    let folder = given.folder.path();
    let mut expected = Config {
        task_sources: vec![TaskSource::Github],
        state_dir: folder.join("state"),
        ..Config::default()
    };
    expected.github.entries[0].token = Some("a-token".into());
    expected.github.entries[0].repositories = vec!["owner/repo".to_owned()];
    expected.logs.directory = folder.join("logs");
    // Built images name their Dockerfiles relative to the file.
    for environment in expected.command_executor.environments.values_mut() {
        if let Some(build) = &mut environment.build {
            build.dockerfile = folder.join(&build.dockerfile);
        }
    }
    assert_eq!(format!("{:#?}", given.loads()), format!("{expected:#?}"));
}

/// The example with the lines that are commented out, in the place of those they contradict.
fn whole_example() -> String {
    let is_replaced = |line: &&str| {
        [
            "mcp_servers: []",
            "  services: {}",
            "    github: {}",
            "    gitlab: {}",
            "traces: {}",
            "    allowed_users: {}",
            "  persona_files: {}",
            "  ops: {}",
        ]
        .contains(line)
            || line.starts_with("    python: ")
    };
    let uncommented = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && (!rest.starts_with(' ') || rest.starts_with("  ")) => {
            let rest = rest.strip_prefix('#').unwrap_or(rest);
            format!("{rest}\n")
        }
        _ => format!("{line}\n"),
    };
    EXAMPLE
        .lines()
        .skip_while(|line| !line.is_empty())
        .filter(|line| !is_replaced(line))
        .map(uncommented)
        .collect()
}

#[test]
fn the_example_shows_every_key_of_the_schema() {
    let document: Value = serde_yaml::from_str(&whole_example()).unwrap();
    let schema = Config::schema();
    let mut missing = Vec::new();
    compare(&schema, &schema, &document, "", &mut missing);
    // What every model may have is shown once.
    let model = &document["llm"]["models"]["near"];
    missing.retain(
        |path: &String| match path.strip_prefix(".llm.").and_then(|path| path.split_once('.')) {
            Some(("ollama" | "lmstudio" | "openai" | "anthropic", key)) => model.get(key).is_none(),
            Some(_) | None => true,
        },
    );
    assert_eq!(missing, Vec::<String>::new());
}

fn compare(root: &Value, schema: &Value, document: &Value, path: &str, missing: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        compare(root, root.pointer(&reference[1..]).unwrap(), document, path, missing);
    }
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        compare(root, choice, document, path, missing);
    }
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        match document.get(key) {
            Some(value) => compare(root, property, value, &format!("{path}.{key}"), missing),
            None => missing.push(format!("{path}.{key}")),
        }
    }
    if let Some(item) = document.get(0) {
        compare(root, &schema["items"], item, path, missing);
    }
    if let (Some(any), Some(map)) = (schema["additionalProperties"].as_object(), document.as_object()) {
        for value in map.values().filter(|value| value.is_object()) {
            compare(root, &Value::Object(any.clone()), value, path, missing);
        }
    }
}

#[test]
fn what_the_example_leaves_out_is_good_too_but_for_what_excludes_each_other() {
    let mut given = Given::file(&whole_example());
    for name in [
        "GITHUB_TOKEN",
        "GITLAB_TOKEN",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "STORE_PASSWORD",
        "ALICE_TOKEN",
        "GITHUB_WEBHOOK_SECRET",
        "GITLAB_WEBHOOK_TOKEN",
        "GITLAB_SIGNING_TOKEN",
        "COLLECTOR_KEY",
        "SLACK_APP_TOKEN",
        "SLACK_BOT_TOKEN",
        "SLACK_SIGNING_SECRET",
        "LINE_CHANNEL_SECRET",
        "LINE_ACCESS_TOKEN",
    ] {
        given = given.with(name, "a-token-of-twenty-20");
    }
    let faults = given.faults();
    let keys: Vec<&str> = faults.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    assert_eq!(
        keys,
        [
            "github.token_file",
            "github.app",
            "github.ca_file",
            "gitlab.token_file",
            "gitlab.ca_file",
            "llm.openai.api_key_file",
            "llm.anthropic.api_key_file",
            // Those of other providers.
            "llm.models.near.base_url",
            "llm.models.near.api_key",
            "llm.models.near.api_key_file",
            "llm.models.near.max_tokens",
            "llm.models.near.command",
            "llm.models.near.env",
            "llm.models.near.local",
            "llm.models.near.ca_file",
            "llm.models.near.fallback",
            // Nothing lies where they say, as with each `ca_file`.
            "git.signing_key_file",
            "store.password_file",
            "ca_file",
            "http.users.alice.token_file",
            "http.webhooks.github.secret_file",
            "http.webhooks.gitlab.token_file",
            "http.webhooks.gitlab.signing_secret_file",
            // Another name of a forge than the one above.
            "chat.default_repository",
            "chat.slack.app_token_file",
            "chat.slack.bot_token_file",
            "chat.slack.signing_secret_file",
            "chat.slack.allowed_users",
            "chat.line.channel_secret_file",
            "chat.line.channel_access_token_file",
            "chat.line.allowed_users",
            "chat.persona_files.chat",
            "chat.persona_files.policy",
            "chat.persona_files.overlay",
            "chat.routing.rules_file",
        ],
        "{faults}"
    );
}

#[test]
fn the_schema_says_types_defaults_and_what_keys_are_for() {
    let schema = Config::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    insta::assert_json_snapshot!(schema["properties"]["consumers"], @r#"
    {
      "default": 2,
      "description": "Tasks that are worked on at the same time.",
      "format": "uint",
      "minimum": 0,
      "type": "integer"
    }
    "#);
    insta::assert_json_snapshot!(schema["$defs"]["OpenAi"]["properties"]["api_key_file"], @r#"
    {
      "description": "File that holds `api_key`; blanks around it are cut off.",
      "type": [
        "string",
        "null"
      ]
    }
    "#);
    assert_eq!(schema["additionalProperties"], false);
    for (key, property) in schema["properties"].as_object().unwrap() {
        assert!(property["description"].is_string(), "{key}");
    }
}
