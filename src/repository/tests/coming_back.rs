//! Tests that honest work from a container becomes commits of ours.

use super::*;

#[tokio::test]
async fn commits_come_back_with_our_name_their_date_and_the_run() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    write(&container, "a.txt", "a\n");
    commit_all(&container, "Add a");
    git(&container, &["commit", "-q", "--allow-empty", "-m", "Nothing"]);
    write(&container, "sub/b.sh", "b\n");
    commit_all(&container, "Add b\n\nBecause it was asked for.");

    let acceptance = World::acceptance(&container, base.as_ref());
    let incoming = world.receive(&mirror, &container, base.as_ref()).await.unwrap();
    let accepted = incoming.accept(&acceptance).await.unwrap();
    assert_eq!((accepted.commits, accepted.files_changed), (2, 2));
    assert_eq!(mirror.kept(RUN).await.unwrap(), Some(accepted.head.clone()));
    let log = git(
        mirror.path(),
        &[
            "log",
            "--format=%an <%ae> %cn %ad%n%B%x00",
            "--date=raw",
            "-2",
            accepted.head.as_str(),
        ],
    );
    let expected = format!(
        "coding-agent <coding-agent@localhost> coding-agent 1700000000 +0900\nAdd b\n\nBecause it was asked for.\n\n\
         Coding-Agent-Run: {RUN}\n\0\ncoding-agent <coding-agent@localhost> coding-agent 1700000000 +0900\nAdd a\n\n\
         Coding-Agent-Run: {RUN}\n\0"
    );
    assert_eq!(log, expected);
    git(mirror.path(), &["fsck", "--strict", "--no-dangling"]);

    let again = world.receive(&mirror, &container, base.as_ref()).await.unwrap();
    assert_eq!(again.accept(&acceptance).await.unwrap(), accepted);
    assert_eq!(std::fs::read_dir(mirror.path().join("quarantine")).unwrap().count(), 0);
}

#[tokio::test]
async fn no_change_is_accepted_as_no_change() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    for pack in [Vec::new(), pack_of(&container, "HEAD", base.as_ref())] {
        let incoming = mirror.receive(pack.as_slice()).await.unwrap();
        let accepted = incoming
            .accept(&World::acceptance(&container, base.as_ref()))
            .await
            .unwrap();
        assert_eq!(
            (Some(accepted.head), accepted.commits, accepted.files_changed),
            (base.clone(), 0, 0)
        );
    }
}

#[tokio::test]
async fn a_rewritten_history_becomes_one_commit_on_the_base() {
    let world = World::with_a_commit();
    world.upstream_commit("old.txt", "old\n");
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    git(&container, &["checkout", "-q", "--orphan", "fresh"]);
    write(&container, "new.txt", "new\n");
    commit_all(&container, "Start over");
    let incoming = world.receive(&mirror, &container, None).await.unwrap();
    let accepted = incoming
        .accept(&World::acceptance(&container, base.as_ref()))
        .await
        .unwrap();
    assert_eq!((accepted.commits, accepted.files_changed), (1, 1));
    let parent = git(mirror.path(), &["rev-parse", &format!("{}^", accepted.head)]);
    assert_eq!(Some(parent), base.map(|base| base.to_string()));
}

#[tokio::test]
async fn a_merge_of_another_branch_of_the_forge_leaves_that_branch_s_commits_alone() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let theirs = world.upstream_commit("theirs.txt", "theirs\n");
    git(
        &world.path("upstream.git"),
        &["update-ref", "refs/heads/side", theirs.as_str()],
    );
    let mirror = {
        drop(mirror);
        world.mirror().await
    };
    let container = world.container(&mirror, Some(&theirs)).await;
    git(
        &container,
        &["checkout", "-q", "-B", "main", base.as_ref().unwrap().as_str()],
    );
    write(&container, "ours.txt", "ours\n");
    commit_all(&container, "Ours");
    git(&container, &["merge", "-q", "--no-ff", "-m", "Merge", theirs.as_str()]);
    let incoming = world.receive(&mirror, &container, base.as_ref()).await.unwrap();
    let accepted = incoming
        .accept(&World::acceptance(&container, base.as_ref()))
        .await
        .unwrap();
    assert_eq!((accepted.commits, accepted.files_changed), (2, 2));
    assert_eq!(
        git(mirror.path(), &["rev-parse", &format!("{}^2", accepted.head)]),
        theirs.as_str()
    );
}

#[tokio::test]
async fn work_in_progress_is_kept_as_it_is_and_goes_into_a_new_container() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    write(&container, "half.txt", "half\n");
    let half = commit_all(&container, "Half of it");
    let incoming = world.receive(&mirror, &container, base.as_ref()).await.unwrap();
    let kept = incoming
        .keep_as_is(&World::acceptance(&container, base.as_ref()))
        .await
        .unwrap();
    assert_eq!(
        (&kept, mirror.kept_wip(RUN).await.unwrap()),
        (&half, Some(half.clone()))
    );

    let container = world.container(&world.mirror().await, Some(&kept)).await;
    assert_eq!(std::fs::read_to_string(container.join("half.txt")).unwrap(), "half\n");
    write(&container, "half.txt", "whole\n");
    commit_all(&container, "All of it");
    let incoming = world.receive(&mirror, &container, Some(&kept)).await.unwrap();
    let accepted = incoming
        .accept(&World::acceptance(&container, base.as_ref()))
        .await
        .unwrap();
    assert_eq!((accepted.commits, accepted.files_changed), (2, 1));
}

#[tokio::test]
async fn a_broken_stream_leaves_nothing_behind() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    write(&container, "a.txt", "a\n".repeat(10_000));
    commit_all(&container, "Add a");
    let pack = pack_of(&container, "HEAD", base.as_ref());
    for bytes in [
        &pack[..pack.len() / 2],
        b"not a pack at all",
        &[&pack[..20], &[0xff; 40]].concat(),
    ] {
        let refused = mirror.receive(bytes).await;
        assert!(matches!(refused, Err(RepositoryError::Unacceptable(_))), "{refused:?}");
    }
    assert_eq!(std::fs::read_dir(mirror.path().join("quarantine")).unwrap().count(), 0);
}
