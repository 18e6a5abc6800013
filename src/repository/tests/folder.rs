//! Tests of snapshots of plain folders and of applying differences to them.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// Returns everything below a folder: bytes, modes, links and times.
fn picture(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            String::new()
        } else if metadata.is_symlink() {
            path.read_link().unwrap().display().to_string()
        } else {
            format!("{:?}", std::fs::read(&path).unwrap())
        };
        let seen = format!(
            "{:o} {:?} {content}",
            metadata.permissions().mode(),
            metadata.modified().unwrap()
        );
        found.insert(path, seen);
    }
    found
}

/// Returns the paths that changed.
fn changed_since(before: &BTreeMap<PathBuf, String>, folder: &Path) -> Vec<PathBuf> {
    let after = picture(folder);
    let paths = before.keys().chain(after.keys());
    let mut changed: Vec<_> = paths
        .filter(|path| before.get(*path) != after.get(*path))
        .cloned()
        .collect();
    changed.dedup();
    changed
}

const NONE: [PathBuf; 0] = [];

async fn snapshot(world: &World, folder: &Path) -> Result<(Mirror, CommitId), RepositoryError> {
    Mirror::snapshot(&world.config, &world.path("state"), "local-1", folder).await
}

async fn names(mirror: &Mirror, commit: &CommitId) -> Vec<String> {
    let (files, _) = mirror.files(commit, 100).await.unwrap();
    files.into_iter().map(|file| file.path).collect()
}

/// Lets the container change the snapshot and returns the accepted result.
async fn worked(world: &World, mirror: &Mirror, base: &CommitId, work: impl FnOnce(&Path)) -> CommitId {
    let container = world.container(mirror, Some(base)).await;
    work(&container);
    commit_all(&container, "Work");
    let incoming = world.receive(mirror, &container, Some(base)).await.unwrap();
    incoming
        .accept(&World::acceptance(&container, Some(base)))
        .await
        .unwrap()
        .head
}

#[tokio::test]
async fn a_folder_without_git_goes_in_and_the_difference_comes_out() {
    let world = World::new();
    let folder = world.path("plain");
    write(&folder, "a.txt", "one\r\ntwo\r\n");
    write(&folder, ".gitattributes", "* text=auto eol=lf\n");
    write(&folder, ".gitignore", "target/\n");
    write(&folder, "target/out.o", "ignored");
    write(&folder, "gone.txt", "gone\n");
    write(&folder, "data.bin", [0, 1, 2, 255]);
    symlink("a.txt", folder.join("link")).unwrap();
    let before = picture(&folder);
    let (mirror, base) = snapshot(&world, &folder).await.unwrap();
    assert_eq!(changed_since(&before, &folder), NONE);
    assert_eq!(
        names(&mirror, &base).await,
        [".gitattributes", ".gitignore", "a.txt", "data.bin", "gone.txt", "link"]
    );
    assert_eq!(
        mirror.file(&base, "a.txt", 100).await.unwrap().unwrap(),
        b"one\r\ntwo\r\n"
    );

    let result = worked(&world, &mirror, &base, |container| {
        std::fs::remove_file(container.join("gone.txt")).unwrap();
        write(container, "data.bin", [9, 0, 9]);
        write(container, "new/run.sh", "#!/bin/sh\n");
        std::fs::set_permissions(container.join("new/run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        symlink("../data.bin", container.join("new/link")).unwrap();
    })
    .await;
    mirror.apply(&base, &result, &folder).await.unwrap();
    assert_eq!(std::fs::read(folder.join("data.bin")).unwrap(), [9, 0, 9]);
    assert!(!folder.join("gone.txt").exists());
    assert_eq!(folder.join("new/link").read_link().unwrap(), Path::new("../data.bin"));
    assert_eq!(
        folder.join("new/run.sh").metadata().unwrap().permissions().mode() & 0o111,
        0o111
    );
    assert_eq!(std::fs::read_to_string(folder.join("target/out.o")).unwrap(), "ignored");
    mirror.apply(&base, &base, &folder).await.unwrap();
}

#[tokio::test]
async fn a_repository_goes_in_with_its_history_and_what_is_not_committed() {
    let world = World::new();
    let folder = world.path("project");
    git(world.folder.path(), &["init", "-q", "-b", "main", "project"]);
    write(&folder, ".gitignore", "*.log\n");
    write(&folder, "kept.log", "tracked all the same\n");
    write(&folder, "a.txt", "a\n");
    git(&folder, &["add", "-f", "kept.log"]);
    let head = commit_all(&folder, "Begin");
    write(&folder, ".git/info/exclude", "private.txt\n");
    write(&folder, "private.txt", "private\n");
    let (_, clean) = snapshot(&world, &folder).await.unwrap();
    assert_eq!(clean, head);

    write(&folder, "a.txt", "changed\n");
    write(&folder, "new.txt", "new\n");
    write(&folder, "noise.log", "noise\n");
    let before = picture(&folder);
    let (mirror, commit) = snapshot(&world, &folder).await.unwrap();
    assert_eq!(changed_since(&before, &folder), NONE);
    assert_eq!(
        names(&mirror, &commit).await,
        [".gitignore", "a.txt", "kept.log", "new.txt"]
    );
    assert_eq!(mirror.file(&commit, "a.txt", 100).await.unwrap().unwrap(), b"changed\n");
    let container = world.container(&mirror, Some(&commit)).await;
    assert_eq!(git(&container, &["rev-parse", "HEAD^"]), head.as_str());

    git(&folder, &["pack-refs", "--all"]);
    git(&folder, &["worktree", "add", "-q", "../beside"]);
    assert_eq!(snapshot(&world, &world.path("beside")).await.unwrap().1, head);
}

#[tokio::test]
async fn nothing_in_a_stranger_s_git_folder_is_ever_run() {
    let world = World::new();
    let folder = world.path("strange");
    let proof = world.path("it-ran");
    let script = world.path("evil.sh");
    std::fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", proof.display())).unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    for repository in [folder.clone(), folder.join("nested"), folder.join("module")] {
        std::fs::create_dir_all(&repository).unwrap();
        git(&repository, &["init", "-q", "-b", "main"]);
        write(&repository, "a.txt", "a\n");
        git(&repository, &["add", "a.txt"]);
        git(&repository, &["commit", "-q", "-m", "Begin"]);
    }
    let module = head(&folder.join("module"));
    git(
        &folder,
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{module},module"),
        ],
    );
    git(&folder, &["commit", "-q", "-m", "A submodule"]);
    write(&folder, ".gitattributes", "* filter=evil diff=evil merge=evil\n");
    write(&folder, "module/a.txt", "changed\n");
    let evil = script.display().to_string();
    for repository in [&folder, &folder.join("nested"), &folder.join("module")] {
        for key in [
            "core.fsmonitor",
            "core.sshCommand",
            "core.editor",
            "core.alternateRefsCommand",
            "filter.evil.clean",
            "filter.evil.smudge",
            "filter.evil.process",
            "diff.evil.textconv",
            "diff.evil.command",
            "diff.external",
            "merge.evil.driver",
            "gpg.program",
            "uploadpack.packObjectsHook",
        ] {
            write(repository, ".git/marker", "");
            let config = std::fs::read_to_string(repository.join(".git/config")).unwrap();
            let (section, name) = key.rsplit_once('.').unwrap();
            let section = section
                .split_once('.')
                .map_or_else(|| section.to_owned(), |(a, b)| format!("{a} \"{b}\""));
            write(
                repository,
                ".git/config",
                format!("{config}[{section}]\n\t{name} = {evil}\n"),
            );
        }
        for hook in [
            "pre-commit",
            "post-checkout",
            "post-index-change",
            "reference-transaction",
            "pre-push",
        ] {
            write(
                repository,
                &format!(".git/hooks/{hook}"),
                format!("#!/bin/sh\ntouch {}\n", proof.display()),
            );
            std::fs::set_permissions(
                repository.join(format!(".git/hooks/{hook}")),
                PermissionsExt::from_mode(0o755),
            )
            .unwrap();
        }
    }
    let before = picture(&folder);
    let (mirror, base) = snapshot(&world, &folder).await.unwrap();
    assert_eq!(changed_since(&before, &folder), NONE);
    assert_eq!(names(&mirror, &base).await, [".gitattributes", "a.txt"]);
    let result = worked(&world, &mirror, &base, |container| write(container, "a.txt", "b\n")).await;
    mirror.diff(&base, &result, 1000).await.unwrap();
    mirror.apply(&base, &result, &folder).await.unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "b\n");
    assert!(!proof.exists());
}

#[tokio::test]
async fn a_folder_that_changed_meanwhile_is_left_as_it_is_and_the_changes_are_kept() {
    let world = World::new();
    let folder = world.path("plain");
    write(&folder, "a.txt", "a\n");
    write(&folder, "b.txt", "b\n");
    let (mirror, base) = snapshot(&world, &folder).await.unwrap();
    let result = worked(&world, &mirror, &base, |container| {
        write(container, "a.txt", "A\n");
        write(container, "b.txt", "B\n");
    })
    .await;
    write(&folder, "b.txt", "somebody else's\n");
    let before = picture(&folder);
    let error = mirror.apply(&base, &result, &folder).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Moved { .. }), "{error}");
    assert_eq!(changed_since(&before, &folder), NONE);
    let patch = mirror.path().with_extension("patch");
    assert!(error.to_string().contains(patch.to_str().unwrap()), "{error}");
    assert!(std::fs::read_to_string(patch).unwrap().contains("+A"));
}

#[tokio::test]
async fn nothing_is_written_outside_the_folder_through_a_link_in_it() {
    let world = World::new();
    let (folder, outside) = (world.path("plain"), world.path("outside"));
    write(&folder, "sub/a.txt", "a\n");
    write(&outside, "a.txt", "a\n");
    let (mirror, base) = snapshot(&world, &folder).await.unwrap();
    let result = worked(&world, &mirror, &base, |container| write(container, "sub/a.txt", "A\n")).await;
    std::fs::remove_dir_all(folder.join("sub")).unwrap();
    symlink(&outside, folder.join("sub")).unwrap();
    assert!(mirror.apply(&base, &result, &folder).await.is_err());
    assert_eq!(std::fs::read_to_string(outside.join("a.txt")).unwrap(), "a\n");
}

#[tokio::test]
async fn odd_folders_have_a_defined_ending() {
    let world = World::new();
    assert!(snapshot(&world, &world.path("missing")).await.is_err());
    let empty = world.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let (mirror, commit) = snapshot(&world, &empty).await.unwrap();
    assert!(names(&mirror, &commit).await.is_empty());

    let unborn = world.path("unborn \"x\": y");
    std::fs::create_dir(&unborn).unwrap();
    git(&unborn, &["init", "-q"]);
    write(&unborn, "a b\nc.txt", "a\n");
    let (mirror, commit) = snapshot(&world, &unborn).await.unwrap();
    assert_eq!(names(&mirror, &commit).await, ["a b\nc.txt"]);

    let odd = world.path("we\"ird: \\ x");
    std::fs::create_dir(&odd).unwrap();
    git(&odd, &["init", "-q"]);
    write(&odd, "a.txt", "a\n");
    let head = commit_all(&odd, "Begin");
    let (mirror, commit) = snapshot(&world, &odd).await.unwrap();
    assert_eq!(commit, head);
    world.container(&mirror, Some(&commit)).await;

    let inner = world.path("outer/inner");
    std::fs::create_dir_all(&inner).unwrap();
    git(&world.path("outer"), &["init", "-q"]);
    write(&world.path("outer"), "secret.txt", "outside\n");
    write(&inner, "a.txt", "a\n");
    let (mirror, commit) = snapshot(&world, &inner).await.unwrap();
    assert_eq!(names(&mirror, &commit).await, ["a.txt"]);
    mirror.discard().await.unwrap();
    assert_eq!(std::fs::read_dir(world.path("state/mirrors/local")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_part_of_a_repository_goes_in_without_what_the_repository_ignores() {
    let world = World::new();
    let outer = world.path("outer");
    git(world.folder.path(), &["init", "-q", "-b", "main", "outer"]);
    write(&outer, ".gitignore", "/part/.env\n*.log\n/elsewhere\n");
    write(&outer, ".git/info/exclude", "private.txt\n");
    write(&outer, "part/a.txt", "a\n");
    write(&outer, "part/deep/b.txt", "b\n");
    write(&outer, "part/kept.log", "tracked all the same\n");
    git(&outer, &["add", "-f", "part/kept.log"]);
    commit_all(&outer, "Begin");
    write(&outer, "part/.env", "KEY=secret\n");
    write(&outer, "part/private.txt", "private\n");
    write(&outer, "part/noise.log", "noise\n");
    write(&outer, "part/new.txt", "new\n");
    write(&outer, "elsewhere/.env", "a folder of its own\n");
    let part = outer.join("part");
    let before = picture(&outer);
    let (mirror, commit) = snapshot(&world, &part).await.unwrap();
    assert_eq!(
        names(&mirror, &commit).await,
        ["a.txt", "deep/b.txt", "kept.log", "new.txt"]
    );
    assert_eq!(changed_since(&before, &outer), NONE);
    let result = worked(&world, &mirror, &commit, |container| {
        write(container, "deep/b.txt", "B\n");
    })
    .await;
    mirror.apply(&commit, &result, &part).await.unwrap();
    assert_eq!(std::fs::read_to_string(part.join("deep/b.txt")).unwrap(), "B\n");

    let (mirror, commit) = snapshot(&world, &outer.join("elsewhere")).await.unwrap();
    assert_eq!(names(&mirror, &commit).await, [".env"]);
}
