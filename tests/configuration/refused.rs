//! Values that cannot be: each is refused alone, in the line where it stands.

use crate::with_github;

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
        (
            "command_executor: {services: {db: {image: x, memory_limit: 5m}}}",
            "services.db.memory_limit: '5m' is less than a container can start with; write at least 6m",
        ),
        (
            "command_executor: {resources: {memory_limit: 1m}}",
            "resources.memory_limit: '1m' is less than a container can start with; write at least 6m",
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
