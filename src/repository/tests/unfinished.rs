//! Unfinished work comes back into a mirror that does not have it.

use super::*;
use crate::repository::unfinished::UnfinishedWork;

/// Makes a mirror that keeps a result and newer work in progress; returns both with their base.
async fn at_work(world: &World) -> (Mirror, CommitId, UnfinishedWork) {
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap().unwrap();
    let container = world.container(&mirror, Some(&base)).await;
    write(&container, "a.txt", "a\n");
    commit_all(&container, "Add a");
    let incoming = world.receive(&mirror, &container, Some(&base)).await.unwrap();
    incoming
        .accept(&World::acceptance(&container, Some(&base)))
        .await
        .unwrap();
    write(&container, "b.txt", "b\n");
    commit_all(&container, "Half of b");
    let incoming = world.receive(&mirror, &container, Some(&base)).await.unwrap();
    let kept = incoming.keep_as_is(&World::acceptance(&container, Some(&base))).await;
    let work = mirror.unfinished(RUN).await.unwrap().unwrap();
    assert_eq!(work.wip, Some(kept.unwrap()));
    (mirror, base, work)
}

/// Returns the mirror of another machine.
async fn elsewhere(world: &World) -> Mirror {
    Mirror::fetch(&world.config, &world.path("elsewhere"), &world.remote())
        .await
        .unwrap()
}

#[tokio::test]
async fn another_mirror_takes_it_in_and_pushes_what_was_accepted() {
    let world = World::with_a_commit();
    let (mirror, base, work) = at_work(&world).await;
    let other = elsewhere(&world).await;
    assert_eq!(other.unfinished(RUN).await.unwrap(), None);

    for _ in 0..2 {
        let pack = mirror.pack_unfinished(&base, &work).await.unwrap();
        other.restore(RUN, &base, &work, pack).await.unwrap();
    }

    let restored = other.unfinished(RUN).await.unwrap().unwrap();
    assert!(restored.has_commits_of(&work) && restored.mirror != work.mirror);
    let accepted = work.accepted.unwrap();
    let pushable = other.pushable(RUN, &accepted).await.unwrap();
    pushable.push(None, "coding-agent/7-greet").await.unwrap();
    git(other.path(), &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(std::fs::read_dir(other.path().join("quarantine")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_packed_is_a_bundle_behind_its_head() {
    let world = World::with_a_commit();
    let (mirror, base, work) = at_work(&world).await;
    let mut bundle = work.bundle_head(RUN, &base).unwrap().into_bytes();
    let mut pack = mirror.pack_unfinished(&base, &work).await.unwrap();
    pack.read_to_end(&mut bundle).await.unwrap();
    std::fs::write(world.path("work.bundle"), bundle).unwrap();
    git(world.folder.path(), &["clone", "-q", "upstream.git", "clone"]);

    for (name, file) in [("accepted", "a.txt"), ("wip", "b.txt")] {
        let reference = format!("refs/coding-agent/{RUN}/{name}");
        git(&world.path("clone"), &["fetch", "-q", "../work.bundle", &reference]);
        git(&world.path("clone"), &["cat-file", "-e", &format!("FETCH_HEAD:{file}")]);
    }
}

#[tokio::test]
async fn it_is_judged_like_work_from_a_container() {
    let world = World::with_a_commit();
    let (mirror, base, work) = at_work(&world).await;
    let other = elsewhere(&world).await;
    let mut pack = Vec::new();
    let mut stream = mirror.pack_unfinished(&base, &work).await.unwrap();
    stream.read_to_end(&mut pack).await.unwrap();

    let cut = other.restore(RUN, &base, &work, &pack[..pack.len() - 30]).await;
    assert!(matches!(cut, Err(RepositoryError::Unacceptable(_))), "{cut:?}");
    let strange = UnfinishedWork {
        wip: Some("1".repeat(40).parse().unwrap()),
        ..work.clone()
    };
    let missing = other.restore(RUN, &base, &strange, pack.as_slice()).await;
    assert!(matches!(missing, Err(RepositoryError::Unacceptable(_))), "{missing:?}");
    let strict = Config {
        max_file_bytes: 1,
        ..Config::default()
    };
    let strict = Mirror::fetch(&strict, &world.path("strict"), &world.remote())
        .await
        .unwrap();
    let large = strict.restore(RUN, &base, &work, pack.as_slice()).await;
    assert!(large.unwrap_err().to_string().contains("max_file_bytes"));

    for mirror in [&other, &strict] {
        assert_eq!(mirror.unfinished(RUN).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_branch_that_may_not_be_forced_gets_a_result_on_top_of_unfinished_work() {
    let world = World::with_a_commit();
    let upstream = world.path("upstream.git");
    git(&upstream, &["config", "receive.denyNonFastForwards", "true"]);
    let (mirror, _, work) = at_work(&world).await;
    let (shown, result) = (work.wip.unwrap(), work.accepted.unwrap());
    let branch = "coding-agent/7-greet";
    world.accepted(&mirror, &shown).await.push(None, branch).await.unwrap();
    let pushable = world.accepted(&mirror, &result).await;

    let forced = pushable.advance(None, &shown, branch).await;
    assert!(
        matches!(forced, Err(RepositoryError::ForceRefused { .. })),
        "{forced:?}"
    );
    let next = pushable.on_top_of(&shown).await.unwrap();
    for _ in 0..2 {
        next.push(None, branch).await.unwrap();
    }

    let tree = git(mirror.path(), &["log", "-1", "--format=%T", result.as_str()]);
    let tip = git(&upstream, &["log", "-1", "--format=%H %T %P", branch]);
    assert_eq!(tip, format!("{} {tree} {shown}", next.commit()));
    // Whoever takes over after a crash comes to the same commit, pushed or not.
    for from in [&shown, next.commit()] {
        let again = pushable.on_top_of(from).await.unwrap();
        assert_eq!(again.commit(), next.commit());
    }
    for elsewhere in ["main", "coding-agent/7-new"] {
        let refused = next.push(None, elsewhere).await;
        assert!(matches!(refused, Err(RepositoryError::Moved { .. })), "{refused:?}");
    }
}
