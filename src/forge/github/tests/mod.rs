//! The client against a server that answers as GitHub documents it.
mod account;
mod branches;
mod checks;
mod people;
mod pictures;
mod reading;
mod searching;
mod writing;

use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::forge::test_server::{Received, Reply, Server};
use crate::task::id::TaskId;

const TOKEN: &str = "ghp_0123456789";

fn config(server: &Server) -> Config {
    Config {
        api_url: format!("{}/api/v3", server.address),
        token: Some(SecretString::from(format!("{TOKEN}\n"))),
        bot_name: "bot".to_owned(),
        repositories: vec!["o/r".to_owned()],
        ..Config::default()
    }
}

async fn github(server: &Server) -> GitHub {
    connect(&config(server)).await.unwrap()
}

fn task() -> TaskId {
    "github:o/r#1".parse().unwrap()
}

fn issue(number: u64) -> Value {
    json!({
        "number": number, "title": "Greet", "body": null, "state": "open", "user": {"login": "ann"},
        "html_url": format!("https://github.com/o/r/issues/{number}"),
        "repository_url": "https://api.github.com/repos/o/r",
        "labels": [{"name": "Coding Agent"}], "assignees": [{"login": "bot"}],
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-03T00:00:00Z",
    })
}

fn repository(size: u64) -> Value {
    json!({
        "full_name": "o/r", "clone_url": "https://github.com/o/r.git", "default_branch": "main", "size": size,
        "permissions": {"push": true}, "has_issues": true,
    })
}

fn pull(number: u64, head: &str) -> Value {
    json!({
        "number": number, "html_url": format!("https://github.com/o/r/pull/{number}"),
        "head": {"ref": head, "repo": repository(1)}, "base": {"ref": "main", "repo": repository(1)},
    })
}

fn comment(id: u64, login: &str, body: &str) -> Value {
    let created_at = format!("2026-01-01T{:02}:{:02}:00Z", id / 60, id % 60);
    json!({"id": id, "user": {"login": login}, "body": body, "created_at": created_at, "updated_at": created_at})
}

fn refused(status: u16, message: &str) -> Reply {
    Reply::json(status, &json!({"message": message}))
}

fn unknown(asked: &Received) -> Reply {
    panic!("nobody expected {} {}", asked.method, asked.uri)
}
