//! Forges that are slow, and repositories that are large or unlike others.

use super::mirroring::{host, with_login};
use super::*;
use crate::repository::remote::fetching::look;

#[tokio::test]
async fn a_host_that_sends_nothing_is_given_up_long_before_the_time_limit() {
    let mut world = World::new();
    (world.config.stall_seconds, world.config.timeout_seconds) = (3, 60);
    let (port, requests) = host("");
    let remote = with_login(port);
    let asking = look(&world.config, &remote);
    let error = tokio::time::timeout(std::time::Duration::from_secs(30), asking).await;
    let error = error.expect("silence is given up").unwrap_err();
    assert!(matches!(error, RepositoryError::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("`git.stall_seconds`"), "{error}");
    assert!(requests.try_recv().is_ok());
}

#[tokio::test]
async fn a_repository_with_other_names_of_objects_is_refused_with_the_reason() {
    let world = World::new();
    let work = world.path("work");
    git(
        world.folder.path(),
        &["init", "-q", "-b", "main", "--object-format=sha256", "work"],
    );
    std::fs::write(work.join("README.md"), "Hello\n").unwrap();
    git(&work, &["add", "-A"]);
    git(&work, &["commit", "-q", "-m", "Begin"]);
    let remote = Remote {
        url: work.display().to_string(),
        login: None,
    };
    let error = Mirror::fetch(&world.config, &world.path("state"), &remote)
        .await
        .unwrap_err();
    assert!(matches!(error, RepositoryError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("SHA-256"), "{error}");
}

#[tokio::test]
async fn a_history_that_was_cut_grows_and_can_be_completed() {
    let mut world = World::with_a_commit();
    for number in 0..4 {
        world.upstream_commit("README.md", &format!("{number}\n"));
    }
    // A local path is copied whole, unless it is named like an address.
    let remote = Remote {
        url: format!("file://{}", world.path("upstream.git").display()),
        login: None,
    };
    let count = |mirror: &Mirror| {
        let counted = git(mirror.path(), &["rev-list", "--count", "main"]);
        counted.parse::<usize>().unwrap()
    };
    world.config.depth = 2;
    let mirror = Mirror::fetch(&world.config, &world.path("state"), &remote)
        .await
        .unwrap();
    assert_eq!(count(&mirror), 2);
    let base = mirror.branch("main").await.unwrap().unwrap();
    let head = world.upstream_commit("README.md", "new\n");
    let mirror = Mirror::fetch(&world.config, &world.path("state"), &remote)
        .await
        .unwrap();
    assert_eq!(count(&mirror), 3);
    assert_eq!(mirror.branch("main").await.unwrap(), Some(head.clone()));
    let added = git(mirror.path(), &["rev-list", &format!("{base}..{head}")]);
    assert_eq!(added, head.as_str());
    world.config.depth = 0;
    let mirror = Mirror::fetch(&world.config, &world.path("state"), &remote)
        .await
        .unwrap();
    assert_eq!((count(&mirror), mirror.cut_at().await), (6, String::new()));
}

#[tokio::test]
async fn two_histories_part_at_their_newest_common_commit_or_nowhere() {
    let mut world = World::with_a_commit();
    let upstream = world.path("upstream.git");
    let parted = head(&upstream);
    let side = world.upstream_commit("b.txt", "b\n");
    git(&upstream, &["update-ref", "refs/heads/side", side.as_str()]);
    git(&upstream, &["update-ref", "refs/heads/main", parted.as_str()]);
    let main = world.upstream_commit("c.txt", "c\n");
    let mirror = world.mirror().await;
    for (one, other) in [(&main, &side), (&side, &main), (&main, &parted), (&parted, &parted)] {
        assert_eq!(mirror.fork_point(one, other).await.unwrap(), Some(parted.clone()));
    }
    assert!(mirror.fork_point(&main, &CommitId::nothing()).await.is_err());

    world.config.depth = 1;
    let remote = Remote {
        url: format!("file://{}", upstream.display()),
        login: None,
    };
    let cut = Mirror::fetch(&world.config, &world.path("cut"), &remote).await.unwrap();
    assert_eq!(cut.fork_point(&main, &side).await.unwrap(), None);
}
