//! Tests of what programs in a container can send to this end.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;

fn gateway(allow: &[&str]) -> Arc<Gateway> {
    let allow: Vec<String> = allow.iter().map(|host| (*host).to_owned()).collect();
    let policy = Policy::of_readable(&allow, &[]);
    let upstream = Upstream::from_variables(&|_| None);
    Arc::new(Gateway::new(
        policy,
        Arc::new(upstream),
        Gate::always_open(),
        Arc::new(Ledger::new([], |_| {})),
    ))
}

/// Returns the inner end of a stream whose outer end is served.
fn served(gateway: Arc<Gateway>) -> (DuplexStream, JoinHandle<Result<(), yamux::ConnectionError>>) {
    let (inside, outside) = duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(outside);
    (inside, tokio::spawn(gateway.serve(reader, writer)))
}

/// Returns the whole response to `request`.
async fn answer(gateway: &Arc<Gateway>, request: &str) -> String {
    let (inside, _serving) = served(Arc::clone(gateway));
    let mut connection = yamux::Connection::new(inside.compat(), yamux::Config::default(), yamux::Mode::Client);
    let stream = poll_fn(|context| connection.poll_new_outbound(context)).await.unwrap();
    let driving =
        tokio::spawn(async move { while poll_fn(|context| connection.poll_next_inbound(context)).await.is_some() {} });
    let mut stream = stream.compat();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A response that breaks off counts as one that ends.
    let _ = stream.read_to_end(&mut answer).await;
    driving.abort();
    String::from_utf8(answer).unwrap()
}

fn first_line(answer: &str) -> &str {
    answer.lines().next().unwrap_or_default()
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_with_a_sentence() {
    let gateway = gateway(&["good.example"]);
    for request in [
        "GET / HTTP/1.1\r\nhost: good.example\r\n\r\n",
        "GET https://good.example/ HTTP/1.1\r\n\r\n",
        "GET ftp://good.example/ HTTP/1.1\r\n\r\n",
        "GET http://good_%41.example/ HTTP/1.1\r\n\r\n",
        "CONNECT good.example HTTP/1.1\r\n\r\n",
        "CONNECT good.example:0 HTTP/1.1\r\n\r\n",
    ] {
        let answer = answer(&gateway, request).await;
        assert!(
            first_line(&answer).starts_with("HTTP/1.1 400 Bad Request"),
            "{request}: {answer}"
        );
    }
    let answer = answer(&gateway, "GET / HTTP/1.1\r\nhost: good.example\r\n\r\n").await;
    assert!(answer.contains("this is the way out of the container"), "{answer}");
    assert_eq!(gateway.ledger.all().len(), 0);
}

#[tokio::test]
async fn what_else_a_request_says_of_its_host_changes_nothing() {
    let gateway = gateway(&["good.example"]);
    for request in [
        "GET http://evil.example/ HTTP/1.1\r\nhost: good.example\r\n\r\n",
        "GET http://good.example@evil.example/ HTTP/1.1\r\n\r\n",
        "CONNECT evil.example:443 HTTP/1.1\r\nhost: good.example:443\r\n\r\n",
        "CONNECT EVIL.example.:443 HTTP/1.1\r\n\r\n",
    ] {
        let answer = answer(&gateway, request).await;
        let refusal = "HTTP/1.1 403 Forbidden: evil.example is not among the hosts that containers may reach";
        assert!(first_line(&answer).starts_with(refusal), "{request}: {answer}");
    }
    assert_eq!(gateway.ledger.all().len(), 2, "one for each port");
}

#[tokio::test]
async fn a_head_that_does_not_end_is_given_up() {
    let gateway = gateway(&["good.example"]);
    let request = format!("GET http://good.example/ HTTP/1.1\r\nx: {}", "x".repeat(64 * 1024));
    let answer = answer(&gateway, &request).await;
    assert!(first_line(&answer).starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn whoever_breaks_the_protocol_or_opens_too_much_is_cut_off() {
    let (mut inside, serving) = served(gateway(&[]));
    inside.write_all(&[0xff; 4096]).await.unwrap();
    assert!(serving.await.unwrap().is_err());

    let (inside, serving) = served(gateway(&[]));
    let mut connection = yamux::Connection::new(inside.compat(), yamux::Config::default(), yamux::Mode::Client);
    let mut streams = Vec::new();
    for _ in 0..=MOST_STREAMS {
        // Half a request, so that it stays open.
        let stream = poll_fn(|context| connection.poll_new_outbound(context)).await.unwrap();
        let mut stream = stream.compat();
        stream.write_all(b"GET ").await.unwrap();
        streams.push(stream);
    }
    let driving =
        tokio::spawn(async move { while poll_fn(|context| connection.poll_next_inbound(context)).await.is_some() {} });
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), serving).await;
    assert!(ended.is_ok(), "it goes on with more streams than it allows");
    driving.abort();
}
