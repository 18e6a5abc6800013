//! What a model leaves in the work tree by a slip: it is told, and mends it. What git left there is
//! removed.

use serde_json::json;

use crate::fake::model::{Request, Script};
use crate::world::World;
use crate::world::normalized::last_on_github;
use crate::world::scripts::{executes, plan, writes};

/// The title of an issue, a command that leaves something that cannot be delivered, words that the
/// model is told of it, and the command that mends it.
const SLIPS: [(&str, &str, &str, &str); 5] = [
    (
        "Scaffold it",
        "git init -q app && echo Hello > app/main.txt && git init -q other",
        "'other/' does not have a commit checked out",
        "rm -rf app/.git other",
    ),
    (
        "Clone it",
        "git clone -q . tools/widgets",
        "`tools/widgets`: submodules may not be added or changed",
        "rm -rf tools",
    ),
    (
        "Install it",
        "mkdir -p venv/bin && ln -s /usr/bin/python3 venv/bin/python3",
        "`venv/bin/python3`: the link points to an absolute path",
        "echo venv/ > .gitignore",
    ),
    (
        "Build it",
        "head -c 21000000 /dev/zero > built.bin",
        "`built.bin` has 21000000 bytes",
        "rm built.bin",
    ),
    (
        "Lock it",
        "echo x > locked.txt && chmod 000 locked.txt",
        "locked.txt",
        "rm -f locked.txt",
    ),
];

/// Returns the script of one issue's run, up to the greeting.
fn greeting<'world>(world: &'world World, title: &str) -> Script<'world> {
    writes(world.model.for_task(title).plans(plan()), "README.md", "Hello\n")
}

/// Returns what the model was told of work that cannot be taken.
fn told_of_slips(world: &World, title: &str) -> Vec<String> {
    let requests = world.model.requests();
    let of_issue = requests
        .iter()
        .filter(|request| request.first_user_message().contains(title));
    let told = of_issue.map(Request::last_user_message);
    told.filter(|text| text.contains("cannot be taken as it is")).collect()
}

#[tokio::test]
async fn a_slip_is_told_to_the_model_and_mended() {
    let world = World::start().await;
    for (title, slip, _, mend) in SLIPS {
        let script = executes(greeting(&world, title), slip).done("The README greets its reader.");
        executes(script, mend).done("The README greets its reader, and nothing else is there.");
        world.github.open_issue(title).label("coding agent");
    }

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let pulls = world.github.pulls();
    for (title, _, words, _) in SLIPS {
        let told = told_of_slips(&world, title);
        assert!(told.len() == 1 && told[0].contains(words), "{title}: {told:?}");
        let pull = pulls.iter().find(|pull| pull.title() == title).unwrap();
        assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"), "{title}");
        assert!(!pull.is_draft(), "{title}: {}", pull.text());
        let mut files = pull.files();
        files.sort();
        let expected: &[&str] = match title {
            "Scaffold it" => &["README.md", "app/main.txt"],
            "Install it" => &[".gitignore", "README.md"],
            _ => &["README.md"],
        };
        assert_eq!(files, expected, "{title}");
    }
    // Git names all that it cannot add, and not the first alone.
    let told = told_of_slips(&world, "Scaffold it");
    assert!(told[0].contains("'app/' does not have a commit"), "{told:?}");
    world.finish().await;
}

#[tokio::test]
async fn what_is_never_mended_ends_the_run_and_what_was_kept_is_shown() {
    let world = World::start().await;
    let script = executes(
        greeting(&world, "Scaffold it"),
        "git clone -q . tools && for number in $(seq 100); do git init -q repository-$number; done",
    );
    script
        .done("Done.")
        .done("Done, I say.")
        .done("Done, and that is that.");
    let planned = plan().verified_by("test -e never.txt");
    let script = world.model.for_task("Link it").plans(planned);
    // The checks that fail have the work kept as it was before the link.
    let script = writes(script, "README.md", "Hello\n").done("Done.");
    let script = executes(script, "ln -s /etc/passwd outside");
    script
        .done("Done.")
        .done("Done, I say.")
        .done("Done, and that is that.");
    let scaffold = world.github.open_issue("Scaffold it").label("coding agent");
    let link = world.github.open_issue("Link it").label("coding agent");

    let ended = world.run().await;

    assert_eq!(
        ended.outcomes(),
        [
            "github:acme/widgets#1: failed",
            "github:acme/widgets#2: failed: refused by a policy"
        ],
        "{ended:?}\n{}",
        world.story()
    );
    assert!(world.github.pulls().is_empty());
    let repository = world.github.default_repository();
    for (issue, title, branch, words) in [
        (
            scaffold,
            "Scaffold it",
            "coding-agent/1-scaffold-it",
            "does not have a commit checked out",
        ),
        (
            link,
            "Link it",
            "coding-agent/2-link-it",
            "`outside`: the link points to an absolute path",
        ),
    ] {
        assert_eq!(told_of_slips(&world, title).len(), 2, "{title}");
        let last = last_on_github(&world, &issue);
        assert_eq!(last.contains("bytes left out"), title == "Scaffold it", "{last}");
        assert!(last.contains("The last of it may be missing there"), "{last}");
        let said = issue.comments_of(world.github.bot()).join("\n");
        assert!(said.contains(words), "{said}");
        assert!(
            said.contains(&format!("The work so far is on the branch `{branch}`")),
            "{said}\n{}",
            world.story()
        );
        assert_eq!(repository.file(branch, "README.md").as_deref(), Some("Hello\n"));
        assert_eq!(repository.file(branch, "outside"), None);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_slip_is_told_as_well_where_nothing_is_checked() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({"verification": {"enabled": false}}));
    let script = executes(greeting(&world, "Scaffold it"), "git init -q app").done("Done.");
    executes(script, "rm -rf app").done("Done.");
    let issue = world.github.open_issue("Scaffold it").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(told_of_slips(&world, "Scaffold it").len(), 1);
    assert_eq!(world.github.pulls()[0].files(), ["README.md"]);
    world.finish().await;
}

#[tokio::test]
async fn the_locks_of_a_git_that_was_killed_do_not_stop_the_work() {
    let world = World::start().await;
    let script = executes(
        greeting(&world, "Greet the reader"),
        "git add -A && touch .git/index.lock .git/HEAD.lock",
    );
    script.done("The README greets its reader.");
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert!(told_of_slips(&world, "Greet the reader").is_empty());
    let pull = &world.github.pulls()[0];
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"));
    assert!(!pull.is_draft(), "{}", pull.text());
    world.finish().await;
}
