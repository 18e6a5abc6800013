//! The real git clones from the fakes and pushes to them.

use std::path::Path;
use std::process::Command;
use std::process::Output;

use crate::fake::github::GitHub;
use crate::fake::github::Permission;
use crate::fake::gitlab::Access;
use crate::fake::gitlab::GitLab;

fn git(folder: &Path, arguments: &[&str]) -> Output {
    let mut git = Command::new("git");
    git.current_dir(folder)
        .args(["-c", "user.name=Bot", "-c", "user.email=bot@example.org"])
        .args(arguments);
    git.env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    git.output().unwrap()
}

fn works(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn with_token(url: &str, token: &str) -> String {
    url.replacen("http://", &format!("http://x-access-token:{token}@"), 1)
}

#[tokio::test]
async fn a_push_becomes_a_branch_and_moves_its_pull_request() {
    let github = GitHub::start().await;
    let repository = github.default_repository();
    let pull = github.open_pull("Greet", "greet", &[("README.md", "Hi\n")]);
    let folder = tempfile::tempdir().unwrap();

    let refused = git(folder.path(), &["clone", "-q", &repository.clone_url(), "anonymous"]);
    assert!(
        !refused.status.success(),
        "a private repository is not shown to everybody"
    );
    works(&git(
        folder.path(),
        &[
            "clone",
            "-q",
            &with_token(&repository.clone_url(), github.token()),
            "clone",
        ],
    ));
    let clone = folder.path().join("clone");
    works(&git(&clone, &["switch", "-q", "greet"]));
    std::fs::write(clone.join("README.md"), "Hello\n").unwrap();
    // More than git sends in one piece: the push comes in chunks.
    let noise: Vec<u8> = (0..800_000_u64)
        .flat_map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .collect();
    std::fs::write(clone.join("noise"), noise).unwrap();
    works(&git(&clone, &["add", "."]));
    works(&git(&clone, &["commit", "-q", "-m", "Greet louder"]));
    works(&git(&clone, &["push", "-q", "origin", "greet"]));

    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"));
    assert_eq!(
        pull.commits()
            .iter()
            .map(|commit| commit.author.as_str())
            .collect::<Vec<_>>(),
        ["Alice", "Bot"]
    );
    assert!(
        pull.timeline().contains("coding-agent-bot pushed \"Greet louder\""),
        "{}",
        pull.timeline()
    );
    works(&git(&clone, &["push", "-q", "origin", "--delete", "greet"]));
    assert!(!pull.is_open(), "a pull request without a branch is closed");
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"));
}

#[tokio::test]
async fn a_push_is_refused_where_the_right_is_missing() {
    let github = GitHub::start().await;
    let repository = github.default_repository().rejects_pushes_to("main");
    let folder = tempfile::tempdir().unwrap();
    works(&git(
        folder.path(),
        &[
            "clone",
            "-q",
            &with_token(&repository.clone_url(), github.token()),
            "clone",
        ],
    ));
    let clone = folder.path().join("clone");
    works(&git(&clone, &["commit", "-q", "--allow-empty", "-m", "Greet"]));
    let complaint = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();

    let protected = complaint(&git(&clone, &["push", "origin", "main"]));
    assert!(protected.contains("GH006"), "{protected}");
    repository.member(github.bot(), Permission::Read);
    let reader = complaint(&git(&clone, &["push", "origin", "HEAD:refs/heads/mine"]));
    assert!(reader.contains("403"), "{reader}");
    assert_eq!(repository.branches(), ["main"]);

    let pull = github.open_pull_from_fork("mallory", "Help", "help", &[("README.md", "Help\n")]);
    let fork = with_token(&github.repository("mallory/widgets").clone_url(), github.token());
    let stranger = complaint(&git(&clone, &["push", "-f", &fork, "HEAD:help"]));
    assert!(stranger.contains("403"), "{stranger}");
    repository.member(github.bot(), Permission::Write);
    pull.allows_maintainers();
    works(&git(&clone, &["push", "-f", &fork, "HEAD:help"]));
    assert!(pull.timeline().contains("force-pushed"), "{}", pull.timeline());
}

#[tokio::test]
async fn an_empty_repository_can_be_cloned() {
    let github = GitHub::start().await;
    let repository = github.repository("acme/blank").empty();
    let folder = tempfile::tempdir().unwrap();
    works(&git(
        folder.path(),
        &[
            "clone",
            "-q",
            &with_token(&repository.clone_url(), github.token()),
            "clone",
        ],
    ));
    assert_eq!(repository.branches(), Vec::<String>::new());
}

#[tokio::test]
async fn gitlab_takes_a_push_and_moves_the_merge_request() {
    let gitlab = GitLab::start().await;
    let project = gitlab.project("acme/tools/hammer");
    let merge = project.open_merge_request("Greet", "greet", &[("README.md", "Hi\n")]);
    let folder = tempfile::tempdir().unwrap();
    works(&git(
        folder.path(),
        &[
            "clone",
            "-q",
            "-b",
            "greet",
            &with_token(&project.clone_url(), gitlab.token()),
            "clone",
        ],
    ));
    let clone = folder.path().join("clone");
    works(&git(&clone, &["commit", "-q", "--allow-empty", "-m", "Greet louder"]));
    works(&git(&clone, &["push", "-q", "origin", "greet"]));
    insta::assert_snapshot!(merge.timeline(), @r#"
    acme/tools/hammer!1 Greet (open)
      alice opened this merge request: greet -> main
      coding-agent-bot pushed "Greet louder"
    "#);
    project.member(gitlab.bot(), Access::Reporter);
    let reader = git(&clone, &["push", "origin", "HEAD:refs/heads/mine"]);
    assert!(
        String::from_utf8_lossy(&reader.stderr).contains("403"),
        "{}",
        String::from_utf8_lossy(&reader.stderr)
    );
    assert_eq!(project.branches(), ["greet", "main"]);
}

#[tokio::test]
async fn what_is_read_without_git_is_what_git_says_and_follows_the_branches() {
    let github = GitHub::start().await;
    let bare = github.default_repository().git();
    let first = bare.commit("main", "HEAD", "One", &[("a", "1\n")]);
    let second = bare.commit("main", "HEAD", "Two", &[("a", "2\n")]);
    let side = bare.commit("deep/side", &first, "Side", &[("b", "1\n")]);
    let of = |name: &str, id: &String| (name.to_owned(), id.clone());
    assert_eq!(bare.branches(), [of("deep/side", &side), of("main", &second)]);

    let path = bare.path();
    works(&git(path, &["tag", "-m", "A tag", "v1", &first]));
    works(&git(path, &["symbolic-ref", "refs/heads/same", "refs/heads/main"]));
    bare.set_reference("refs/notes/tree", &bare.tree("main"));
    for kept in ["loose", "packed"] {
        let commits = [
            ("refs/heads/main", Some(&second)),
            ("refs/heads/main~1", Some(&first)),
            ("refs/heads/deep", None),
            ("refs/heads/deep/side", Some(&side)),
            ("refs/heads/same", Some(&second)),
            ("refs/heads/none", None),
            ("refs/tags/v1", Some(&first)),
            ("refs/notes/tree", None),
            ("main", Some(&second)),
        ];
        for (name, commit) in commits {
            assert_eq!(bare.resolve(name).as_ref(), commit, "{name}, {kept}");
        }
        let branches = [of("deep/side", &side), of("main", &second), of("same", &second)];
        assert_eq!(bare.branches(), branches, "{kept}");
        works(&git(path, &["pack-refs", "--all"]));
    }

    assert!(bare.merges("refs/heads/main", "refs/heads/deep/side"));
    assert_eq!(bare.merge_base("refs/heads/main", &side).as_ref(), Some(&first));
    let third = bare.commit("main", "HEAD", "Three", &[("b", "2\n")]);
    assert!(!bare.merges("refs/heads/main", "refs/heads/deep/side"));
    assert!(bare.merges(&second, &side));

    let folder = tempfile::tempdir().unwrap();
    let fork = bare.fork(&folder.path().join("fork.git"), "main");
    let theirs = fork.commit("theirs", "main", "Theirs", &[("c", "1\n")]);
    assert_eq!(bare.merge_base(&third, &theirs), None, "it is not there yet");
    bare.take(&fork, "theirs", "refs/pull/1/head");
    assert_eq!(bare.merge_base(&third, &theirs), Some(third));
}
