//! Pruning: forgotten objects go, and those that somebody takes in at the same moment stay.

use std::time::Duration;

use super::*;
use crate::repository::retention::Prune;

fn packs(mirror: &Mirror) -> usize {
    let packs = std::fs::read_dir(mirror.path().join("objects/pack")).unwrap();
    packs
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".pack"))
        .count()
}

#[tokio::test]
async fn objects_come_into_the_mirror_only_under_the_lock_that_pruning_takes() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    write(&container, "b.txt", "b\n");
    commit_all(&container, "More");
    let acceptance = World::acceptance(&container, base.as_ref());
    let incoming = world.receive(&mirror, &container, base.as_ref()).await.unwrap();
    let before = packs(&mirror);

    // As another process has it, that removes what nothing refers to.
    let lock = mirror.lock().await.unwrap();
    let mut accepting = Box::pin(incoming.accept(&acceptance));
    let early = tokio::time::timeout(Duration::from_secs(2), &mut accepting).await;
    assert!(early.is_err(), "it did not wait for the lock");
    assert_eq!(
        packs(&mirror),
        before,
        "objects that nothing refers to lie in the mirror"
    );
    git(mirror.path(), &["gc", "--quiet", "--prune=now"]);
    drop(lock);

    let accepted = accepting.await.unwrap();
    mirror.forget_all(&[], true, Prune::Now).await.unwrap();
    assert_eq!(mirror.kept(RUN).await.unwrap(), Some(accepted.head.clone()));
    git(mirror.path(), &["rev-list", "--objects", accepted.head.as_str()]);
}

#[tokio::test]
async fn the_commit_that_a_run_starts_from_outlives_its_branch() {
    let world = World::with_a_commit();
    let first = world.mirror().await.branch("main").await.unwrap().unwrap();
    let base = world.upstream_commit("b.txt", "b\n");
    let mirror = world.mirror().await;
    mirror.keep_base(RUN, &base).await.unwrap();

    git(
        &world.path("upstream.git"),
        &["update-ref", "refs/heads/main", first.as_str()],
    );
    assert_eq!(world.mirror().await.branch("main").await.unwrap(), Some(first));
    mirror.forget_all(&[], true, Prune::Now).await.unwrap();
    git(mirror.path(), &["rev-list", "--objects", base.as_str()]);
    assert_eq!(mirror.kept_runs().await.unwrap(), [RUN]);

    mirror.forget_all(&[RUN.to_owned()], true, Prune::Now).await.unwrap();
    assert!(try_git(mirror.path(), &["cat-file", "-e", base.as_str()], b"").is_err());
    assert_eq!(mirror.kept_runs().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_mirror_is_broken_only_where_git_says_so() {
    let mut world = World::with_a_commit();
    assert!(world.mirror().await.is_sound().await);

    // A look that is given up says nothing about the mirror.
    let patience = world.config.timeout_seconds;
    let path = world.mirror().await.path().clone();
    let object = git(&path, &["rev-parse", "refs/heads/main^{tree}"]);
    world.config.timeout_seconds = 0;
    let (hasty, _) = Mirror::of(&world.config, &world.path("state"), &world.remote().url).unwrap();
    assert!(hasty.is_sound().await);
    world.config.timeout_seconds = patience;

    for pack in std::fs::read_dir(path.join("objects/pack")).unwrap() {
        let pack = pack.unwrap().path();
        if pack.extension().is_some_and(|extension| extension == "pack") {
            let bytes = std::fs::read(&pack).unwrap();
            for other in ["pack", "idx", "rev"] {
                let _ = std::fs::remove_file(pack.with_extension(other));
            }
            try_git(&path, &["unpack-objects", "-q"], &bytes).unwrap();
        }
    }
    std::fs::remove_file(path.join("objects").join(&object[..2]).join(&object[2..])).unwrap();
    let (broken, _) = Mirror::of(&world.config, &world.path("state"), &world.remote().url).unwrap();
    assert!(!broken.is_sound().await);
}
