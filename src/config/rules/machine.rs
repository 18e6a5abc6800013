//! Checks of the sections on containers, tools, git and the program itself.

use std::path::Path;

use super::check_given;
use super::check_positive;
use crate::config::Config;
use crate::config::fault::Faults;
use crate::repository::commit::signing::SigningKey;

/// Maximum of `debounce_seconds`: one day.
const LONGEST_DEBOUNCE: u32 = 86_400;

/// Names of the built-in tool servers.
const RESERVED: [&str; 3] = ["workspace", "repository", "agent"];

pub(super) fn check(config: &Config, folder: &Path, faults: &mut Faults) {
    if config.consumers == 0 {
        faults.at("consumers", "must be at least 1");
    }
    check_positive("producer.interval_seconds", config.producer.interval_seconds, faults);
    let steering = &config.steering;
    check_positive("steering.interval_seconds", steering.interval_seconds, faults);
    check_positive("steering.give_up_hours", steering.give_up_hours.into(), faults);
    check_positive("steering.expire_days", steering.expire_days.into(), faults);
    check_following(config, faults);
    check_positive("logs.retention_days", config.logs.retention_days.into(), faults);
    let retention = &config.retention;
    check_positive("retention.runs_days", retention.runs_days.into(), faults);
    check_positive(
        "retention.conversations_days",
        retention.conversations_days.into(),
        faults,
    );
    check_positive(
        "retention.mirrors_unused_days",
        retention.mirrors_unused_days.into(),
        faults,
    );
    check_given("state_dir", &config.state_dir.to_string_lossy(), faults);
    if let Some((key, reason)) = config.store.fault() {
        faults.at(&format!("store.{key}"), reason);
    }
    check_given("logs.directory", &config.logs.directory.to_string_lossy(), faults);
    check_containers(config, faults);
    check_tools(config, faults);
    check_git(config, folder, faults);
}

/// Refuses a follow-up that is enabled but has no rounds, and one that waits too long.
fn check_following(config: &Config, faults: &mut Faults) {
    let following = &config.follow_up;
    if following.enabled && following.max_review_rounds == 0 && following.max_ci_rounds == 0 {
        faults.at(
            "follow_up.max_review_rounds",
            "must be at least 1 where max_ci_rounds is 0; to have nothing followed set follow_up.enabled to false",
        );
    }
    if following.debounce_seconds > LONGEST_DEBOUNCE {
        let reason = format!("must be at most {LONGEST_DEBOUNCE}: nobody waits longer for reviewers to finish");
        faults.at("follow_up.debounce_seconds", reason);
    }
}

/// Adds the faults that `environment` finds in its section; each begins with the key.
fn check_containers(config: &Config, faults: &mut Faults) {
    for fault in config.command_executor.validate() {
        if let Some((key, reason)) = fault.split_once(": ") {
            faults.at(&format!("command_executor.{key}"), reason);
        }
    }
    for (key, reason) in config.environment.validate(&config.command_executor) {
        faults.at(&key, reason);
    }
}

fn check_tools(config: &Config, faults: &mut Faults) {
    for (index, server) in config.mcp_servers.iter().enumerate() {
        let key = |name: &str| format!("mcp_servers.{index}.{name}");
        let name = server.mcp_server_name.as_str();
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
        let is_taken = |other: &crate::tool::McpServerConfig| other.mcp_server_name == name;
        if name.is_empty() || !name.chars().all(is_word) {
            let reason = "must be made of letters, digits, `-` and `_`: tools are called name/tool";
            faults.at(&key("mcp_server_name"), reason);
        } else if RESERVED.contains(&name) {
            let reason = format!("'{name}' is the name of a built-in server; choose another");
            faults.at(&key("mcp_server_name"), reason);
        } else if config.mcp_servers[..index].iter().any(is_taken) {
            let reason = format!("another server is called '{name}' already; choose another name");
            faults.at(&key("mcp_server_name"), reason);
        }
        if server.command.first().is_none_or(|program| program.trim().is_empty()) {
            let reason = "must begin with a program, e.g. [\"uvx\", \"mcp-server-time\"]";
            faults.at(&key("command"), reason);
        }
        for variable in server.env.keys() {
            if variable.is_empty() || variable.contains(['=', '\0']) {
                faults.at(&key("env"), format!("'{variable}' cannot be the name of a variable"));
            }
        }
        if server.tools.as_ref().is_some_and(Vec::is_empty) {
            faults.at(&key("tools"), "offers no tool at all; leave it out to offer every tool");
        }
        check_positive(&key("timeout_seconds"), server.timeout_seconds, faults);
    }
}

fn check_git(config: &Config, folder: &Path, faults: &mut Faults) {
    let git = &config.git;
    for (key, text) in [
        ("git.author_name", &git.author_name),
        ("git.author_email", &git.author_email),
    ] {
        check_given(key, text, faults);
        if text.contains(['<', '>']) || text.contains(char::is_control) {
            faults.at(key, "must not hold `<`, `>` or a line break: git cannot store them");
        }
    }
    if let Some(file) = &git.signing_key_file {
        let file = folder.join(file);
        if let Err(reason) = SigningKey::read(&file) {
            faults.at("git.signing_key_file", format!("the file {} {reason}", file.display()));
        }
    }
    check_positive("git.timeout_seconds", git.timeout_seconds, faults);
    check_positive("git.stall_seconds", git.stall_seconds, faults);
    check_positive("git.max_incoming_bytes", git.max_incoming_bytes, faults);
    check_positive("git.lfs.max_bytes", git.lfs.max_bytes, faults);
    check_positive("git.max_file_bytes", git.max_file_bytes, faults);
}
