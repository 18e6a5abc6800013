//! The index of real repositories, made with real git.

mod kept; // what the file holds, and what becomes of it

use std::process::Command;

use tempfile::TempDir;

use super::{Config, Filled, Hit, Index, IndexError, Ingest, Wanted};
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::secret::Redactor;

struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(world.project()).unwrap();
        world.git(&["init", "-q", "-b", "main"]);
        world
    }

    fn project(&self) -> std::path::PathBuf {
        self.folder.path().join("project")
    }

    fn git(&self, arguments: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let done = Command::new("git")
            .arg("-C")
            .arg(self.project())
            .args(who)
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "work"]);
    }

    /// Takes the folder with what is not committed.
    async fn snapshot(&self) -> (Mirror, CommitId) {
        let config = crate::repository::Config::default();
        let state = self.folder.path().join("state");
        Mirror::snapshot(&config, &state, "one", &self.project()).await.unwrap()
    }

    async fn open(&self) -> (Index, CommitId) {
        let (mirror, commit) = self.snapshot().await;
        (Index::open(&Config::default(), &mirror).await.unwrap(), commit)
    }
}

async fn search(index: &Index, commit: &CommitId, question: &str) -> Vec<Hit> {
    let redactor = Redactor::default();
    let wanted = Wanted {
        question,
        top_k: 5,
        path_prefix: "",
        takes: &|_| true,
        redactor: &redactor,
    };
    index.search(commit, &wanted).await.unwrap()
}

fn best(hits: &[Hit]) -> (&str, &str) {
    hits.first()
        .map_or(("", ""), |hit| (hit.path.as_str(), hit.name.as_str()))
}

const SESSIONS: &str = "class Session:\n    def close_adapter(self):\n        \"\"\"Closes the pooled connections.\"\"\"\n        pass\n\n    def send(self):\n        self.close_adapter()\n";

#[tokio::test]
async fn places_are_found_by_words_parts_of_names_and_mentions() {
    let world = World::new();
    world.write("net/sessions.py", SESSIONS);
    world.write("net/models.py", "def prepare_body(data):\n    return data\n");
    world.write("docs/guide.md", "# 認証の設定\n\n再試行の回数は設定で変えられます。\n");
    world.commit();
    let (index, commit) = world.open().await;
    let hits = search(&index, &commit, "closing a connection").await;
    assert_eq!(best(&hits), ("net/sessions.py", "Session.close_adapter"));
    assert_eq!((hits[0].span.as_str(), hits[0].kind.as_str()), ("L2-L4", "method"));
    assert!(
        hits[0].text.starts_with("    def close_adapter(self):"),
        "{}",
        hits[0].text
    );
    assert_eq!(
        best(&search(&index, &commit, "`prepare_body` fails").await),
        ("net/models.py", "prepare_body")
    );
    assert_eq!(
        best(&search(&index, &commit, "see net/models.py").await).0,
        "net/models.py"
    );
    assert_eq!(
        best(&search(&index, &commit, "認証が失敗する").await).0,
        "docs/guide.md"
    );
    assert_eq!(
        best(&search(&index, &commit, "再試行の回数を増やしたい").await).0,
        "docs/guide.md"
    );
    assert_eq!(search(&index, &commit, "\" OR * NEAR( ) -").await, []);
}

#[tokio::test]
async fn a_rename_and_a_second_commit_read_nothing_again() {
    let world = World::new();
    world.write("net/sessions.py", SESSIONS);
    world.write("a.py", "def one():\n    pass\n");
    world.commit();
    let (index, first) = world.open().await;
    let filled = |files, read| Filled {
        files,
        read,
        is_cut: false,
    };
    assert_eq!(index.fill(&first).await.unwrap(), filled(2, 2));
    assert_eq!(index.fill(&first).await.unwrap(), filled(2, 0));
    world.git(&["mv", "net/sessions.py", "connections.py"]);
    world.commit();
    let (_, second) = world.snapshot().await;
    assert_eq!(index.fill(&second).await.unwrap(), filled(2, 0));
    assert_eq!(
        best(&search(&index, &second, "pooled connections").await).0,
        "connections.py"
    );
    assert_eq!(
        best(&search(&index, &first, "pooled connections").await).0,
        "net/sessions.py"
    );
}

#[tokio::test]
async fn what_is_not_committed_is_found_and_what_is_deleted_is_not() {
    let world = World::new();
    world.write("old.py", "def obsolete_thing():\n    pass\n");
    world.commit();
    world.write("new.py", "def uncommitted_thing():\n    pass\n");
    std::fs::remove_file(world.project().join("old.py")).unwrap();
    let (index, commit) = world.open().await;
    let hits = search(&index, &commit, "thing").await;
    assert_eq!(hits.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["new.py"]);
}

#[tokio::test]
async fn what_is_left_out_is_in_no_answer_and_an_index_that_is_made_anew_knows_it() {
    let world = World::new();
    world.write("net/sessions.py", SESSIONS);
    world.write("vendor/copy.py", &format!("{SESSIONS}# A copy.\n"));
    world.write("app.py", "from net.sessions import Session\n\nSession().send()\n");
    world.commit();
    let (index, commit) = world.open().await;
    let filled = index.fill(&commit).await.unwrap();
    let pruned = index.prune(&commit, &["vendor".to_owned()]).await.unwrap();
    assert_eq!((pruned.paths, pruned.files), (vec!["vendor".to_owned()], 1));
    Index::discard(index.mirror());
    let (index, _) = world.open().await;
    let found = search(&index, &commit, "closing a connection").await;
    assert!(found.iter().all(|hit| hit.path != "vendor/copy.py"), "{found:?}");
    let definitions = index.definitions(&commit, "close_adapter").await.unwrap();
    assert_eq!(definitions.len(), 1, "{definitions:?}");
    let asked = Ingest {
        paths: vec!["vendor/copy.py".to_owned(), "nothing.py".to_owned()],
        diff: None,
    };
    let ingested = index.ingest(&commit, filled, &asked).await.unwrap();
    assert_eq!(ingested.gone, ["nothing.py"]);
    assert_eq!(
        (
            ingested.files[0].path.as_str(),
            ingested.files[0].places,
            ingested.parsed
        ),
        ("vendor/copy.py", 4, 3)
    );
    assert_eq!(index.definitions(&commit, "close_adapter").await.unwrap().len(), 2);
}

#[tokio::test]
async fn outlines_definitions_and_uses_are_those_of_the_commit() {
    let world = World::new();
    world.write("net/sessions.py", SESSIONS);
    world.write(
        "app.py",
        "from net.sessions import Session\n\ndef main():\n    Session().send()\n",
    );
    world.write(
        "tests/test_app.py",
        "from app import main\n\ndef test_main():\n    main()\n",
    );
    world.commit();
    let (index, commit) = world.open().await;
    let outline = index.outline(&commit, "net/sessions.py").await.unwrap().unwrap();
    let names: Vec<_> = outline
        .iter()
        .map(|found| (found.name.as_str(), found.first, found.last))
        .collect();
    assert_eq!(
        names,
        [
            ("Session", 1, 1),
            ("Session.close_adapter", 2, 4),
            ("Session.send", 6, 7)
        ]
    );
    assert_eq!(index.outline(&commit, "nothing.py").await.unwrap(), None);
    let redactor = Redactor::default();
    let uses = index.uses(&commit, "Session", &|_| true, &redactor).await.unwrap();
    let lines: Vec<_> = uses.iter().map(|used| (used.path.as_str(), used.line)).collect();
    assert_eq!(lines, [("app.py", 1), ("app.py", 4)]);
    let found = index.definitions(&commit, "adapter").await.unwrap();
    assert_eq!(
        found.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(),
        ["Session.close_adapter"]
    );
    let most = index.most_referred(&commit, 5).await.unwrap();
    assert!(
        most.iter()
            .all(|(found, files)| !found.path.starts_with("tests/") && *files > 1),
        "{most:?}"
    );
}

#[tokio::test]
async fn of_a_secret_where_a_text_is_cut_nothing_is_shown() {
    let world = World::new();
    let parts = (0..58).fold(String::new(), |parts, number| {
        parts + &format!("    part_{number} = {number}\n")
    });
    let broken = "    value = \"correct-horse-\" \\\n        \"battery-staple\"\n    return value\n";
    world.write("vault.py", &format!("def pooled_words():\n{parts}{broken}"));
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let line = format!("value = pooled_words()  # {}{token}", "word ".repeat(33));
    world.write("app.py", &format!("from vault import pooled_words\n\n{line}\n"));
    world.commit();
    let (index, commit) = world.open().await;
    let redactor = Redactor::new(&["correct-horse-battery-staple".into()]);
    let wanted = Wanted {
        question: "`pooled_words`",
        top_k: 1,
        path_prefix: "vault",
        takes: &|_| true,
        redactor: &redactor,
    };
    let hits = index.search(&commit, &wanted).await.unwrap();
    let end = "    value = \"[redacted]\n[2 more lines]\n";
    assert!(hits[0].text.ends_with(end), "{}", hits[0].text);
    let uses = index.uses(&commit, "pooled_words", &|_| true, &redactor).await.unwrap();
    let last = uses.last().unwrap();
    assert_eq!(last.line, 3);
    assert!(last.text.ends_with("word [redacted"), "{}", last.text);
}

#[tokio::test]
async fn lines_from_the_middle_of_a_key_are_not_shown() {
    let world = World::new();
    let frame = |word: &str| format!("-----{word} {}-----\n", "PRIVATE KEY");
    let line = "x0".repeat(32) + "\n";
    let middle = format!("MeadowLarkWhistle{}\n", "x".repeat(47));
    let key = [frame("BEGIN"), line.repeat(60), middle, line.repeat(60), frame("END")].concat();
    world.write("notes.txt", &key);
    world.commit();
    let (index, commit) = world.open().await;
    let hits = search(&index, &commit, "meadow lark whistle").await;
    let text = &hits[0].text;
    assert!(text.contains("[redacted:private-key]"), "{text}");
    assert!(!text.contains("Meadow") && !text.contains("x0x0"), "{text}");
}

#[tokio::test]
async fn a_damaged_or_lost_file_is_made_anew() {
    let world = World::new();
    world.write("a.py", "def one_thing():\n    pass\n");
    world.commit();
    let (index, commit) = world.open().await;
    index.fill(&commit).await.unwrap();
    index.close().await;
    let (mirror, _) = world.snapshot().await;
    let file = Index::file(&mirror);
    std::fs::write(
        &file,
        b"this is no database, and long enough to be read as the head of one".repeat(100),
    )
    .unwrap();
    let index = Index::open(&Config::default(), &mirror).await.unwrap();
    assert_eq!(best(&search(&index, &commit, "one thing").await).0, "a.py");
    index.close().await;
    Index::discard(&mirror);
    assert!(!file.exists());
    let index = Index::open(&Config::default(), &mirror).await.unwrap();
    assert_eq!(best(&search(&index, &commit, "one thing").await).0, "a.py");
}

#[tokio::test]
async fn another_form_of_the_tables_is_a_file_of_its_own_and_earlier_ones_go() {
    let world = World::new();
    world.write("a.py", "def one_thing():\n    pass\n");
    world.commit();
    let (mirror, commit) = world.snapshot().await;
    let beside = |name: &str| mirror.path().join(name);
    let later = beside("code-index-999.sqlite");
    for name in [
        "code-index-0.sqlite",
        "code-index-0.sqlite-wal",
        "code-index-999.sqlite",
    ] {
        std::fs::write(beside(name), "of another program").unwrap();
    }
    let index = Index::open(&Config::default(), &mirror).await.unwrap();
    assert_eq!(best(&search(&index, &commit, "one thing").await).0, "a.py");
    assert!(!beside("code-index-0.sqlite").exists() && !beside("code-index-0.sqlite-wal").exists());
    // A later program may work beside this one.
    assert_eq!(std::fs::read_to_string(later).unwrap(), "of another program");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_said_with_its_path() {
    let world = World::new();
    world.write("a.py", "x = 1\n");
    world.commit();
    let (mirror, _) = world.snapshot().await;
    std::fs::create_dir(Index::file(&mirror)).unwrap();
    let error = Index::open(&Config::default(), &mirror).await.unwrap_err();
    assert!(
        matches!(error, IndexError::Unusable { .. } | IndexError::Damaged { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("code-index-"), "{error}");
}

#[tokio::test]
async fn several_processes_fill_it_at_once() {
    let world = World::new();
    for number in 0..200 {
        world.write(
            &format!("src/f{number}.py"),
            &format!("def thing_{number}():\n    return {number}\n"),
        );
    }
    world.commit();
    let (mirror, commit) = world.snapshot().await;
    let open = || async { Index::open(&Config::default(), &mirror).await.unwrap() };
    let (one, other, third) = tokio::join!(open(), open(), open());
    let (a, b, c) = tokio::join!(one.fill(&commit), other.fill(&commit), third.fill(&commit));
    assert_eq!([a.unwrap().files, b.unwrap().files, c.unwrap().files], [200; 3]);
    assert_eq!(best(&search(&one, &commit, "thing_117").await).0, "src/f117.py");
    let places = sqlx::query_scalar::<_, i64>("SELECT sum(count) FROM blob")
        .fetch_one(one.pool())
        .await
        .unwrap();
    assert_eq!(places, 200);
}

#[tokio::test]
async fn commits_that_were_not_used_for_long_are_forgotten_with_what_only_they_had() {
    let world = World::new();
    let mut commits = Vec::new();
    world.write("kept.py", "def kept():\n    pass\n");
    for number in 0..12 {
        world.write("a.py", &format!("def thing_{number}():\n    pass\n"));
        world.commit();
        commits.push(world.open().await);
        let (index, commit) = commits.last().unwrap();
        index.fill(commit).await.unwrap();
    }
    let (index, commit) = commits.last().unwrap();
    let blobs = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM blob")
        .fetch_one(index.pool())
        .await
        .unwrap();
    assert_eq!(blobs, 9);
    assert_eq!(best(&search(index, commit, "thing_11").await).0, "a.py");
    assert_eq!(
        search(index, commit, "thing_2 only")
            .await
            .iter()
            .filter(|hit| hit.text.contains("thing_2"))
            .count(),
        0
    );
}
