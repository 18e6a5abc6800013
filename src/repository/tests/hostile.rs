//! Tests of commits that the judge refuses. They are made with plumbing commands, since an honest
//! git would not make them.

use super::*;

struct Attack {
    world: World,
    mirror: Mirror,
    base: CommitId,
    container: PathBuf,
}

impl Attack {
    async fn prepared(world: World) -> Self {
        let mirror = world.mirror().await;
        let base = mirror.branch("main").await.unwrap().unwrap();
        let container = world.container(&mirror, Some(&base)).await;
        Self {
            world,
            mirror,
            base,
            container,
        }
    }

    async fn new() -> Self {
        Self::prepared(World::with_a_commit()).await
    }

    fn blob(&self, content: &[u8]) -> String {
        let id = try_git(&self.container, &["hash-object", "-w", "--stdin"], content).unwrap();
        String::from_utf8(id).unwrap().trim().to_owned()
    }

    /// Writes a tree without git's own checks.
    fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut raw = Vec::new();
        for (mode, name, id) in entries {
            raw.extend_from_slice(mode.as_bytes());
            raw.push(b' ');
            raw.extend_from_slice(name);
            raw.push(0);
            raw.extend((0..20).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()));
        }
        let id = try_git(
            &self.container,
            &["hash-object", "-t", "tree", "-w", "--literally", "--stdin"],
            &raw,
        )
        .unwrap();
        String::from_utf8(id).unwrap().trim().to_owned()
    }

    fn commit(&self, tree: &str) {
        let id = git(
            &self.container,
            &["commit-tree", tree, "-p", self.base.as_str(), "-m", "Innocent"],
        );
        git(&self.container, &["update-ref", "HEAD", &id]);
    }

    async fn outcome(&self) -> Result<CommitId, RepositoryError> {
        let incoming = self
            .world
            .receive(&self.mirror, &self.container, Some(&self.base))
            .await?;
        let acceptance = World::acceptance(&self.container, Some(&self.base));
        incoming.accept(&acceptance).await.map(|accepted| accepted.head)
    }

    /// Fails the test unless the work is refused and the mirror is as it was.
    async fn is_refused(&self, case: &str) -> String {
        let refs = git(&self.mirror.path().clone(), &["for-each-ref"]);
        let outcome = self.outcome().await;
        let Err(RepositoryError::Unacceptable(reason)) = outcome else {
            panic!("{case}: {outcome:?}");
        };
        assert_eq!(git(self.mirror.path(), &["for-each-ref"]), refs, "{case}");
        let head = head(&self.container);
        assert!(
            try_git(self.mirror.path(), &["cat-file", "-e", head.as_str()], b"").is_err(),
            "{case}"
        );
        assert_eq!(
            std::fs::read_dir(self.mirror.path().join("quarantine"))
                .unwrap()
                .count(),
            0,
            "{case}"
        );
        reason
    }
}

#[tokio::test]
async fn names_that_are_git_s_own_or_lead_out_are_refused() {
    let attack = Attack::new().await;
    let blob = attack.blob(b"#!/bin/sh\nid\n");
    let hooks = attack.tree(&[("100755", b"post-checkout", &blob)]);
    for name in [
        &b".git"[..],
        b".GIT",
        b".Git.",
        b".git ",
        b"git~1",
        b"GIT~1",
        ".g\u{200c}it".as_bytes(),
        b".git::$INDEX_ALLOCATION",
        b"..",
        b".",
        b"a\\..\\..\\b",
        b"x\x1b[31m",
        b"a\nb",
    ] {
        let shown = String::from_utf8_lossy(name).into_owned();
        attack.commit(&attack.tree(&[("40000", name, &hooks)]));
        attack.is_refused(&shown).await;
        let inner = attack.tree(&[("40000", name, &hooks)]);
        attack.commit(&attack.tree(&[("40000", b"deep", &inner)]));
        attack.is_refused(&shown).await;
    }
}

#[tokio::test]
async fn a_hostile_commit_in_the_middle_is_found_though_the_last_one_is_clean() {
    let attack = Attack::new().await;
    let blob = attack.blob(b"x");
    let clean = git(&attack.container, &["rev-parse", "HEAD^{tree}"]);
    attack.commit(&attack.tree(&[("100644", b"x\ty", &blob)]));
    let hostile = head(&attack.container);
    let last = git(
        &attack.container,
        &["commit-tree", &clean, "-p", hostile.as_str(), "-m", "Clean"],
    );
    git(&attack.container, &["update-ref", "HEAD", &last]);
    attack.is_refused("middle").await;
}

#[tokio::test]
async fn links_modes_and_submodules_are_judged() {
    let attack = Attack::new().await;
    let link = |target: &str| attack.blob(target.as_bytes());
    let file = attack.blob(b"x");
    let base = attack.base.to_string();
    let modules = attack.blob(b"[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=id\n");
    for (case, entries) in [
        ("absolute", vec![("120000", &b"l"[..], link("/etc/passwd"))]),
        ("outside", vec![("120000", b"l", link("../../etc"))]),
        ("through git", vec![("120000", b"l", link(".git/config"))]),
        ("winding", vec![("120000", b"l", link("a/../../x"))]),
        ("endless", vec![("120000", b"l", link(&"a/".repeat(4000)))]),
        ("submodule", vec![("160000", b"s", base.clone())]),
        (
            "modules",
            vec![("100644", b".gitmodules", modules), ("160000", b"s", base)],
        ),
        ("modules link", vec![("120000", b".gitmodules", link("README.md"))]),
        ("device", vec![("20666", b"device", file.clone())]),
        ("twice", vec![("100644", b"a", file.clone()), ("100644", b"a", file)]),
    ] {
        let entries: Vec<_> = entries
            .iter()
            .map(|(mode, name, id)| (*mode, *name, id.as_str()))
            .collect();
        attack.commit(&attack.tree(&entries));
        attack.is_refused(case).await;
    }
    attack.commit(&attack.tree(&[("120000", b"fine", &link("README.md"))]));
    attack.outcome().await.unwrap();
}

#[tokio::test]
async fn sizes_depths_and_counts_are_limited() {
    let mut world = World::with_a_commit();
    world.config.max_file_bytes = 1000;
    world.config.max_incoming_bytes = 50_000;
    let attack = Attack::prepared(world).await;
    let big = attack.blob(&[b'x'; 1001]);
    attack.commit(&attack.tree(&[("100644", b"big.bin", &big)]));
    let reason = attack.is_refused("big").await;
    assert!(reason.contains("big.bin") && reason.contains("1001"), "{reason}");

    let mut tree = attack.tree(&[("100644", b"f", &attack.blob(b"f"))]);
    for _ in 0..150 {
        tree = attack.tree(&[("40000", b"d", &tree)]);
    }
    attack.commit(&tree);
    attack.is_refused("deep").await;

    let noise: Vec<u8> = (0..40_000_u64)
        .flat_map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    write(&attack.container, "noise", noise);
    commit_all(&attack.container, "Noise");
    let reason = attack.is_refused("incoming").await;
    assert!(reason.contains("max_incoming_bytes"), "{reason}");
}

#[tokio::test]
async fn what_was_not_asked_for_does_not_reach_the_mirror() {
    let attack = Attack::new().await;
    write(&attack.container, "secret.txt", "secret\n");
    let dropped = commit_all(&attack.container, "Secret");
    git(&attack.container, &["reset", "-q", "--hard", attack.base.as_str()]);
    write(&attack.container, "a.txt", "a\n");
    let wanted = commit_all(&attack.container, "Wanted");
    let both = format!("{dropped}\n{wanted}\n^{}\n", attack.base);
    let pack = try_git(
        &attack.container,
        &["pack-objects", "--stdout", "--revs", "-q"],
        both.as_bytes(),
    )
    .unwrap();
    let incoming = attack.mirror.receive(pack.as_slice()).await.unwrap();
    incoming
        .accept(&World::acceptance(&attack.container, Some(&attack.base)))
        .await
        .unwrap();
    for commit in [dropped, wanted] {
        assert!(try_git(attack.mirror.path(), &["cat-file", "-e", commit.as_str()], b"").is_err());
    }
}

#[tokio::test]
async fn a_head_that_was_not_sent_or_is_no_commit_is_refused() {
    let attack = Attack::new().await;
    let blob = attack.blob(b"x");
    for (case, head) in [
        ("missing", "1234567890123456789012345678901234567890".to_owned()),
        ("tree", attack.tree(&[("100644", b"x", &blob)])),
    ] {
        let wanted = format!("{head}\n");
        let pack = try_git(
            &attack.container,
            &["pack-objects", "--stdout", "-q"],
            wanted.as_bytes(),
        )
        .unwrap_or_default();
        let Ok(incoming) = attack.mirror.receive(pack.as_slice()).await else {
            continue;
        };
        let acceptance = Acceptance {
            base: Some(attack.base.clone()),
            head: head.parse().unwrap(),
            run: RUN.to_owned(),
        };
        let refused = incoming.accept(&acceptance).await;
        assert!(
            matches!(refused, Err(RepositoryError::Unacceptable(_))),
            "{case}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_commit_with_missing_files_is_refused() {
    let attack = Attack::new().await;
    attack.commit(&attack.tree(&[("100644", b"gone", "1234567890123456789012345678901234567890")]));
    let commit = head(&attack.container);
    let tree = git(&attack.container, &["rev-parse", "HEAD^{tree}"]);
    let wanted = format!("{commit}\n{tree}\n");
    let pack = try_git(
        &attack.container,
        &["pack-objects", "--stdout", "-q"],
        wanted.as_bytes(),
    )
    .unwrap();
    let refused = attack.mirror.receive(pack.as_slice()).await;
    assert!(matches!(refused, Err(RepositoryError::Unacceptable(_))), "{refused:?}");
}

#[tokio::test]
async fn the_name_of_a_run_cannot_reach_other_refs() {
    let attack = Attack::new().await;
    write(&attack.container, "a.txt", "a\n");
    commit_all(&attack.container, "Add a");
    let incoming = attack
        .world
        .receive(&attack.mirror, &attack.container, Some(&attack.base))
        .await
        .unwrap();
    let acceptance = Acceptance {
        run: "../heads/main".to_owned(),
        ..World::acceptance(&attack.container, Some(&attack.base))
    };
    assert!(incoming.accept(&acceptance).await.is_err());
}

#[tokio::test]
async fn a_container_that_sends_nothing_is_given_up() {
    let mut world = World::with_a_commit();
    world.config.timeout_seconds = 1;
    let mirror = world.mirror().await;
    // Its other end stays open, and nothing is written there.
    let (silent, _open) = tokio::io::duplex(1024);
    let refused = mirror.receive(silent).await;
    let Err(RepositoryError::TooSlow(reason)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(reason, "the container sent nothing for 1 seconds");
}
