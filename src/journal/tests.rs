//! The file, the store and subscribers get the same.

use super::*;
use crate::task::id::RunId;
use std::path::Path;

fn config(directory: &Path) -> LogConfig {
    LogConfig {
        directory: directory.to_owned(),
        ..LogConfig::default()
    }
}

fn subject() -> Subject {
    Subject {
        task: "github:owner/repo#12".parse().ok(),
        run: Some(RunId::new()),
    }
}

fn warned(text: impl Into<String>) -> Fact {
    Fact::Warned { text: text.into() }
}

fn entries(folder: &Path) -> Vec<Entry> {
    let mut all = Vec::new();
    let read = reading::Reader::new(folder).look(|entry| all.push(entry));
    read.unwrap();
    all
}

async fn store(folder: &Path) -> Store {
    Store::open(folder).await.unwrap()
}

async fn numbered(store: &Store) -> Vec<Entry> {
    let facts = store.facts(0, &FactFilter::All, 100).await.unwrap();
    facts
        .iter()
        .map(|fact| serde_json::from_str(&fact.document).unwrap())
        .collect()
}

#[tokio::test]
async fn what_is_recorded_is_in_the_file_and_in_the_store_in_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
    let subject = subject();
    let title = "Greet".to_owned();
    journal.record(&subject, Fact::Admitted { title });
    let store = store(folder.path()).await;
    journal.keep_in(&store);
    let ending = "done".to_owned();
    journal.record(&subject, Fact::PutDown { ending });
    journal.record(&Subject::default(), Fact::WorkerStopped);
    journal.close().await;

    let written = entries(folder.path());
    assert_eq!(written.len(), 3);
    assert_eq!(written, numbered(&store).await);
}

#[tokio::test]
async fn a_subscriber_goes_on_behind_a_number_and_hears_of_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path()).await;
    let [journal, other] = ["one", "other"].map(|name| {
        let journal = Journal::open(&config(&folder.path().join(name)), Arc::default()).unwrap();
        journal.keep_in(&store);
        journal
    });
    let (subject, stranger) = (subject(), subject());
    let of_run = FactFilter::OfRun(subject.run.unwrap());
    let mut facts = journal.subscribe(&store, of_run.clone(), 0);
    journal.record(&stranger, warned("not of this run"));
    journal.record(&subject, warned("first"));
    let first = facts.next().await;
    assert_eq!(first.entry.fact, warned("first"));
    journal.record(&subject, warned("second"));
    assert_eq!(facts.next().await.entry.fact, warned("second"));
    other.record(&subject, warned("third"));
    assert_eq!(facts.next().await.entry.fact, warned("third"));

    let mut again = journal.subscribe(&store, of_run, first.sequence);
    let rest: Vec<_> = again.take().await.into_iter().map(|fact| fact.entry.fact).collect();
    assert_eq!(rest, [warned("second"), warned("third")]);
}

#[tokio::test]
async fn facts_wait_for_a_store_that_cannot_be_written_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = (store(folder.path()).await, folder.path().join("coding-agent.db"));
    let tamper = async |statement: &str| {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        sqlx::query(sqlx::AssertSqlSafe(statement.to_owned()))
            .execute(&pool)
            .await
            .unwrap();
        pool.close().await;
    };
    tamper("CREATE TRIGGER full BEFORE INSERT ON facts BEGIN SELECT RAISE(FAIL, 'the disk is full'); END").await;
    let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
    journal.keep_in(&store);
    for number in 0..2 * WAITING_FACTS {
        journal.record(&Subject::default(), warned(number.to_string()));
    }
    tamper("DROP TRIGGER full").await;
    let mut facts = journal.subscribe(&store, FactFilter::All, 0);
    assert_eq!(facts.next().await.entry.fact, warned("0"));
    journal.close().await;
    let kept = store.facts(0, &FactFilter::All, u32::MAX).await.unwrap();
    let missing = kept
        .iter()
        .filter(|fact| fact.document.contains("the store did not keep up"));
    assert_eq!(missing.count(), 1);
    assert!(kept.len() < 2 * WAITING_FACTS, "nothing was left out");
}

#[tokio::test]
async fn no_secret_reaches_the_file_or_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let redactor = Redactor::new(&["nope\nnope".into()]);
    let journal = Journal::open(&config(folder.path()), Arc::new(redactor)).unwrap();
    let store = store(folder.path()).await;
    journal.keep_in(&store);
    journal.record(&subject(), warned("it said nope\nnope"));
    journal.close().await;

    for entries in [entries(folder.path()), numbered(&store).await] {
        assert_eq!(entries[0].fact, warned("it said [redacted]"));
    }
}

#[tokio::test]
async fn several_processes_write_whole_lines_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Journal::open(&config(folder.path()), Arc::default()).unwrap();
    let journals = [open(), open()];
    for number in 0..500 {
        for journal in &journals {
            journal.record(&Subject::default(), warned(format!("{number} {}", "x".repeat(1_000))));
        }
    }
    for journal in &journals {
        journal.close().await;
    }
    assert_eq!(entries(folder.path()).len(), 1_000);
}

#[tokio::test]
async fn a_line_cut_short_by_a_crash_costs_no_other_line() {
    let folder = tempfile::tempdir().unwrap();
    let today = folder.path().join(format!("journal-{}.jsonl", Utc::now().date_naive()));
    std::fs::write(&today, r#"{"at":"2026-01-0"#).unwrap();
    let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
    journal.record(&Subject::default(), Fact::WorkerStarted);
    journal.close().await;
    let facts: Vec<Fact> = entries(folder.path()).into_iter().map(|entry| entry.fact).collect();
    assert_eq!(facts, [Fact::WorkerStarted]);
}

#[tokio::test]
async fn recording_after_the_close_is_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
    journal.close().await;
    journal.record(&Subject::default(), Fact::WorkerStopped);
    journal.close().await;
    assert_eq!(entries(folder.path()).len(), 0);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Journal::open(&config(&file.path().join("logs")), Arc::default()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("logs cannot be used") && text.contains("set logs.directory"),
        "{text}"
    );
}
