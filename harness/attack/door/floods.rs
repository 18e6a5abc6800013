//! Too much of everything: connections that say nothing, bodies, readers, guesses. The program has
//! to stay small, and to answer those who know a token once the flood is over.

use std::time::{Duration, Instant};

use bytes::Bytes;
use coding_agent_harness::memory;
use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Tally;
use super::entrance::{ALICE, BOB, Entrance};

const CONNECTIONS: usize = 700;
const BODIES: usize = 120;
const READERS: usize = 300;
const GUESSES: usize = 200;
/// Memory that the program may have, whatever comes.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// Time until a person is answered.
const PATIENCE: Duration = Duration::from_secs(90);

pub async fn play(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let (_, session) = entrance.logs_in(ALICE, &[]).await?;
    tally.controls("somebody before the flood", is_answered(entrance, &session).await);

    let mut silent = Vec::new();
    for number in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(&entrance.host).await?;
        // Some say nothing, some never come to the end of their head.
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ").await;
        }
        silent.push(stream);
    }
    let begun = Instant::now();
    let answered = is_answered(entrance, &session).await;
    let late = format!("nobody was answered within {:?}", begun.elapsed());
    tally.tries("silent connections", (!answered).then_some(late));
    drop(silent);

    for (path, size) in [
        ("/hooks/github", 4 << 20),
        ("/hooks/gitlab", 4 << 20),
        ("/login", 2 << 20),
        ("/api/tasks", 2 << 20),
    ] {
        let body = Bytes::from(vec![b'x'; size]);
        let bodies = (0..BODIES).map(|_| entrance.send(Method::POST, path, &[], body.clone()));
        let answers = join_all(bodies).await;
        let good = answers.iter().flatten().find(|answer| answer.status.is_success());
        tally.tries(
            &format!("large bodies for {path}"),
            good.map(|answer| format!("{} was answered", answer.status)),
        );
    }
    tally.tries("their memory", too_large(entrance));

    let bearer = format!("Bearer {BOB}");
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut stream = TcpStream::connect(&entrance.host).await?;
        let request = format!(
            "GET /api/events?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\n\r\n",
            entrance.host
        );
        stream.write_all(request.as_bytes()).await?;
        readers.push(stream);
    }
    tally.tries(
        "readers who take nothing",
        (!is_answered(entrance, &session).await).then(|| "nobody else was answered".to_owned()),
    );
    let one_more = entrance
        .get("/api/events?after=x", &[("authorization", &bearer)])
        .await?;
    let is_told = one_more.status == StatusCode::BAD_REQUEST;
    tally.controls("a wrong question beside the readers", is_told);
    drop(readers);
    tally.tries("the memory of all", too_large(entrance));

    let mut in_time = 0;
    for number in 0..GUESSES {
        let guess = format!("Bearer guess-{number}-0123456789");
        let answer = entrance.get("/api/status", &[("authorization", &guess)]).await?;
        in_time += usize::from(answer.status == StatusCode::UNAUTHORIZED);
        let is_in = answer.status.is_success();
        tally.tries("a guess", is_in.then(|| "it was let in".to_owned()));
    }
    tally.tries(
        "guesses in a row",
        (in_time > 20).then(|| format!("{in_time} were looked at")),
    );
    tally.controls("a session that began before", is_answered(entrance, &session).await);
    Ok(tally)
}

async fn is_answered(entrance: &Entrance, session: &str) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let headers = [("cookie", session)];
        let asked = tokio::time::timeout(PATIENCE, entrance.get("/api/status", &headers)).await;
        if asked.is_ok_and(|asked| asked.is_ok_and(|answer| answer.status == StatusCode::OK)) {
            return true;
        }
    }
    false
}

/// Returns that the program has, or had, more memory than it may.
pub fn too_large(entrance: &Entrance) -> Option<String> {
    let bytes = memory::bytes(entrance.process(), "VmHWM")?;
    (bytes > MOST_BYTES).then(|| format!("it had {} MB", bytes / 1_000_000))
}
