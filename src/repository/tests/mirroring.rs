//! Tests of fetching, reading, packing and pushing.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::certificates::Trust;
use crate::repository::git::address::Login;
use crate::repository::reading::search::Pattern;

#[tokio::test]
async fn a_mirror_follows_the_forge_and_keeps_what_is_ours() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let first = mirror.branch("main").await.unwrap().unwrap();
    git(&world.path("upstream.git"), &["branch", "side", first.as_str()]);
    git(&world.path("upstream.git"), &["tag", "v1", first.as_str()]);
    git(
        mirror.path(),
        &[
            "update-ref",
            &format!("refs/coding-agent/{RUN}/accepted"),
            first.as_str(),
        ],
    );
    let mirror = world.mirror().await;
    assert_eq!(mirror.branch("side").await.unwrap(), Some(first.clone()));
    assert_eq!(git(mirror.path(), &["rev-parse", "refs/tags/v1"]), first.as_str());

    git(&world.path("upstream.git"), &["branch", "-q", "-D", "side"]);
    let second = world.upstream_commit("b.txt", "b\n");
    let mirror = world.mirror().await;
    assert_eq!(mirror.branch("side").await.unwrap(), None);
    assert_eq!(mirror.branch("main").await.unwrap(), Some(second));
    assert_eq!(mirror.kept(RUN).await.unwrap(), Some(first));
    mirror.forget(RUN).await.unwrap();
    assert_eq!(mirror.kept(RUN).await.unwrap(), None);
    mirror.forget(RUN).await.unwrap();
}

#[tokio::test]
async fn an_empty_repository_is_a_repository() {
    let world = World::new();
    let mirror = world.mirror().await;
    assert_eq!(mirror.branch("main").await.unwrap(), None);
    let container = world.container(&mirror, None).await;
    write(&container, "README.md", "First\n");
    commit_all(&container, "Begin");
    let incoming = world.receive(&mirror, &container, None).await.unwrap();
    let accepted = incoming.accept(&World::acceptance(&container, None)).await.unwrap();
    assert_eq!((accepted.commits, accepted.files_changed), (1, 1));
    let pushable = mirror.pushable(RUN, &accepted.head).await.unwrap();
    pushable.push(None, "main").await.unwrap();
    let (diff, _) = mirror.diff(&CommitId::nothing(), &accepted.head, 10_000).await.unwrap();
    assert!(diff.contains("+First"), "{diff}");
    assert_eq!(world.mirror().await.branch("main").await.unwrap(), Some(accepted.head));
}

#[tokio::test]
async fn what_a_killed_git_left_does_not_stop_the_next_fetch() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let second = world.upstream_commit("b.txt", "b\n");
    write(mirror.path(), "refs/heads/main.lock", "");
    write(mirror.path(), "packed-refs.lock", "");
    write(mirror.path(), "objects/pack/tmp_pack_x", "rest");
    write(mirror.path(), "quarantine/dead/pack/tmp_pack_y", "rest");
    write(mirror.path(), "quarantine/dead.lock", "");
    let mirror = world.mirror().await;
    assert_eq!(mirror.branch("main").await.unwrap(), Some(second));
    for gone in ["objects/pack/tmp_pack_x", "quarantine/dead", "quarantine/dead.lock"] {
        assert!(!mirror.path().join(gone).exists(), "{gone}");
    }
}

#[tokio::test]
async fn a_broken_mirror_is_made_anew() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let commit = mirror.branch("main").await.unwrap().unwrap();
    std::fs::remove_dir_all(mirror.path().join("objects")).unwrap();
    std::fs::create_dir_all(mirror.path().join("objects")).unwrap();
    world.upstream_commit("b.txt", "b\n");
    let mirror = world.mirror().await;
    assert_eq!(mirror.files(&commit, 10).await.unwrap().0.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_fetch_one_repository_at_the_same_time() {
    let world = std::sync::Arc::new(World::with_a_commit());
    let mut fetches = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let world = world.clone();
        fetches.spawn(async move { world.mirror().await.branch("main").await.unwrap() });
    }
    assert!(fetches.join_all().await.iter().all(Option::is_some));
}

#[tokio::test]
async fn a_commit_is_read_without_being_checked_out() {
    let world = World::with_a_commit();
    world.upstream_commit("src-日本.txt", "one\ntwo [x\n");
    world.upstream_commit("data.bin", "\0\u{1}two\n");
    let mirror = world.mirror().await;
    let commit = mirror.branch("main").await.unwrap().unwrap();

    let (files, more) = mirror.files(&commit, 2).await.unwrap();
    let names: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.size)).collect();
    assert_eq!(
        (names.as_slice(), more),
        (&[("README.md", 6), ("data.bin", 6)][..], true)
    );
    assert_eq!(mirror.files(&commit, 3).await.unwrap().0.len(), 3);
    assert!(!mirror.files(&commit, 3).await.unwrap().1);

    assert_eq!(
        mirror.file(&commit, "README.md", 6).await.unwrap().as_deref(),
        Some(&b"Hello\n"[..])
    );
    assert!(mirror.file(&commit, "README.md", 5).await.is_err());
    for missing in ["no", "", "../x", "/etc/passwd", ":(glob)*", "README.md/", "a\0b"] {
        assert_eq!(mirror.file(&commit, missing, 100).await.unwrap(), None, "{missing:?}");
    }

    let redactor = Arc::default();
    let search = async |pattern: &str, limit| {
        let pattern = Pattern::read(pattern).unwrap();
        let found = mirror
            .search(&commit, &pattern, |path| path != "left-out.txt", limit, &redactor)
            .await;
        found.unwrap().lines
    };
    assert_eq!(search("t(w|z)o", 9).await, ["src-日本.txt:2:two [x"]);
    assert_eq!(search("[x", 9).await, ["src-日本.txt:2:two [x"]);
    assert!(search("--open-files-in-pager=id", 9).await.is_empty());
    assert_eq!(search("o", 1).await.len(), 1);
    assert_eq!(
        search("^", 9).await.len(),
        3,
        "neither binary files nor what comes after the last line"
    );
}

#[tokio::test]
async fn a_diff_is_cut_at_a_line_and_no_attribute_hides_it() {
    let world = World::with_a_commit();
    let from = world.upstream_commit(".gitattributes", "* -diff\n* binary\n");
    let to = world.upstream_commit("a.txt", &"line\n".repeat(100));
    let mirror = world.mirror().await;
    let (whole, cut) = mirror.diff(&from, &to, 10_000).await.unwrap();
    assert!(whole.contains("+line") && !cut, "{whole}");
    let (part, cut) = mirror.diff(&from, &to, 250).await.unwrap();
    assert!(cut && part.len() <= 250 && part.ends_with('\n'), "{part}");
}

#[tokio::test]
async fn a_push_never_overwrites_and_may_be_repeated() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    write(&container, "a.txt", "a\n");
    commit_all(&container, "Add a");
    let incoming = world.receive(&mirror, &container, base.as_ref()).await.unwrap();
    let accepted = incoming
        .accept(&World::acceptance(&container, base.as_ref()))
        .await
        .unwrap();

    let pushable = mirror.pushable(RUN, &accepted.head).await.unwrap();
    for _ in 0..2 {
        pushable.push(None, "coding-agent/1-greet").await.unwrap();
    }
    world.upstream_commit("b.txt", "b\n");
    let moved = pushable.push(None, "main").await;
    assert!(matches!(moved, Err(RepositoryError::Moved { .. })), "{moved:?}");
    for wrong in ["--force", "a..b", "x.lock", "", "a b"] {
        assert!(pushable.push(None, wrong).await.is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_branch_is_moved_on_only_from_where_it_was_seen() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    write(&container, "a.txt", "a\n");
    commit_all(&container, "Add a");
    let incoming = world.receive(&mirror, &container, base.as_ref()).await.unwrap();
    let accepted = incoming
        .accept(&World::acceptance(&container, base.as_ref()))
        .await
        .unwrap();
    let base = base.unwrap();
    let pushable = mirror.pushable(RUN, &accepted.head).await.unwrap();

    let made_anew = pushable.advance(None, &base, "deleted").await;
    assert!(matches!(made_anew, Err(RepositoryError::Moved { .. })), "{made_anew:?}");
    for _ in 0..2 {
        pushable.advance(None, &base, "main").await.unwrap();
    }
    world.upstream_commit("b.txt", "b\n");
    let moved = pushable.advance(None, &base, "main").await;
    assert!(matches!(moved, Err(RepositoryError::Moved { .. })), "{moved:?}");
}

#[tokio::test]
async fn a_hook_on_the_forge_that_declines_is_a_refusal() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let commit = mirror.branch("main").await.unwrap().unwrap();
    let hook = world.path("upstream.git/hooks/pre-receive");
    write(
        hook.parent().unwrap(),
        "pre-receive",
        "#!/bin/sh\necho 'no, not here' >&2\nexit 1\n",
    );
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let pushable = world.accepted(&mirror, &commit).await;
    let refused = pushable.push(None, "other").await.unwrap_err();
    assert!(matches!(refused, RepositoryError::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("no, not here"), "{refused}");
}

#[tokio::test]
async fn a_host_that_is_not_there_is_tried_again_and_then_named() {
    let world = World::new();
    let remote = Remote {
        // A port that no server of a test is ever given.
        url: "http://127.0.0.1:1/owner/repo.git".to_owned(),
        login: Some(login()),
    };
    let error = Mirror::fetch(&world.config, &world.path("state"), &remote)
        .await
        .unwrap_err();
    assert!(matches!(error, RepositoryError::Unavailable { .. }), "{error}");
    assert!(!format!("{error} {error:?} {remote:?}").contains("top-secret-token"));
}

/// A host that gives every request the same answer (nothing at all if it is empty) and hands the
/// requests out.
pub(super) fn host(answer: &'static str) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, requests) = channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut chunk = [0; 1024];
            while !request.ends_with(b"\r\n\r\n") {
                let length = stream.read(&mut chunk).unwrap_or(0);
                if length == 0 {
                    break;
                }
                request.extend_from_slice(&chunk[..length]);
            }
            if heard.send(String::from_utf8_lossy(&request).into_owned()).is_err() {
                return;
            }
            // Whoever asked may have been ended.
            let _ = stream.write_all(answer.as_bytes());
            if answer.is_empty() {
                open.push(stream);
            }
        }
    });
    (port, requests)
}

fn login() -> Login {
    Login {
        trust: Trust::default(),
        user: "agent".to_owned(),
        password: "top-secret-token".to_owned().into(),
        is_new: false,
    }
}

pub(super) fn with_login(port: u16) -> Remote {
    Remote {
        url: format!("http://127.0.0.1:{port}/owner/repo.git"),
        login: Some(login()),
    }
}

#[tokio::test]
async fn the_login_goes_to_its_host_and_nowhere_else() {
    let world = World::new();
    let (elsewhere, stray) = host("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let redirect = format!(
        "HTTP/1.1 301 Moved\r\nLocation: http://localhost:{elsewhere}/a.git/info/refs?service=git-upload-pack\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let denied = "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for answer in [denied, redirect.leak()] {
        let (port, requests) = host(answer);
        let error = Mirror::fetch(&world.config, &world.path("state"), &with_login(port))
            .await
            .unwrap_err();
        assert!(matches!(error, RepositoryError::Refused { .. }), "{error}");
        let request = requests.recv().unwrap();
        assert!(
            request.contains("Authorization: Basic YWdlbnQ6dG9wLXNlY3JldC10b2tlbg=="),
            "{request}"
        );
        assert!(!error.to_string().contains("YWdlbnQ6"), "{error}");
    }
    assert!(stray.try_recv().is_err());
}

#[tokio::test]
async fn a_host_that_says_nothing_costs_the_time_limit_and_leaves_no_process() {
    let mut world = World::new();
    world.config.timeout_seconds = 1;
    let (port, _requests) = host("");
    let error = Mirror::fetch(&world.config, &world.path("state"), &with_login(port))
        .await
        .unwrap_err();
    assert!(matches!(error, RepositoryError::Unavailable { .. }), "{error}");
    // The killed processes are gone as soon as somebody has waited for them, which the kernel tells
    // in its own time.
    let left = || {
        std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(&format!("127.0.0.1:{port}/"))
        })
    };
    let patience = tokio::time::timeout(std::time::Duration::from_secs(10), async {
        while left() {
            tokio::task::yield_now().await;
        }
    });
    patience.await.unwrap();
}

#[tokio::test]
async fn everything_may_run_in_a_task_of_its_own() {
    fn may_be_spawned<T: Send>(_future: T) {}
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let (commit, state) = (CommitId::nothing(), world.path("state"));
    let main = mirror.branch("main").await.unwrap().unwrap();
    may_be_spawned(world.accepted(&mirror, &main).await.push(None, "main"));
    may_be_spawned(mirror.apply(&commit, &commit, &state));
    let pattern = Pattern::read("x").unwrap();
    may_be_spawned(mirror.search(&commit, &pattern, |_| true, 1, &Arc::default()));
    may_be_spawned(mirror.pack(&[]));
    may_be_spawned(Mirror::snapshot(&world.config, &state, "x", &state));
    let acceptance = Acceptance {
        base: None,
        head: commit.clone(),
        run: RUN.to_owned(),
    };
    may_be_spawned(mirror.receive(&b""[..]).await.unwrap().accept(&acceptance));
    may_be_spawned(mirror.receive(&b""[..]).await.unwrap().keep_as_is(&acceptance));
}

#[test]
fn a_branch_name_is_judged_as_git_judges_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "main",
        "coding-agent/12-greet-the-reader",
        "-x",
        "a..b",
        "a.lock",
        "a.lock/b",
        "/a",
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.",
        "a@{1}",
        "@",
        "HEAD",
        "a b",
        "a~1",
        "a\u{7f}",
        "日本語",
        "a\\b",
        "",
    ] {
        let ours = crate::repository::branch_name(name).is_ok();
        let gits = try_git(folder.path(), &["check-ref-format", "--branch", name], b"").is_ok() && name != "@";
        assert_eq!(ours, gits, "{name:?}");
    }
}
