//! The client against a server that answers as GitLab documents it, below a sub-path.

mod branches;
mod people;
mod reading;
mod writing;

use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::forge::test_server::{Received, Reply, Server};
use crate::task::id::TaskId;

const TOKEN: &str = "glpat-0123456789";
/// The project `g/s/p`, as GitLab wants it in a path.
const PROJECT: &str = "/git/api/v4/projects/g%2Fs%2Fp";

fn config(server: &Server) -> Config {
    Config {
        api_url: format!("{}/git", server.address),
        token: Some(SecretString::from(format!("{TOKEN}\n"))),
        bot_name: "@bot".to_owned(),
        projects: vec!["g/s/p".to_owned()],
        ..Config::default()
    }
}

async fn gitlab(server: &Server) -> GitLab {
    connect(&config(server)).unwrap()
}

fn issue() -> TaskId {
    "gitlab:g/s/p#1".parse().unwrap()
}

fn merge_request() -> TaskId {
    "gitlab:g/s/p!2".parse().unwrap()
}

fn item(iid: u64, sign: char) -> Value {
    json!({
        "id": 1000 + iid, "iid": iid, "title": "Greet", "description": null, "state": "opened",
        "author": {"username": "ann"}, "labels": ["coding agent"], "updated_at": "2026-01-03T00:00:00.000Z",
        "created_at": "2026-01-01T00:00:00.000Z",
        "assignees": [{"username": "bot"}], "web_url": format!("https://gitlab.com/{iid}"),
        "references": {"full": format!("g/s/p{sign}{iid}")},
        "source_project_id": 5, "target_project_id": 5, "source_branch": "fix", "target_branch": "main",
    })
}

fn project(id: u64) -> Value {
    json!({
        "id": id, "path_with_namespace": format!("g/s/p{id}"), "visibility": "private", "http_url_to_repo": format!("https://gitlab.com/{id}.git"), "default_branch": "main",
        "permissions": {"project_access": {"access_level": 30}, "group_access": null},
    })
}

fn note(id: u64, username: &str, body: &str) -> Value {
    let created_at = format!("2026-01-01T{:02}:{:02}:00.000Z", id / 60, id % 60);
    json!({"id": id, "author": {"username": username}, "body": body, "created_at": created_at,
        "updated_at": created_at, "system": false})
}

fn refused(status: u16, message: &str) -> Reply {
    Reply::json(status, &json!({"message": message}))
}

fn unknown(asked: &Received) -> Reply {
    panic!("nobody expected {} {}", asked.method, asked.uri)
}

/// Returns the request without the part before the project, e.g. `GET /issues/1`.
fn short(asked: &Received) -> String {
    asked.line().replace(PROJECT, "")
}
