//! Plans that rest on the code index: what the planner is shown, the evidence it gives, and runs
//! that go on without an index.

mod meaning;
mod operations;
mod trouble;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::normalized::last_on_github;
use crate::world::scripts::{greets, plan};

const SESSIONS: &str = "import os\n\n\nclass Session:\n    def close_adapter(self):\n        \"\"\"Says hello and greets \
    whoever reads.\"\"\"\n        pass\n\n    def send(self):\n        self.close_adapter()\n";

fn greeting(world: &World) -> Item {
    world.github.open_issue("Close the adapter").label("coding agent")
}

/// A project that is too large to be shown as a whole, with hostile files in it.
fn grown(world: &World) -> String {
    let git = world.github.default_repository().git();
    let deep = "(".repeat(200_000);
    let wide = "x = [[[[[[[[\n".repeat(4_000);
    let many: Vec<(String, String)> = (0..30)
        .map(|number| {
            (
                format!("net/part_{number}.py"),
                format!("def part_{number}(x):\n    return x + {number}\n").repeat(20),
            )
        })
        .collect();
    let mut files: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.extend([
        ("net/sessions.py", SESSIONS),
        ("app.py", "from net.sessions import Session\n\nSession().send()\n"),
        (
            "docs/guide.md",
            "# 接続の再試行\n\n再試行の回数は設定で変えられます。\n",
        ),
        ("hostile/deep.py", deep.as_str()),
        ("hostile/wide.js", wide.as_str()),
        ("hostile/empty.rs", ""),
    ]);
    git.commit("main", "main", "Grow", &files)
}

fn citing(evidence: Value) -> Plan {
    plan().with("evidence", evidence)
}

#[tokio::test]
async fn a_plan_rests_on_places_that_the_program_has_looked_up() {
    let world = World::start().await;
    let base = grown(&world);
    let wrong = json!([
        {"path": "net/sessions.py", "lines": "5-7", "why": "`close_adapter` greets"},
        {"path": "net/nothing.py", "lines": "1-2", "why": "it is here"},
        {"path": "app.py", "lines": "2-90", "why": "it is here, too"},
    ]);
    let better = json!([
        {"path": "net/sessions.py", "lines": "5-7", "why": "`close_adapter` greets"},
        {"path": "app.py", "lines": "1", "why": "`Session` is closed here by `close_everything`"},
        {"path": "app.py", "lines": "1", "why": "`open_everything` is here"},
    ]);
    let script = world
        .model
        .script()
        .calls(
            "repository/search_code",
            json!({"query": "close the adapter", "top_k": 2}),
        )
        .calls("repository/outline", json!({"path": "net/sessions.py"}))
        .calls("repository/who_uses", json!({"name": "Session"}))
        .plans(citing(wrong))
        .plans(citing(better));
    greets(script.calls("repository/search_code", json!({"query": "再試行"})));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let first = requests[0].first_user_message();
    assert!(
        first.contains("The places that fit the words of the task best"),
        "{first}"
    );
    assert!(
        first.contains("net/sessions.py:5-7 method Session.close_adapter"),
        "{first}"
    );
    let said = |place: usize| requests[place].last_user_message();
    assert!(
        said(1).contains("net/sessions.py:5-7 method Session.close_adapter"),
        "{}",
        said(1)
    );
    assert!(
        said(2).contains("4-4 class Session\\n5-7 method Session.close_adapter\\n9-10 method Session.send"),
        "{}",
        said(2)
    );
    assert!(
        said(3).contains("defined: net/sessions.py:4-4 class Session"),
        "{}",
        said(3)
    );
    assert!(said(3).contains("app.py:3: Session().send()"), "{}", said(3));
    // What does not hold is asked for again, once.
    assert!(
        said(4).contains("net/nothing.py:1-2: there is no such file"),
        "{}",
        said(4)
    );
    assert!(said(4).contains("app.py:2-90: the file has 3 lines"), "{}", said(4));
    // The work begins with what the plan rests on, and can search, too.
    let work = requests[5].first_user_message();
    assert!(work.contains("net/sessions.py:5-7 (`close_adapter` greets):"), "{work}");
    assert!(work.contains("    def close_adapter(self):"), "{work}");
    assert!(!work.contains("open_everything"), "{work}");
    assert!(
        said(6).contains("docs/guide.md:1-3 section 接続の再試行"),
        "{}",
        said(6)
    );
    // People see links to the commit, and what was not found.
    let told = last_on_github(&world, &issue);
    let all: String = issue.comments_of(world.github.bot()).concat();
    assert!(all.contains(&format!("/blob/{base}/net/sessions.py#L5-L7")), "{all}");
    assert!(all.contains("not found: `app.py:1`"), "{all}");
    assert!(!told.is_empty());
    world.finish().await;
}

#[tokio::test]
async fn of_a_secret_where_the_line_of_a_place_is_cut_nothing_reaches_the_model() {
    let world = World::start().await;
    grown(&world);
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let source = format!(
        "def open_vault(pool):\n    # {}{token}\n    pool.open()\n",
        "word ".repeat(28)
    );
    let git = world.github.default_repository().git();
    git.commit("main", "main", "Add", &[("net/vault.py", source.as_str())]);
    let script = world
        .model
        .script()
        .calls("repository/search_code", json!({"query": "`open_vault`", "top_k": 1}))
        .calls("repository/search", json!({"pattern": "word"}))
        .plans(plan());
    greets(script);
    world
        .github
        .open_issue("Open the vault of the pool")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let shown = [
        requests[0].first_user_message(),
        requests[1].last_user_message(),
        requests[2].last_user_message(),
    ];
    for shown in shown {
        assert!(shown.contains("net/vault.py:"), "{shown}");
        assert!(shown.contains("word [redacted") && !shown.contains("ghp_"), "{shown}");
    }
    world.finish().await;
}

#[tokio::test]
async fn planning_begins_with_a_map_of_what_most_files_use() {
    let world = World::start().await;
    let using = |number: usize| {
        let limits = if number < 3 { "    return Limits()\n" } else { "" };
        let body = "    tick()\n".repeat(60);
        (
            format!("net/part_{number}.py"),
            format!("from clock import now\n\n\ndef part_{number}():\n    now()\n{body}{limits}"),
        )
    };
    let many: Vec<(String, String)> = (0..30).map(using).collect();
    let mut files: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.extend([
        ("clock.py", "def now():\n    return 0\n\n\ndef never():\n    return 1\n"),
        ("limits.py", "class Limits:\n    pass\n"),
        // What is defined in many places says nothing of where to look.
        ("a/tick.py", "def tick():\n    pass\n"),
        ("b/tick.py", "def tick():\n    pass\n"),
        ("c/tick.py", "def tick():\n    pass\n"),
    ]);
    let git = world.github.default_repository().git();
    git.commit("main", "main", "Grow", &files);
    greets(world.model.script().plans(plan()));
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let first = requests[0].first_user_message();
    let map = first.split("What most files of the project use:\n").nth(1);
    let map: Vec<&str> = map.unwrap_or_default().lines().take(4).collect();
    assert_eq!(
        map[1..3],
        [
            "clock.py:1-2 function now (30 files)",
            "limits.py:1-2 class Limits (3 files)"
        ],
        "{first}"
    );
    assert_eq!(
        map[3],
        map[0].replace('<', "</"),
        "the map is data, and nothing more stands in it: {first}"
    );
    let work = requests[1].first_user_message();
    assert!(!work.contains("What most files"), "{work}");
    world.finish().await;
}

#[tokio::test]
async fn japanese_issues_and_comments_find_japanese_places() {
    let world = World::start().await;
    grown(&world);
    let wrong = json!([{"path": "docs/guide.md", "lines": "3", "why": "`認証の失敗` の説明"}]);
    let right = json!([{"path": "docs/guide.md", "lines": "1-3", "why": "`再試行の回数` の説明"}]);
    greets(world.model.script().plans(citing(wrong)).plans(citing(right)));
    let issue = world
        .github
        .open_issue("接続の再試行の回数を増やす")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    let first = requests[0].first_user_message();
    assert!(first.contains("docs/guide.md:1-3 section 接続の再試行"), "{first}");
    // Words without spaces between them are looked up in the cited lines, too.
    let doubted = requests[1].last_user_message();
    assert!(doubted.contains("`認証の失敗` does not stand there"), "{doubted}");
    let work = requests[2].first_user_message();
    assert!(work.contains("docs/guide.md:1-3 (`再試行の回数` の説明):"), "{work}");
    let told: String = issue.comments_of(world.github.bot()).concat();
    assert!(told.contains("docs/guide.md#L1-L3"), "{told}");
    // What people said below an item is searched for like the item itself.
    greets(world.model.script().plans(plan()));
    let issue = world.github.open_issue("設定を見直す");
    issue.comment("alice", "接続の再試行の回数は三回にしてください。");
    issue.label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let first = world.model.requests()[requests.len()].first_user_message();
    assert!(first.contains("docs/guide.md:1-3 section 接続の再試行"), "{first}");
    world.finish().await;
}

#[tokio::test]
async fn where_it_is_off_nothing_of_it_is_offered() {
    let mut world = World::start().await;
    world.configure(|config| config["index"] = json!({"enabled": false}));
    grown(&world);
    greets(world.model.script().plans(plan()));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    for request in world.model.requests() {
        for word in ["search_code", "who_uses", "The places that fit"] {
            assert!(!request.text().contains(word), "{word}: {}", request.text());
        }
    }
    assert!(indexes(&world).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_lost_or_damaged_index_is_made_anew_and_one_that_cannot_be_used_is_done_without() {
    let world = World::start().await;
    grown(&world);
    for harm in [
        (|_| {}) as fn(&PathBuf),
        |file| std::fs::remove_file(file).unwrap(),
        |file| std::fs::write(file, "no database ".repeat(1_000)).unwrap(),
    ] {
        indexes(&world).iter().for_each(harm);
        greets(world.model.script().plans(plan()));
        let issue = greeting(&world);
        assert_eq!(world.run().await.code, Some(0), "{}", world.story());
        let first = world.model.requests().iter().rev().nth(2).unwrap().first_user_message();
        assert!(first.contains("net/sessions.py:5-7"), "{first}");
        assert!(
            !last_on_github(&world, &issue).contains("code index"),
            "{}",
            world.story()
        );
    }
    let files = indexes(&world);
    assert_eq!(files.len(), 1, "{files:?}");
    for file in &files {
        std::fs::remove_file(file).unwrap();
        std::fs::create_dir(file).unwrap();
    }
    greets(world.model.script().plans(plan()));
    let issue = greeting(&world);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let told = last_on_github(&world, &issue);
    assert!(told.contains("The code index was not used"), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn a_folder_is_searched_as_it_lies_there() {
    let world = World::start().await;
    let folder = world.folder().join("project");
    std::fs::create_dir_all(folder.join("net")).unwrap();
    std::fs::write(folder.join("net/sessions.py"), SESSIONS).unwrap();
    let root = folder.to_str().unwrap();
    let ended = world
        .command(&[
            "search",
            "closing the adapter",
            "--root",
            root,
            "--json",
            "--top-k",
            "1",
        ])
        .await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    let chunk = &found["chunks"][0];
    assert_eq!(
        [&chunk["path"], &chunk["span"], &chunk["name"], &chunk["kind"]],
        ["net/sessions.py", "L5-L7", "Session.close_adapter", "method"]
    );
    assert!(chunk["text"].as_str().unwrap().contains("def close_adapter") && chunk["score"].is_number());

    std::fs::write(folder.join("new.py"), "def brand_new_thing():\n    pass\n").unwrap();
    let ended = world.command(&["search", "brand_new_thing", "--root", root]).await;
    assert!(
        ended.stdout.contains("new.py:1-2 function brand_new_thing"),
        "{ended:?}"
    );
    let ended = world
        .command(&["search", "adapter", "--root", root, "--path-prefix", "new"])
        .await;
    assert!(!ended.stdout.contains("sessions"), "{ended:?}");
    let ended = world.command(&["index", "--root", root]).await;
    assert!(ended.stdout.contains("2 files"), "{ended:?}");
    let ended = world.command(&["index", "install-hook", "--root", root]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("is not the top of a git repository"), "{ended:?}");
    let made = std::process::Command::new("git")
        .args(["init", "-q", root])
        .status()
        .unwrap();
    assert!(made.success());
    let ended = world.command(&["index", "install-hook", "--root", root]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = world.command(&["index", "status", "--root", root, "--json"]).await;
    let status: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&status["hook"], &status["changed"]),
        (&json!(true), &json!(false)),
        "{ended:?}"
    );
    // A commit marks it, and the next search brings it up to date.
    for arguments in [&["add", "-A"][..], &["commit", "-q", "-m", "work"]] {
        let who = ["-C", root, "-c", "user.name=a", "-c", "user.email=a@b"];
        let done = std::process::Command::new("git").args(who).args(arguments).status();
        assert!(done.unwrap().success());
    }
    assert_eq!(changed(&world, root).await, Some(true));
    let ended = world.command(&["search", "brand_new_thing", "--root", root]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(changed(&world, root).await, Some(false));
    let ended = world.command(&["search", "x", "--root", "/no/such/folder"]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("name an existing folder with --root"),
        "{ended:?}"
    );
    world.finish().await;
}

/// Returns whether the hook says that something was committed since; `None` if the status does not tell.
async fn changed(world: &World, root: &str) -> Option<bool> {
    let ended = world.command(&["index", "status", "--root", root, "--json"]).await;
    serde_json::from_str::<Value>(&ended.stdout).unwrap()["changed"].as_bool()
}

/// Returns the files of all indexes.
fn indexes(world: &World) -> Vec<PathBuf> {
    fn find(folder: &std::path::Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("code-index-") && name.ends_with(".sqlite") {
                found.push(path);
            } else if path.is_dir() {
                find(&path, found);
            }
        }
    }
    let mut found = Vec::new();
    find(&world.state_dir().join("mirrors"), &mut found);
    found
}
