//! Connections that are lost, and sessions that are not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{Schema, is_there, server};
use crate::conversation::Message;
use crate::store::config::Server;
use crate::store::postgres::open::{link, open_over};
use crate::store::postgres::patience::LONGEST;
use crate::store::tests::{Place as _, TTL, admit, claim};
use crate::store::{Store, StoreError};
use crate::task::state::State;

/// A way to the server that can be cut: what is under way is lost, and nothing new gets through.
struct Way {
    port: u16,
    is_open: watch::Sender<bool>,
    cuts_at_commit: Arc<AtomicBool>,
}

impl Way {
    /// Leads to the server's socket in this folder.
    async fn to(folder: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_open = watch::Sender::new(true);
        let cuts_at_commit = Arc::<AtomicBool>::default();
        let socket = format!("{folder}/.s.PGSQL.5432");
        let (opening, cutting) = (is_open.clone(), Arc::clone(&cuts_at_commit));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (opening, cutting) = (opening.clone(), Arc::clone(&cutting));
                let socket = socket.clone();
                tokio::spawn(async move {
                    if *opening.borrow() {
                        let _ = Self::pass(client, &socket, &opening, &cutting).await;
                    }
                });
            }
        });
        Self {
            port,
            is_open,
            cuts_at_commit,
        }
    }

    async fn pass(
        mut client: TcpStream,
        socket: &str,
        is_open: &watch::Sender<bool>,
        cuts_at_commit: &AtomicBool,
    ) -> std::io::Result<()> {
        let mut server = UnixStream::connect(socket).await?;
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let is_committing = AtomicBool::new(false);
        let mut opened = is_open.subscribe();
        let upwards = carry(from_client, to_server, |bytes| {
            let commits = bytes.windows(6).any(|word| word == b"COMMIT");
            if commits && cuts_at_commit.swap(false, Ordering::SeqCst) {
                is_committing.store(true, Ordering::SeqCst);
            }
            true
        });
        let downwards = carry(from_server, to_client, |_| {
            // The server's answer shows that it has committed, and gets no further.
            let is_answer = is_committing.load(Ordering::SeqCst);
            if is_answer {
                is_open.send_replace(false);
            }
            !is_answer
        });
        tokio::select! {
            passed = upwards => passed,
            passed = downwards => passed,
            _ = opened.wait_for(|is_open| !is_open) => Ok(()),
        }
    }

    fn cut(&self) {
        self.is_open.send_replace(false);
    }

    /// Has the next transaction committed, and the way cut before anybody is told so.
    fn cut_at_commit(&self) {
        self.cuts_at_commit.store(true, Ordering::SeqCst);
    }

    async fn is_cut(&self) {
        let mut opened = self.is_open.subscribe();
        let cut = timeout(Duration::from_secs(30), opened.wait_for(|is_open| !is_open)).await;
        assert!(cut.is_ok(), "nothing was committed");
    }

    fn mend(&self) {
        self.is_open.send_replace(true);
    }
}

/// Carries bytes on until one side ends, or `may_pass` says of some that they do not pass.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    may_pass: impl Fn(&[u8]) -> bool,
) -> std::io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 || !may_pass(&bytes[..read]) {
            return Ok(());
        }
        to.write_all(&bytes[..read]).await?;
    }
}

/// Returns a store behind a way that can be cut, and the same store without it.
async fn behind(server: &server::Running, grace: Duration) -> (Schema, Way, Store) {
    behind_for(server, grace, LONGEST).await
}

/// Returns a store behind a way that can be cut, and the same store without it. The first one waits
/// for a lost connection no longer than `patience`.
async fn behind_for(server: &server::Running, grace: Duration, patience: Duration) -> (Schema, Way, Store) {
    let schema = Schema::on(&server.address);
    let folder = server.address.split("host=").nth(1).unwrap().split('&').next().unwrap();
    let way = Way::to(folder).await;
    let direct = schema.address().await.url;
    let url = direct.replacen(
        &format!("host={folder}"),
        &format!("host=127.0.0.1&port={}", way.port),
        1,
    );
    let link = link(&Server::new(&url, None)).unwrap().with_patience(patience);
    let store = Store::over(open_over(link, grace).await.unwrap());
    (schema, way, store)
}

fn said(text: &str) -> Message {
    Message::User {
        text: text.to_owned(),
        pictures: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_lost_for_seconds_is_waited_for_and_nothing_is_written_twice() {
    let server = server::start().await;
    let (_schema, way, store) = behind(&server, Duration::from_secs(10)).await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    let mut expected = Vec::new();
    for round in 0..6_u64 {
        let text = format!("message {round}");
        way.cut();
        let mending = async {
            sleep(Duration::from_millis(700)).await;
            way.mend();
        };
        let messages = [said(&text)];
        let record = json!({ "round": round });
        let appending = store.append(&lease, &record, expected.len(), &messages);
        let (appended, ()) = tokio::join!(appending, mending);
        appended.unwrap();
        expected.extend(messages);
        // And cut in the middle of many writes, each of which counts once.
        let cutting = async {
            sleep(Duration::from_millis(round * 3)).await;
            way.cut();
            sleep(Duration::from_millis(200)).await;
            way.mend();
        };
        let writing = async {
            let mut written = Vec::new();
            let before = expected.len();
            for number in 0..20 {
                let message = said(&format!("{round}.{number}"));
                store
                    .append(&lease, &record, before + written.len(), std::slice::from_ref(&message))
                    .await
                    .unwrap();
                written.push(message);
            }
            written
        };
        let (written, ()) = tokio::join!(writing, cutting);
        expected.extend(written);
    }
    assert_eq!(store.messages(run).await.unwrap(), expected);
    store.save(&lease, State::Done, &Value::Null).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_for_longer_than_it_is_waited_for_is_not_made_twice() {
    const PATIENCE: Duration = Duration::from_secs(2);
    let server = server::start().await;
    let (_schema, way, store) = behind_for(&server, Duration::from_secs(10), PATIENCE).await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    way.cut_at_commit();
    let first = [said("once")];
    let appended = store.append(&lease, &Value::Null, 0, &first).await;
    assert!(matches!(appended, Err(StoreError::Database { .. })), "{appended:?}");
    way.mend();
    assert_eq!(store.messages(run).await.unwrap(), first);
    // Whoever was not told saves it again.
    store.append(&lease, &Value::Null, 0, &first).await.unwrap();
    assert_eq!(store.messages(run).await.unwrap(), first);

    // Back in time, the server says that it was kept.
    way.cut_at_commit();
    let mending = async {
        way.is_cut().await;
        way.mend();
    };
    let second = [said("twice")];
    let (appended, ()) = tokio::join!(store.append(&lease, &Value::Null, 1, &second), mending);
    appended.unwrap();
    assert_eq!(store.messages(run).await.unwrap(), [first, second].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_a_name_down_is_the_first_also_where_the_answer_was_lost() {
    let server = server::start().await;
    let (_schema, way, store) = behind(&server, Duration::from_secs(10)).await;
    let mending = async || {
        way.is_cut().await;
        way.mend();
    };
    way.cut_at_commit();
    let (is_first, ()) = tokio::join!(store.first_time("command 1", ""), mending());
    assert!(is_first.unwrap());
    assert!(!store.first_time("command 1", "").await.unwrap());
    way.cut_at_commit();
    let (is_new, ()) = tokio::join!(store.take_chat_message("m1", "s", &Value::Null), mending());
    assert!(is_new.unwrap());
    assert!(!store.take_chat_message("m1", "s", &Value::Null).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_comes_back_with_its_lock_and_the_run_stays_in_its_hands() {
    let server = server::start().await;
    let (schema, way, store) = behind(&server, Duration::from_secs(10)).await;
    admit(&store, 1).await;
    let lease = claim(&store).await;
    let pool = schema.pool().await;
    assert!(is_there(&pool, store.worker()).await);
    way.cut();
    while is_there(&pool, store.worker()).await {
        sleep(Duration::from_millis(10)).await;
    }
    way.mend();
    while !is_there(&pool, store.worker()).await {
        sleep(Duration::from_millis(10)).await;
    }
    let other = schema.open().await;
    assert!(other.claim(TTL).await.unwrap().is_none());
    store.heartbeat(&lease, TTL).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_back_believes_the_others_for_a_while() {
    let server = server::start().await;
    let (schema, way, store) = behind(&server, Duration::from_mins(1)).await;
    admit(&store, 1).await;
    let other = schema.open().await;
    let _held = claim(&other).await;
    let pool = schema.pool().await;
    way.cut();
    while is_there(&pool, store.worker()).await {
        sleep(Duration::from_millis(10)).await;
    }
    way.mend();
    while !is_there(&pool, store.worker()).await {
        sleep(Duration::from_millis(10)).await;
    }
    // The other one's session is gone too, as after a failure of the network between.
    schema.kill(other).await;
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert!(
        schema.open().await.claim(TTL).await.unwrap().is_some(),
        "one that was there all the time knows"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_stays_away_is_said_and_not_waited_for_longer_than_a_lease() {
    let server = server::start().await;
    let (_schema, way, store) = behind(&server, Duration::from_secs(10)).await;
    admit(&store, 1).await;
    let lease = claim(&store).await;
    way.cut();
    let begun = Instant::now();
    let failed = store.heartbeat(&lease, TTL).await;
    assert!(matches!(failed, Err(StoreError::Away { .. })), "{failed:?}");
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
    way.mend();
    store.heartbeat(&lease, TTL).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_become_a_standby_is_left_for_its_successor_at_once() {
    let server = server::start().await;
    let schema = Schema::on(&server.address);
    let store = schema.open().await;
    store.remember("answers", "some").await.unwrap();
    let pool = schema.pool().await;
    // The sessions that there are take no writes any more, as with a standby, and new ones do.
    for text in [
        "CREATE TABLE demoted AS SELECT pid FROM pg_stat_activity WHERE application_name = 'coding-agent'",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF pg_backend_pid() IN (SELECT pid FROM demoted) THEN
                    RAISE EXCEPTION 'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006';
                END IF;
                RETURN NEW;
            END
         $$",
        "CREATE TRIGGER refusing BEFORE INSERT ON remembered FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        sqlx::raw_sql(text).execute(&pool).await.unwrap();
    }
    store.remember("answers", "others").await.unwrap();
    assert_eq!(store.remembered("answers").await.unwrap().as_deref(), Some("others"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_the_tables_may_take_long_and_waits_for_no_lock_for_long() {
    let server = server::start().await;
    let schema = Schema::on(&server.address);
    let address = schema.address().await;
    let steps = link(&address).unwrap().for_steps();
    for (setting, expected) in [("statement_timeout", "1h"), ("lock_timeout", "12s")] {
        let query = sqlx::query_scalar::<_, String>("SELECT current_setting($1)").bind(setting);
        assert_eq!(query.fetch_one(&steps).await.unwrap(), expected);
    }
    drop(schema.open().await);
    let pool = schema.pool().await;
    let mut other = pool.begin().await.unwrap();
    let lock = sqlx::query("LOCK TABLE _sqlx_migrations IN ACCESS EXCLUSIVE MODE");
    lock.execute(&mut *other).await.unwrap();
    let impatient = link(&address).unwrap().with_patience(Duration::from_millis(1));
    let opened = open_over(impatient, Duration::ZERO).await.map(drop);
    let said = opened.unwrap_err().to_string();
    assert!(said.contains("another process brings them up to date"), "{said}");
    other.rollback().await.unwrap();
    // Nobody holds the lock of the one that gave up.
    drop(schema.open().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_woken_by_new_work_and_by_the_death_of_others() {
    let server = server::start().await;
    let schema = Schema::on(&server.address);
    let (idle, busy) = (schema.open().await, schema.open().await);
    let mut rung = idle.rung().unwrap();
    // The connection may have told of itself already.
    sleep(Duration::from_millis(100)).await;
    rung.mark_unchanged();
    admit(&busy, 1).await;
    tokio::time::timeout(Duration::from_secs(30), rung.changed())
        .await
        .unwrap()
        .unwrap();
    let _lease = claim(&busy).await;
    sleep(Duration::from_millis(100)).await;
    rung.mark_unchanged();

    let begun = Instant::now();
    drop(busy);
    let claimed = loop {
        rung.changed().await.unwrap();
        if let Some(claimed) = idle.claim(TTL).await.unwrap() {
            break claimed;
        }
    };
    // Long before its lease is over.
    assert!(begun.elapsed() < TTL / 2, "{:?}", begun.elapsed());
    drop(claimed);
}
