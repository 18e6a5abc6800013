//! Claims on items: set by comparison, read in bounds, and renewed with a result.

use super::*;
use crate::repository::remote::claiming::{Claims, FoundClaim};

const NAME: &str = "refs/coding-agent/claims/item-1";

async fn claims(world: &World, machine: &str) -> Claims {
    Claims::of(&world.config, &world.path(machine), world.remote())
        .await
        .unwrap()
}

#[tokio::test]
async fn of_two_that_set_a_claim_at_once_one_has_it_and_the_other_reads_whose_it_is() {
    let world = World::with_a_commit();
    let (first, second) = (claims(&world, "first").await, claims(&world, "second").await);
    assert_eq!(first.read(NAME).await.unwrap(), None);
    let (one, other) = tokio::join!(first.set(NAME, None, "one\n"), second.set(NAME, None, "other\n"));
    let (one, other) = (one.unwrap(), other.unwrap());
    let (commit, text) = match (&one, &other) {
        (Some(commit), None) => (commit.clone(), "one\n"),
        (None, Some(commit)) => (commit.clone(), "other\n"),
        both => panic!("{both:?}"),
    };
    let text = text.to_owned();
    let expected = Some(FoundClaim { commit, text });
    assert_eq!(first.read(NAME).await.unwrap(), expected);
    assert_eq!(second.read(NAME).await.unwrap(), expected);
}

#[tokio::test]
async fn a_claim_moves_only_from_where_it_is_known_to_be() {
    let world = World::with_a_commit();
    let (first, second) = (claims(&world, "first").await, claims(&world, "second").await);
    let held = first.set(NAME, None, "held\n").await.unwrap().unwrap();
    let taken = second.set(NAME, Some(&held), "taken\n").await.unwrap().unwrap();
    assert_eq!(first.set(NAME, Some(&held), "renewed\n").await.unwrap(), None);
    let found = first.read(NAME).await.unwrap().unwrap();
    assert_eq!((found.commit, found.text.as_str()), (taken, "taken\n"));
    git(&world.path("upstream.git"), &["update-ref", "-d", NAME]);
    assert_eq!(first.set(NAME, Some(&held), "renewed\n").await.unwrap(), None);
    assert_eq!(first.read(NAME).await.unwrap(), None);
    first.try_out().await.unwrap();
    let left = git(&world.path("upstream.git"), &["for-each-ref", "refs/coding-agent/"]);
    assert_eq!(left, "");
}

#[tokio::test]
async fn a_claim_that_trouble_of_the_forge_declined_is_set_again() {
    let world = World::with_a_commit();
    let hooks = world.path("upstream.git/hooks");
    let script = "#!/bin/sh\nmkdir \"$0-declined\" 2> /dev/null || exit 0\n\
                  echo 'GitLab: 500 Internal Server Error' >&2\nexit 1\n";
    write(&hooks, "pre-receive", script);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(hooks.join("pre-receive"), executable).unwrap();
    let claims = claims(&world, "first").await;

    let commit = claims.set(NAME, None, "held\n").await.unwrap().unwrap();

    assert!(hooks.join("pre-receive-declined").exists());
    let text = "held\n".to_owned();
    assert_eq!(claims.read(NAME).await.unwrap(), Some(FoundClaim { commit, text }));
}

#[tokio::test]
async fn a_result_is_pushed_with_a_renewal_or_not_at_all() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap().unwrap();
    let (first, second) = (claims(&world, "first").await, claims(&world, "second").await);
    let held = first.set(NAME, None, "held\n").await.unwrap().unwrap();

    let pushable = world.accepted(&mirror, &base).await;
    let (pushable, renewed) = pushable.fenced(NAME, &held, "renewed\n").await.unwrap();
    pushable.push(None, "coding-agent/1-x").await.unwrap();
    let found = first.read(NAME).await.unwrap().unwrap();
    assert_eq!((found.commit, found.text.as_str()), (renewed.clone(), "renewed\n"));
    // Its answer may have been lost.
    pushable.push(None, "coding-agent/1-x").await.unwrap();

    second.set(NAME, Some(&renewed), "taken\n").await.unwrap().unwrap();
    let late = world.accepted(&mirror, &base).await;
    let (late, _) = late.fenced(NAME, &renewed, "renewed again\n").await.unwrap();
    let refused = late.push(None, "coding-agent/1-y").await;
    assert!(matches!(refused, Err(RepositoryError::Moved { .. })), "{refused:?}");
    let branches = git(
        &world.path("upstream.git"),
        &["for-each-ref", "--format=%(refname)", "refs/heads/"],
    );
    assert_eq!(branches, "refs/heads/coding-agent/1-x\nrefs/heads/main");
    assert_eq!(first.read(NAME).await.unwrap().unwrap().text, "taken\n");
}

#[tokio::test]
async fn a_server_that_changes_one_reference_at_a_time_gets_the_renewal_first() {
    let world = World::with_a_commit();
    git(
        &world.path("upstream.git"),
        &["config", "receive.advertiseAtomic", "false"],
    );
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap().unwrap();
    let claims = claims(&world, "first").await;
    let held = claims.set(NAME, None, "held\n").await.unwrap().unwrap();
    let pushable = world.accepted(&mirror, &base).await;
    let (pushable, renewed) = pushable.fenced(NAME, &held, "renewed\n").await.unwrap();
    pushable.push(None, "coding-agent/1-x").await.unwrap();
    assert_eq!(claims.read(NAME).await.unwrap().unwrap().commit, renewed);

    claims.set(NAME, Some(&renewed), "taken\n").await.unwrap().unwrap();
    let late = world.accepted(&mirror, &base).await;
    let (late, _) = late.fenced(NAME, &renewed, "renewed again\n").await.unwrap();
    assert!(matches!(
        late.push(None, "coding-agent/1-y").await,
        Err(RepositoryError::Moved { .. })
    ));
    let branches = git(
        &world.path("upstream.git"),
        &["for-each-ref", "--format=%(refname)", "refs/heads/"],
    );
    assert_eq!(branches, "refs/heads/coding-agent/1-x\nrefs/heads/main");
}

#[tokio::test]
async fn whatever_a_reference_points_to_is_read_in_bounds_or_is_nothing() {
    let world = World::with_a_commit();
    let upstream = world.path("upstream.git");
    let claims = claims(&world, "first").await;
    let long = world.upstream_commit("long.txt", &"x".repeat(1 << 20));
    git(&upstream, &["update-ref", NAME, long.as_str()]);
    let found = claims.read(NAME).await.unwrap().unwrap();
    assert_eq!((found.commit, found.text.as_str()), (long, "Somebody's work\n"));
    let tree = git(&upstream, &["rev-parse", "main^{tree}"]);
    git(&upstream, &["update-ref", NAME, &tree]);
    let found = claims.read(NAME).await.unwrap().unwrap();
    assert_eq!((found.commit.as_str(), found.text.as_str()), (tree.as_str(), ""));
    // It is taken over all the same.
    let taken = claims.set(NAME, Some(&found.commit), "taken\n").await.unwrap();
    assert_eq!(claims.read(NAME).await.unwrap().unwrap().commit, taken.unwrap());
}
