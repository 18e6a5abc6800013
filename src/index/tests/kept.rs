//! The file of an index: damaged bytes, the contents of other commits, its size.

use std::fmt::Write as _;

use super::{SESSIONS, World, best, search};
use crate::index::{Index, IndexError, Wanted};
use crate::repository::mirror::Mirror;
use crate::secret::Redactor;

#[tokio::test]
async fn bytes_that_cannot_be_read_are_said_once_and_the_next_to_open_it_makes_it_anew() {
    let world = World::new();
    world.write("a.py", "def one_thing():\n    pass\n");
    world.commit();
    for harm in [
        "UPDATE block SET data = x'09'",
        "UPDATE blob SET places = x'01'",
        "UPDATE snapshot SET files = x'09'",
    ] {
        let (index, commit) = world.open().await;
        index.fill(&commit).await.unwrap();
        sqlx::query(harm).execute(index.pool()).await.unwrap();
        let redactor = Redactor::default();
        let wanted = Wanted {
            question: "one thing",
            top_k: 5,
            path_prefix: "",
            takes: &|_| true,
            redactor: &redactor,
        };
        let error = index.search(&commit, &wanted).await.unwrap_err();
        assert!(matches!(error, IndexError::Damaged { .. }), "{harm}: {error:?}");
        index.close().await;
        let (index, _) = world.open().await;
        assert_eq!(best(&search(&index, &commit, "one thing").await).0, "a.py", "{harm}");
        index.close().await;
    }
}

#[tokio::test]
async fn an_answer_does_not_depend_on_what_was_read_for_other_commits() {
    let world = World::new();
    world.write("net/sessions.py", SESSIONS);
    world.write("net/models.py", "def prepare_body(data):\n    return data\n");
    world.commit();
    let (index, first) = world.open().await;
    let question = "closing pooled connections, `prepare_body`";
    let alone = search(&index, &first, question).await;
    index.close().await;
    for number in 0..20 {
        world.write(
            &format!("pool/part_{number}.py"),
            &format!("def pooled_connection_{number}():\n    return 'pooled connections are closed {number}'\n"),
        );
    }
    world.commit();
    let (index, second) = world.open().await;
    index.fill(&second).await.unwrap();
    assert_eq!(search(&index, &first, question).await, alone);
    assert_ne!(search(&index, &second, question).await, alone);
}

#[tokio::test]
async fn the_commits_that_were_used_last_are_kept_also_where_the_clock_was_set_back() {
    let world = World::new();
    let change = |number: usize| {
        world.write("a.py", &format!("def one_thing():\n    return {number}\n"));
        world.commit();
    };
    change(0);
    let (index, first) = world.open().await;
    index.fill(&first).await.unwrap();
    let mut commits = vec![first];
    for number in 1..8 {
        change(number);
        let (_, commit) = world.snapshot().await;
        index.fill(&commit).await.unwrap();
        commits.push(commit);
    }
    let later = "UPDATE snapshot SET used = used + 3600000000";
    sqlx::query(later).execute(index.pool()).await.unwrap();

    for number in [8, 9] {
        change(number);
        let (_, commit) = world.snapshot().await;
        assert_eq!(best(&search(&index, &commit, "one thing").await).0, "a.py");
        // It would be the next to be forgotten, and is used again.
        let filled = index.fill(&commits[1]).await.unwrap();
        assert_eq!((filled.files, filled.read), (1, 0), "{number}");
    }
}

#[tokio::test]
async fn an_index_is_smaller_than_half_of_its_text_and_shrinks_with_what_is_forgotten() {
    let world = World::new();
    let words = [
        "adapter", "session", "request", "header", "cookie", "retry", "proxy", "stream",
    ];
    for number in 0..150 {
        let mut text = String::new();
        for line in 0..60_usize {
            let (one, other) = (words[(number + line) % 8], words[(number * line) % 8]);
            let _ = write!(
                text,
                "def {one}_{number}_{line}(value, {other}):\n    result = {other}.prepare(value, timeout=timeout)\n    return result\n\n"
            );
        }
        world.write(&format!("src/part_{number}.py"), &text);
    }
    world.commit();
    let (index, commit) = world.open().await;
    index.fill(&commit).await.unwrap();
    let text = index.counts(&commit).await.unwrap().bytes;
    index.close().await;
    let size = |mirror: &Mirror| std::fs::metadata(Index::file(mirror)).unwrap().len();
    let (mirror, _) = world.snapshot().await;
    let full = size(&mirror);
    assert!(full * 2 < text, "{full} bytes for {text}");
    // Eight commits without these files, and nothing of them is left.
    std::fs::remove_dir_all(world.project().join("src")).unwrap();
    for number in 0..9 {
        world.write("a.py", &format!("def one_thing():\n    return {number}\n"));
        world.commit();
        let (index, commit) = world.open().await;
        index.fill(&commit).await.unwrap();
        assert_eq!(best(&search(&index, &commit, "one thing").await).0, "a.py");
        index.close().await;
    }
    let left = size(&mirror);
    assert!(left * 2 < full, "{left} bytes of {full}");
}
