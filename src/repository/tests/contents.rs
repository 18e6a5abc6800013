//! What is read of a commit: contents of Git LFS on this machine, and lines that are searched for.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::lfs::Pointer;
use crate::repository::reading::contents::ContentError;
use crate::repository::reading::large_files::LargeFile;
use crate::repository::reading::search::Pattern;
use sha2::{Digest, Sha256};

const PATIENCE: Duration = Duration::from_secs(5);

fn pointer(content: &[u8]) -> Pointer {
    let digest = format!("{:x}", Sha256::digest(content));
    Pointer::new(&digest, content.len() as u64).unwrap()
}

async fn keep(mirror: &Mirror, content: &[u8]) -> Pointer {
    let pointer = pointer(content);
    mirror.keep_content(&pointer, content, PATIENCE).await.unwrap();
    pointer
}

#[tokio::test]
async fn only_what_the_pointer_names_is_kept() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let named = pointer(b"right");
    for wrong in [&b"wrong"[..], b"righ", b"right!", b""] {
        let kept = mirror.keep_content(&named, wrong, PATIENCE).await;
        assert!(matches!(kept, Err(ContentError::Wrong(_))), "{kept:?}");
        assert!(mirror.content(&named).await.is_none());
    }
    let (silent, _open) = tokio::io::duplex(8);
    let kept = mirror.keep_content(&named, silent, Duration::from_millis(10)).await;
    assert!(matches!(kept, Err(ContentError::Broken(_))), "{kept:?}");
    keep(&mirror, b"right").await;
    assert!(mirror.content(&named).await.is_some());
    let left = std::fs::read_dir(mirror.path().join("lfs")).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["objects"]);
}

#[tokio::test]
async fn what_a_run_made_stays_until_it_is_forgotten() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let (made, shared, fetched) = (
        keep(&mirror, b"made").await,
        keep(&mirror, b"shared").await,
        keep(&mirror, b"fetched").await,
    );
    let other = "019aa6b2-0000-7000-8000-000000000001";
    mirror.pin_contents(RUN, &[made.clone(), shared.clone()]).await.unwrap();
    mirror.pin_contents(other, std::slice::from_ref(&shared)).await.unwrap();
    mirror.prune_contents(0).await;
    let all = [made, shared.clone(), fetched.clone()];
    assert_eq!(mirror.missing_contents(&all).await, [fetched]);
    mirror.forget(RUN).await.unwrap();
    assert!(mirror.content(&all[0]).await.is_none());
    assert!(mirror.content(&shared).await.is_some());
    mirror.forget(other).await.unwrap();
    assert_eq!(mirror.missing_contents(&all).await.len(), 3);
}

#[tokio::test]
async fn of_what_nobody_keeps_the_oldest_goes_first() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let (first, second) = (keep(&mirror, b"first").await, keep(&mirror, b"second").await);
    let long_ago = std::time::SystemTime::now() - Duration::from_hours(1);
    for pointer in [&first, &second] {
        let file = mirror.content(pointer).await.unwrap();
        let file = std::fs::File::options().append(true).open(file).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    mirror.use_content(&first).await;
    mirror.prune_contents(6).await;
    assert!(mirror.content(&first).await.is_some());
    assert!(mirror.content(&second).await.is_none());
}

#[tokio::test]
async fn a_pointer_that_stands_first_where_no_attribute_names_it_is_added_all_the_same() {
    let world = World::with_a_commit();
    let mirror = world.mirror().await;
    let base = mirror.branch("main").await.unwrap();
    let container = world.container(&mirror, base.as_ref()).await;
    let (logo, example) = (pointer(b"a logo"), pointer(b"an example"));
    let text = |pointer: &Pointer| {
        let (digest, size) = (pointer.digest(), pointer.size());
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {size}\n")
    };
    write(
        &container,
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    write(&container, "example.txt", text(&logo));
    write(&container, "logo.bin", text(&logo));
    write(&container, "other.txt", text(&example));
    commit_all(&container, "Draw");
    let acceptance = World::acceptance(&container, base.as_ref());
    let incoming = world.receive(&mirror, &container, base.as_ref()).await.unwrap();
    let logo = LargeFile {
        path: "logo.bin".to_owned(),
        pointer: logo,
    };

    assert_eq!(
        incoming.large_files(&acceptance).await.unwrap(),
        std::slice::from_ref(&logo)
    );
    let accepted = incoming.accept(&acceptance).await.unwrap();
    assert_eq!(mirror.new_large_files(&accepted.head).await.unwrap(), [logo]);
}

#[tokio::test]
async fn of_a_secret_where_a_matching_line_is_cut_nothing_is_shown() {
    let world = World::with_a_commit();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    world.upstream_commit("long.txt", &format!("needle {} {token}\n", "word ".repeat(77)));
    let mirror = world.mirror().await;
    let commit = mirror.branch("main").await.unwrap().unwrap();
    let pattern = Pattern::read("needle").unwrap();
    let found = mirror.search(&commit, &pattern, |_| true, 9, &Arc::default()).await;
    let lines = found.unwrap().lines;
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].ends_with("word  [redact") && !lines[0].contains("ghp_"),
        "{lines:?}"
    );
}
