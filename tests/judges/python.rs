//! Clients for Python drive the fakes: `PyGithub`, githubkit (whose types are GitHub's own
//! description of its API) and python-gitlab.

use std::path::Path;
use std::process::Command;

use crate::fake::github::GitHub;
use crate::fake::github::Permission;
use crate::fake::gitlab::Access;
use crate::fake::gitlab::GitLab;
use crate::fake::gitlab::Job;

/// Runs a script of this folder, and fails with what it wrote.
pub(crate) fn judge(script: &str, environment: &[(&str, &str)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("judges")
        .join("bin/python");
    let python = std::env::var_os("CODING_AGENT_TEST_PYTHON").map_or(installed, |python| root.join(python));
    assert!(
        python.exists(),
        "there is no Python with the clients at {}: run `make setup`",
        python.display()
    );
    let mut command = Command::new(python);
    command
        .arg(root.join("tests/judges").join(script))
        .envs(environment.iter().copied());
    command.env_remove("http_proxy").env_remove("HTTP_PROXY");
    let output = command.output().unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{script} found a fault:\n{said}\n{complained}");
}

#[tokio::test]
async fn pygithub_carries_an_issue_to_a_pull_request() {
    let github = GitHub::start().await;
    let issue = github.open_issue("Greet the reader").label("coding agent");
    for number in 1..=300 {
        issue.comment("alice", &format!("remark {number}"));
    }
    let pull = github.open_pull("Colour", "colour", &[("COLOUR", "red\n")]);
    pull.line_comment("alice", "COLOUR", 1, "Blue, please.")
        .requests_changes("alice", "Nearly.")
        .approves("bob", "Fine.")
        .check_fails("test", "E   assert False")
        .check_begins("lint")
        .status("ci/legacy", "pending", "queued")
        .status("ci/legacy", "failure", "3 tests failed");
    let repository = github.default_repository();
    for (login, permission) in [
        ("dora", Permission::Maintain),
        ("adam", Permission::Admin),
        ("rita", Permission::Read),
        ("trudy", Permission::Triage),
        ("mallory", Permission::None),
    ] {
        repository.member(login, permission);
    }
    let app = github.install_app(4711);
    judge(
        "pygithub.py",
        &[
            ("API", &github.api_url()),
            ("TOKEN", github.token()),
            ("APP", &app.id.to_string()),
        ],
    );
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(github.unknown_requests(), Vec::<String>::new());
}

#[tokio::test]
async fn every_answer_fits_the_description_that_github_publishes() {
    let github = GitHub::start().await;
    let issue = github
        .open_issue("Greet the reader")
        .body("Say hello.")
        .label("coding agent")
        .assign(&["alice"]);
    issue.comment("alice", "Please.").lock();
    let pull = github
        .open_pull("Colour", "colour", &[("COLOUR", "red\n")])
        .body("See #1");
    pull.rewrite("Closes #1")
        .line_comment("alice", "COLOUR", 1, "Blue, please.")
        .review("alice", "Nearly.")
        .check_fails("test", "E   assert False")
        .check_begins("lint")
        .status("ci/legacy", "failure", "3 tests failed");
    github.default_repository().lays_rule_on("colour", "pull_request");
    github
        .open_pull_from_fork("mallory", "Help", "help", &[("HELP", "help\n")])
        .close();
    judge(
        "githubkit_types.py",
        &[("API", &github.api_url()), ("TOKEN", github.token())],
    );
    assert_eq!(github.unknown_requests(), Vec::<String>::new());
}

#[tokio::test]
async fn python_gitlab_carries_an_issue_to_a_merge_request() {
    let gitlab = GitLab::start().await;
    let issue = gitlab.open_issue("Greet the reader").label("coding agent");
    for number in 1..=300 {
        issue.comment("alice", &format!("remark {number}"));
    }
    gitlab
        .project("acme/tools/hammer")
        .open_issue("Hit harder")
        .label("coding agent");
    let merge = gitlab.open_merge_request("Colour", "colour", &[("COLOUR", "red\n")]);
    merge.line_comment("alice", "COLOUR", 1, "Blue, please.");
    let failed = vec![
        Job::failed("test", "E   assert False"),
        Job::external("license/cla", "The agreement is not signed yet."),
    ];
    merge.pipeline_passes("test").pipeline_fails_in(failed);
    let project = gitlab.default_project();
    project
        .member("rita", Access::Reporter)
        .inherited_member("rita", Access::Developer)
        .inherited_member("greta", Access::Guest);
    judge("python_gitlab.py", &[("URL", gitlab.url()), ("TOKEN", gitlab.token())]);
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(gitlab.unknown_requests(), Vec::<String>::new());
    assert!(
        issue
            .timeline()
            .contains("coding-agent-bot opened merge request acme/widgets!2 \"Greet\""),
        "{}",
        issue.timeline()
    );
}
