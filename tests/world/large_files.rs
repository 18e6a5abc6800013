//! Repositories that keep files in Git LFS: the model works on the contents, commits hold pointers,
//! and the forge has every content before it gets a pointer to it.

use serde_json::json;

use crate::fake::fault::{Disturbance, Fault, Quirk};
use crate::fake::github::Item;
use crate::fake::lfs;
use crate::world::World;
use crate::world::scripts::{executes, plan};

const ATTRIBUTES: &str = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
const LOGO: &[u8] = b"the logo as it always was\n";
const BATCH: &str = "POST /acme/widgets.git/info/lfs/objects/batch";
const UPLOAD: &str = "PUT /acme/widgets.git/info/lfs/objects/*";

/// Commits files to the main branch: those in `large` as pointers, with their contents on the
/// server.
fn commit(world: &World, large: &[(&str, &[u8])], files: &[(&str, &str)]) {
    let repository = world.github.default_repository();
    let git = repository.git();
    let pointers: Vec<(&str, String)> = large
        .iter()
        .map(|(path, content)| (*path, lfs::keep(git.path(), content)))
        .collect();
    let mut all: Vec<(&str, &str)> = vec![(".gitattributes", ATTRIBUTES)];
    all.extend(pointers.iter().map(|(path, pointer)| (*path, pointer.as_str())));
    all.extend_from_slice(files);
    git.commit("main", "main", "Keep large files apart", &all);
}

/// Returns the paths that a pull request changes.
fn changed(pull: &Item) -> Vec<String> {
    let diff = pull.diff();
    let paths = diff.lines().filter_map(|line| line.strip_prefix("+++ b/"));
    paths.map(str::to_owned).collect()
}

#[tokio::test]
async fn the_model_works_on_contents_and_commits_hold_pointers() {
    let world = World::start().await;
    commit(
        &world,
        &[("logo.bin", LOGO), ("art/[old] *.bin", b"old art")],
        &[
            ("stray.bin", "committed as it is\n"),
            ("art/b\\s.bin", "this one, too\n"),
        ],
    );
    let planned = plan().verified_by("grep -q 'a new logo' logo.bin && grep -q drawn art/new.bin");
    let script = executes(
        world.model.plans(planned),
        "cat logo.bin 'art/[old] *.bin' && git status --porcelain",
    );
    let script = executes(
        script,
        "printf 'a new logo' > logo.bin && git commit -qam 'Draw' && git cat-file blob HEAD:logo.bin && printf drawn > art/new.bin",
    );
    script.done("Drawn.");
    let issue = world.github.open_issue("Draw a logo").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    assert!(requests[0].last_user_message().contains("keeps large files in Git LFS"));
    let shown = requests[2].last_user_message();
    assert!(shown.contains(r"the logo as it always was\nold art"), "{shown}");
    assert!(!shown.contains(" M ") && !shown.contains("??"), "{shown}");
    let shown = requests[3].last_user_message();
    assert!(shown.contains("version https://git-lfs.github.com/spec/v1"), "{shown}");
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file("logo.bin"), Some(lfs::pointer(b"a new logo")));
    assert_eq!(pull.file("art/new.bin"), Some(lfs::pointer(b"drawn")));
    assert_eq!(pull.file("stray.bin").as_deref(), Some("committed as it is\n"));
    assert_eq!(changed(pull), ["art/new.bin", "logo.bin"]);
    let git = world.github.default_repository().git();
    assert!(lfs::has(git.path(), b"a new logo") && lfs::has(git.path(), b"drawn"));
    let sent: Vec<String> = world.github.all_requests().iter().map(ToString::to_string).collect();
    let nth = |number: usize, word: &str| {
        let places = sent.iter().enumerate().filter(|(_, request)| request.contains(word));
        places.map(|(place, _)| place).nth(number).unwrap()
    };
    // The first push is the claim on the item.
    assert!(nth(0, "PUT /acme/widgets.git/info/lfs") < nth(1, "POST /acme/widgets.git/git-receive-pack"));
    world.finish().await;
}

#[tokio::test]
async fn a_gitlab_that_keeps_contents_elsewhere_gives_and_takes_them() {
    let world = World::on_gitlab().await;
    // Another address, as that of a store of objects, that wants none of the headers.
    world.gitlab.behaves(Quirk::RedirectsContents);
    let git = world.gitlab.default_project().git();
    let pointer = lfs::keep(git.path(), LOGO);
    let files = [(".gitattributes", ATTRIBUTES), ("logo.bin", pointer.as_str())];
    git.commit("main", "main", "Keep large files apart", &files);
    let planned = plan().verified_by("grep -q 'and another line' logo.bin");
    let script = executes(world.model.plans(planned), "echo 'and another line' >> logo.bin");
    script.done("Drawn.");
    world.gitlab.open_issue("Draw a logo").label("coding agent");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    let now = [LOGO, b"and another line\n"].concat();
    let merge = &world.gitlab.merge_requests()[0];
    assert_eq!(merge.file("logo.bin"), Some(lfs::pointer(&now)));
    assert!(lfs::has(git.path(), &now));
    world.finish().await;
}

#[tokio::test]
async fn a_new_content_outlives_its_container() {
    let world = World::start().await;
    commit(&world, &[("logo.bin", LOGO)], &[]);
    let planned = plan().verified_by("grep -q 'a new logo' logo.bin");
    let mut script = executes(world.model.plans(planned), "printf 'a new logo' > logo.bin");
    for number in 2..=10 {
        script = executes(script, &format!("echo {number} > {number}.txt"));
    }
    let script = executes(script, "echo never > heard.txt").holds();
    executes(script, "cat logo.bin && git diff --name-only").done("Drawn.");
    world.github.open_issue("Draw a logo").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    world.until_kept().await;
    world.kill_containers().await;
    world.model.release();
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let seen = world.model.requests()[13].last_user_message();
    assert!(seen.contains("a new logologo.bin"), "{seen}");
    let git = world.github.default_repository().git();
    assert!(lfs::has(git.path(), b"a new logo"));
    world.finish().await;
}

#[tokio::test]
async fn what_cannot_be_had_stays_a_pointer_and_is_told() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "lfs": { "max_bytes": 40 } }));
    let large: &[(&str, &[u8])] = &[
        ("same.bin", b"abcba"),
        ("other.bin", b"abcdef"),
        ("big.bin", &[b'x'; 1000]),
    ];
    commit(&world, large, &[]);
    // Another content than its pointer names, unless it reads the same from both ends.
    world.github.behaves(Quirk::SendsOtherContents);
    let script = executes(
        world.model.plans(plan()),
        "head -c 20 same.bin; echo; head -c 20 other.bin; echo; head -c 20 big.bin; git status --porcelain; echo greet > greeting",
    );
    script.done("Greeted.");
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    let told = requests[0].last_user_message();
    assert!(told.contains("big.bin (1 MB)\nother.bin (1 MB)\n"), "{told}");
    let shown = requests[2].last_user_message();
    assert!(
        shown.contains(r"abcba\nversion https://git-\nversion https://git-"),
        "{shown}"
    );
    let pull = &world.github.pulls()[0];
    assert_eq!(changed(pull), ["greeting"]);
    let said = issue.comments_of(world.github.bot()).join("\n");
    assert!(
        said.contains("2 of 3 files in Git LFS are only pointers") && said.contains("git.lfs.max_bytes"),
        "{said}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_repository_without_them_may_begin_to_keep_them() {
    let mut world = World::start().await;
    // Attributes are protected.
    world.configure(|config| config["git"] = json!({ "protected_paths": [] }));
    let planned = plan().verified_by("grep -q drawn art/new.bin && grep -q 'a new logo' logo.bin");
    let script = executes(
        world.model.plans(planned),
        &format!(
            "printf '{}' > .gitattributes && printf 'a new logo' > logo.bin",
            ATTRIBUTES.escape_default()
        ),
    );
    let script = executes(
        script,
        "git add -A && git commit -qm Draw && git cat-file blob HEAD:logo.bin && mkdir art && printf drawn > art/new.bin",
    );
    script.done("Drawn.");
    let issue = world
        .github
        .open_issue("Keep pictures in Git LFS")
        .label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let shown = world.model.requests()[3].last_user_message();
    assert!(shown.contains("version https://git-lfs.github.com/spec/v1"), "{shown}");
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file("logo.bin"), Some(lfs::pointer(b"a new logo")));
    assert_eq!(pull.file("art/new.bin"), Some(lfs::pointer(b"drawn")));
    assert!(!pull.is_draft(), "{}", pull.text());
    let git = world.github.default_repository().git();
    assert!(lfs::has(git.path(), b"a new logo") && lfs::has(git.path(), b"drawn"));
    world.finish().await;
}

#[tokio::test]
async fn a_content_in_the_place_of_a_pointer_is_refused() {
    let world = World::start().await;
    commit(&world, &[("logo.bin", LOGO)], &[]);
    let script = executes(
        world.model.plans(plan()),
        "git config --remove-section filter.lfs && printf 'a new logo' > logo.bin && git add -A && git commit -qm Draw",
    );
    // It is told twice, and leaves it as it is.
    script.done("Drawn.").done("Drawn.").done("Drawn.");
    let issue = world.github.open_issue("Draw a logo").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed: refused by a policy\n", &world);
    let said = issue.comments_of(world.github.bot()).join("\n");
    assert!(
        said.contains("logo.bin") && said.contains("belongs into Git LFS"),
        "{said}"
    );
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn without_the_content_no_pointer_is_pushed() {
    let world = World::start().await;
    commit(&world, &[("logo.bin", LOGO)], &[]);
    let refusal = r#"{"message": "Git LFS is disabled for this repository."}"#;
    let disturbance = Disturbance::of(BATCH, Fault::Refuses(403, refusal));
    world.github.disturb(disturbance.sparing(1).always());
    let script = executes(world.model.plans(plan()), "printf 'a new logo' > logo.bin");
    script.done("Drawn.");
    let issue = world.github.open_issue("Draw a logo").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    let said = issue.comments_of(world.github.bot()).join("\n");
    assert!(said.contains("Git LFS is disabled for this repository"), "{said}");
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn an_upload_waits_until_the_server_takes_writes_again() {
    let world = World::start().await;
    commit(&world, &[("logo.bin", LOGO)], &[]);
    let refusal = r#"{"message": "You cannot write to this read-only GitLab instance."}"#;
    let disturbance = Disturbance::of(BATCH, Fault::Refuses(403, refusal));
    world.github.disturb(disturbance.sparing(1).always());
    let script = executes(world.model.plans(plan()), "printf 'a new logo' > logo.bin");
    script.done("Drawn.");
    let issue = world.github.open_issue("Draw a logo").label("coding agent");

    let ended = world.run().await;

    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
    world.github.is_well_again();
    world.make_everything_due().await;
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let git = world.github.default_repository().git();
    assert!(lfs::has(git.path(), b"a new logo"), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn an_upload_that_is_sent_elsewhere_has_not_arrived() {
    let world = World::start().await;
    commit(&world, &[("logo.bin", LOGO)], &[]);
    // As of a server whose own address is configured without TLS, behind a proxy that wants it.
    let redirect = Fault::Redirects("https://forge.example.com");
    world.github.disturb(Disturbance::of(UPLOAD, redirect).always());
    let script = executes(world.model.plans(plan()), "printf 'a new logo' > logo.bin");
    script.done("Drawn.");
    let issue = world.github.open_issue("Draw a logo").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    let said = issue.comments_of(world.github.bot()).join("\n");
    assert!(said.contains("it redirects to `https://forge.example.com`"), "{said}");
    let git = world.github.default_repository().git();
    assert!(!lfs::has(git.path(), b"a new logo"));
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn a_secret_in_a_large_file_waits_for_a_word() {
    let world = World::start().await;
    commit(&world, &[("logo.bin", LOGO)], &[]);
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let script = executes(world.model.plans(plan()), &format!("printf 'key = {token}' > logo.bin"));
    script.done("Drawn.");
    let issue = world.github.open_issue("Draw a logo").label("coding agent");

    world.run().await;

    assert_eq!(issue.labels(), ["coding agent waiting"], "{}", world.story());
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    world.finish().await;
}
