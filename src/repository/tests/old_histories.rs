//! Faults that old honest histories have: tolerated in what the forge gives, and in nothing else.

use super::*;

const A: &str = "A <a@example.org> 1000000000 +0000";

/// Writes an object whatever its content.
fn object(repository: &Path, kind: &str, content: &[u8]) -> String {
    let arguments = ["hash-object", "-t", kind, "-w", "--literally", "--stdin"];
    let id = try_git(repository, &arguments, content).unwrap();
    String::from_utf8(id).unwrap().trim().to_owned()
}

/// Returns the entry of a tree.
fn entry(mode: &str, name: &str, id: &str) -> Vec<u8> {
    let raw = (0..id.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap());
    let head = format!("{mode} {name}\0").into_bytes();
    head.into_iter().chain(raw).collect()
}

/// A history with one fault.
enum Fault {
    /// In the lines of a commit behind its tree and parents.
    Commit(String),
    /// In a tree, with a blob, another tree and a link target at hand.
    Tree(fn(blob: &str, tree: &str) -> Vec<u8>),
    /// In the file `.gitmodules`.
    Modules(&'static str),
}

fn with(author: &str) -> Fault {
    Fault::Commit(format!("author {author}\ncommitter {A}\n"))
}

/// Makes the fault the parent of an honest commit; returns that one.
fn history(repository: &Path, fault: &Fault) -> CommitId {
    let blob = object(repository, "blob", b"old\n");
    let honest = object(repository, "tree", &entry("100644", "a", &blob));
    let mut lines = format!("author {A}\ncommitter {A}\n");
    let tree = match fault {
        Fault::Commit(text) => {
            lines.clone_from(text);
            honest.clone()
        }
        Fault::Tree(content) => object(repository, "tree", &content(&blob, &honest)),
        Fault::Modules(text) => {
            let modules = object(repository, "blob", text.as_bytes());
            object(repository, "tree", &entry("100644", ".gitmodules", &modules))
        }
    };
    let old = object(repository, "commit", format!("tree {tree}\n{lines}\nOld\n").as_bytes());
    let new = format!("tree {honest}\nparent {old}\nauthor {A}\ncommitter {A}\n\nNew\n");
    object(repository, "commit", new.as_bytes()).parse().unwrap()
}

/// Names as `git fsck` has them.
fn faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("badDate", with("A <a@example.org> 12x +0000")),
        ("badDateOverflow", with("A <a@example.org> 18446744073709551615 +0000")),
        ("zeroPaddedDate", with("A <a@example.org> 01000000000 +0000")),
        ("badTimezone", with("A <a@example.org> 1000000000 +051800")),
        ("missingEmail", with("A 1000000000 +0000")),
        ("badEmail", with("A <a@example.org 1000000000 +0000")),
        ("badName", with("A> B <a@example.org> 1000000000 +0000")),
        ("missingSpaceBeforeEmail", with("A<a@example.org> 1000000000 +0000")),
        ("missingSpaceBeforeDate", with("A <a@example.org>1000000000 +0000")),
        ("missingNameBeforeEmail", with("<a@example.org> 1000000000 +0000")),
        (
            "multipleAuthors",
            Fault::Commit(format!("author {A}\nauthor {A}\ncommitter {A}\n")),
        ),
        ("missingAuthor", Fault::Commit(format!("committer {A}\n"))),
        ("missingCommitter", Fault::Commit(format!("author {A}\n"))),
        (
            "nulInCommit",
            Fault::Commit(format!("author {A}\ncommitter {A}\n\na\0b\n")),
        ),
        (
            "duplicateEntries",
            Fault::Tree(|blob, _| entry("100644", "a", blob).repeat(2)),
        ),
        (
            "treeNotSorted",
            Fault::Tree(|blob, _| [entry("100644", "b", blob), entry("100644", "a", blob)].concat()),
        ),
        ("hasDot", Fault::Tree(|_, tree| entry("40000", ".", tree))),
        ("hasDotdot", Fault::Tree(|_, tree| entry("40000", "..", tree))),
        ("hasDotgit", Fault::Tree(|_, tree| entry("40000", ".git", tree))),
        ("fullPathname", Fault::Tree(|blob, _| entry("100644", "a/b", blob))),
        ("zeroPaddedFilemode", Fault::Tree(|_, tree| entry("040000", "a", tree))),
        ("badFilemode", Fault::Tree(|blob, _| entry("100664", "a", blob))),
        (
            "gitmodulesSymlink",
            Fault::Tree(|blob, _| entry("120000", ".gitmodules", blob)),
        ),
        (
            "gitmodulesBlob",
            Fault::Tree(|_, tree| entry("40000", ".gitmodules", tree)),
        ),
        (
            "gitmodulesUrl",
            Fault::Modules("[submodule \"a\"]\n\tpath = a\n\turl = -u./x\n"),
        ),
        (
            "gitmodulesName",
            Fault::Modules("[submodule \"../a\"]\n\tpath = a\n\turl = ./a\n"),
        ),
        (
            "gitmodulesPath",
            Fault::Modules("[submodule \"a\"]\n\tpath = -a\n\turl = ./a\n"),
        ),
        (
            "gitmodulesUpdate",
            Fault::Modules("[submodule \"a\"]\n\tpath = a\n\turl = ./a\n\tupdate = !id\n"),
        ),
        ("gitmodulesParse", Fault::Modules("[submodule\n")),
        (
            "gitattributesSymlink",
            Fault::Tree(|blob, _| entry("120000", ".gitattributes", blob)),
        ),
    ]
}

#[tokio::test]
async fn an_old_fault_on_the_forge_is_fetched_and_worked_on() {
    for (name, fault) in faults() {
        let world = World::new();
        let upstream = world.path("upstream.git");
        let base = history(&upstream, &fault);
        git(&upstream, &["update-ref", "refs/heads/main", base.as_str()]);

        let mirror = world.fetched().await.unwrap_or_else(|error| panic!("{name}: {error}"));

        assert_eq!(mirror.branch("main").await.unwrap(), Some(base.clone()), "{name}");
        let container = world.container(&mirror, Some(&base)).await;
        write(&container, "b.txt", "b\n");
        commit_all(&container, "Add b");
        let incoming = world.receive(&mirror, &container, Some(&base)).await.unwrap();
        let accepted = incoming.accept(&World::acceptance(&container, Some(&base))).await;
        assert_eq!(accepted.unwrap().commits, 1, "{name}");
    }
}

#[tokio::test]
async fn the_same_fault_out_of_a_container_is_refused() {
    // Git says of these two that they are no errors, and the commits are written again anyway.
    let harmless = ["badFilemode", "gitmodulesParse", "gitattributesSymlink"];
    for (name, fault) in faults() {
        let world = World::with_a_commit();
        let mirror = world.mirror().await;
        let base = mirror.branch("main").await.unwrap();
        let container = world.container(&mirror, base.as_ref()).await;
        let head = history(&container, &fault);
        let pack = pack_of(&container, head.as_str(), base.as_ref());

        let received = mirror.receive(pack.as_slice()).await;

        match received {
            Err(RepositoryError::Unacceptable(reason)) => assert!(reason.contains(name), "{name}: {reason}"),
            Ok(_) => assert!(harmless.contains(&name), "{name} was taken"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[tokio::test]
async fn what_is_no_object_at_all_is_not_fetched_either() {
    for content in [b"100644 a\0short".as_slice(), b"no mode"] {
        let world = World::new();
        let upstream = world.path("upstream.git");
        let tree = object(&upstream, "tree", content);
        let text = format!("tree {tree}\nauthor {A}\ncommitter {A}\n\nOld\n");
        let commit = object(&upstream, "commit", text.as_bytes());
        std::fs::write(upstream.join("refs/heads/main"), commit + "\n").unwrap();

        world.fetched().await.unwrap_err();
    }
}
