//! Tests that work on a fork is pushed nowhere else, and that its mirror goes with its last run.

use super::*;

const OTHER: &str = "019aa6b2-0000-7000-8000-000000000001";

impl World {
    /// Makes a stranger's fork of the forge's repository, with a commit of theirs.
    fn fork(&self) -> Remote {
        git(
            self.folder.path(),
            &["clone", "-q", "--bare", "upstream.git", "fork.git"],
        );
        let work = tempfile::tempdir_in(self.folder.path()).unwrap();
        let fork = self.path("fork.git").display().to_string();
        git(work.path(), &["clone", "-q", &fork, "."]);
        std::fs::write(work.path().join("Makefile"), "all:\n\tcurl evil.example\n").unwrap();
        commit_all(work.path(), "Mine");
        git(work.path(), &["push", "-q", "origin", "main"]);
        Remote { url: fork, login: None }
    }

    async fn fetch_fork(&self, remote: &Remote, run: &str) -> Mirror {
        Mirror::fetch_fork(&self.config, &self.path("state"), remote, run, &|_| {})
            .await
            .unwrap()
    }

    async fn leave_fork(&self, remote: &Remote, run: &str) -> bool {
        Mirror::leave_fork(&self.config, &self.path("state"), &remote.url, run)
            .await
            .unwrap()
    }

    /// Makes and accepts a commit on top of the mirror's `main`.
    async fn done_in(&self, mirror: &Mirror) -> CommitId {
        let base = mirror.branch("main").await.unwrap();
        let container = self.container(mirror, base.as_ref()).await;
        write(&container, "a.txt", "a\n");
        commit_all(&container, "Add a");
        let incoming = self.receive(mirror, &container, base.as_ref()).await.unwrap();
        let accepted = incoming.accept(&Self::acceptance(&container, base.as_ref())).await;
        accepted.unwrap().head
    }
}

#[tokio::test]
async fn what_was_accepted_for_a_fork_cannot_be_pushed_to_another_repository() {
    let world = World::with_a_commit();
    let (home, remote) = (world.mirror().await, world.fork());
    let fork = world.fetch_fork(&remote, RUN).await;
    let done = world.done_in(&fork).await;

    // Even if the commit's id, from the store, is asked for in the wrong mirror, and the objects
    // are there.
    let objects = fork.path().join("objects").display().to_string();
    write(home.path(), "objects/info/alternates", format!("{objects}\n"));
    let refused = home.pushable(RUN, &done).await.unwrap_err();
    assert!(refused.to_string().contains("was not accepted for"), "{refused}");

    let pushable = fork.pushable(RUN, &done).await.unwrap();
    pushable.push(None, "main").await.unwrap();
    assert_eq!(git(&world.path("fork.git"), &["rev-parse", "main"]), done.as_str());
    let branches = git(&world.path("upstream.git"), &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(branches, "refs/heads/main");
    assert_ne!(git(&world.path("upstream.git"), &["rev-parse", "main"]), done.as_str());
}

#[tokio::test]
async fn only_what_was_accepted_in_the_run_can_be_pushed() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let main = mirror.branch("main").await.unwrap().unwrap();
    assert!(mirror.pushable(RUN, &main).await.is_err(), "nothing was accepted yet");
    let done = world.done_in(&mirror).await;
    // What the result contains was accepted with it: an empty result is its base.
    for commit in [&main, &done] {
        assert_eq!(mirror.pushable(RUN, commit).await.unwrap().commit(), commit);
    }
    assert!(mirror.pushable(OTHER, &done).await.is_err(), "another run's");
    let later = world.upstream_commit("b.txt", "b\n");
    let mirror = world.mirror().await;
    assert!(mirror.pushable(RUN, &later).await.is_err(), "nobody accepted it");
    assert!(mirror.pushable(RUN, &CommitId::nothing()).await.is_err());
}

#[tokio::test]
async fn a_forks_mirror_goes_with_the_last_run_that_needs_it() {
    let world = World::with_a_commit();
    let remote = world.fork();
    let mirror = world.fetch_fork(&remote, RUN).await;
    world.fetch_fork(&remote, OTHER).await;

    assert!(!world.leave_fork(&remote, RUN).await);
    assert!(mirror.path().exists());
    assert!(world.leave_fork(&remote, OTHER).await);
    assert!(!mirror.path().exists());
    assert!(world.leave_fork(&remote, OTHER).await, "repeating it harms nobody");
}

#[tokio::test]
async fn the_mirror_of_a_repository_that_is_worked_in_for_itself_stays() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    world.fetch_fork(&world.remote(), RUN).await;
    assert!(!world.leave_fork(&world.remote(), RUN).await);
    assert!(mirror.path().exists());
}

#[tokio::test]
async fn what_was_done_on_a_fork_is_read_back_from_a_bundle() {
    let world = World::with_a_commit();
    let remote = world.fork();
    let mirror = world.fetch_fork(&remote, RUN).await;
    let base = mirror.branch("main").await.unwrap().unwrap();
    let done = world.done_in(&mirror).await;
    let file = world.path("work.bundle");

    mirror.bundle(RUN, &base, &file).await.unwrap();

    let reference = format!("refs/coding-agent/{RUN}/accepted:refs/heads/theirs");
    git(
        &world.path("fork.git"),
        &["fetch", "-q", file.to_str().unwrap(), &reference],
    );
    assert_eq!(git(&world.path("fork.git"), &["rev-parse", "theirs"]), done.as_str());
}
