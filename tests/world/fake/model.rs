//! A language model that follows a script, spoken to over real HTTP in three protocols: chat
//! completions (`/v1/chat/completions`), Ollama's own (`/api/chat`) and messages (`/v1/messages`).
//!
//! ```ignore
//! let model = Model::start().await;
//! model.plans(Plan::of(&["greet"])).calls("workspace/write_file", json!({...})).done("Greeted.");
//! model.for_task("Greet").fails(500, 2).done("Greeted.");
//! ```
//!
//! A call is rendered as a native tool call when the request offers tools, else as JSON text. Every
//! request is kept and checked (see `check`); [`Model::finish`] panics with all that was wrong, and
//! on a script that was not used up. The wire types are its own: a wrong idea of a protocol must
//! not stand on both sides. Replies are streamed to whom
//! asks for it. It deliberately knows nothing of embeddings.

mod answering;
mod check;
mod conversation;
mod peculiarities;
mod script;
mod streaming;
mod thinking;
mod trouble;
mod wire;

use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::time::Duration;
use std::time::Instant;

use axum::Router;
use axum::http::StatusCode;
use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

#[allow(
    unused_imports,
    reason = "every binary that includes the fake uses a different part of it"
)]
pub use conversation::{Call, Protocol, Request, Said};
#[allow(
    unused_imports,
    reason = "every binary that includes the fake uses a different part of it"
)]
pub use script::{Answer, Plan, Script};
#[allow(
    unused_imports,
    reason = "every binary that includes the fake uses a different part of it"
)]
pub use trouble::Trouble;

use peculiarities::Memory;

/// The name under which the model is best configured; every name but one that begins with `missing`
/// is served.
pub const NAME: &str = "scripted";

/// The time that `until` waits: long enough for an image to be built on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// A scripted model server. Ends when dropped.
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

struct Shared {
    state: Mutex<Inner>,
    bell: watch::Sender<u64>,
    /// The number of held answers that have been let go.
    released: watch::Sender<usize>,
    responder: Option<Responder>,
}

/// The times at which a request for a reply came in and its answer left.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub arrived: Instant,
    pub answered: Instant,
}

type Responder = Box<dyn Fn(&Request) -> Answer + Send + Sync>;

#[derive(Default)]
struct Inner {
    scripts: script::Scripts,
    troubles: VecDeque<Trouble>,
    requests: Vec<Request>,
    exchanges: Vec<Exchange>,
    violations: BTreeSet<String>,
    sessions: check::Sessions,
    rules: check::Rules,
    held: usize,
    /// When each client went away in the middle of a stream.
    hung_up: Vec<Instant>,
    takes_no_tools: bool,
    /// The number of tokens beyond which a prompt loses its beginning.
    cuts_at: Option<usize>,
    counts_nothing: bool,
    /// The prompt before, where only that part of the next one is counted which it does not begin
    /// with.
    cached: Option<String>,
    /// The window of the model, where it is the only one of its server, under another name.
    alone_with: Option<u64>,
    key: Option<String>,
    /// Fields that are refused, each with the words of the refusal.
    refused_fields: Vec<(String, String)>,
    /// The status and the words with which the user is refused directly behind a result.
    refused_order: Option<(StatusCode, String)>,
    /// Whether replies come as a whole even where a stream is asked for.
    streams_nothing: bool,
    /// What the chunks of a chat completion have as the reason of its end, before the last one.
    no_reason: Value,
    thinking: thinking::Thinking,
    memory: Memory,
    /// LM Studio's entry for the scripted model, by the version of its interface.
    of_lm_studio: Vec<(String, Value)>,
}

impl Model {
    /// Starts a model without a script on a free port.
    pub async fn start() -> Self {
        Self::serve(bound(), None)
    }

    /// Starts a model without a script on a listener that is already bound.
    pub fn start_on(listener: std::net::TcpListener) -> Self {
        Self::serve(listener, None)
    }

    /// Starts a model that answers each request with what `responder` says; for benches and for
    /// endless runs.
    pub async fn answering(responder: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(bound(), Some(Box::new(responder)))
    }

    fn serve(listener: std::net::TcpListener, responder: Option<Responder>) -> Self {
        let address = listener.local_addr().expect("a bound listener");
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            bell: watch::Sender::new(0),
            released: watch::Sender::new(0),
            responder,
        });
        // A pool of its own: a test may block its thread waiting for a process, and the model still
        // answers.
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).thread_name("model").enable_all().build();
        let runtime = runtime.expect("a thread pool can be started");
        listener
            .set_nonblocking(true)
            .expect("a listener can be made non-blocking");
        let router = Router::new().fallback(answering::serve).with_state(Arc::clone(&shared));
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a bound listener");
            // The pieces of a stream go out as they are made, as real servers have it.
            let listener = listener.tap_io(|connection| {
                let _ = connection.set_nodelay(true);
            });
            let _ = axum::serve(listener, router).await;
        });
        Self {
            address,
            shared,
            runtime: Some(runtime),
        }
    }

    /// Returns where it listens.
    pub fn socket(&self) -> SocketAddr {
        self.address
    }

    /// Returns `http://127.0.0.1:4711`: for Ollama and Anthropic, and for LM Studio, whose client
    /// adds `/v1`.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address for clients of chat completions.
    pub fn openai_address(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the script for conversations whose first user message contains `words`.
    pub fn for_task(&self, words: &str) -> Script<'_> {
        Script::new(self, Some(words.to_owned()))
    }

    /// Returns the script for all other conversations. Its steps can also be called on the model
    /// itself.
    pub fn script(&self) -> Script<'_> {
        Script::new(self, None)
    }

    /// Forbids `secret` in all later requests, but for the key in their headers.
    pub fn forbids(&self, secret: &str) {
        self.lock().rules.forbidden.push(secret.to_owned());
    }

    /// Forbids later prompts that are longer than `tokens`, at four bytes each, together with the
    /// longest reply that they ask for: vLLM and Anthropic refuse such a sum. Ollama's `num_ctx` is
    /// watched anyway.
    pub fn has_window(&self, tokens: u64) {
        self.lock().rules.window = Some(tokens);
    }

    /// Allows later conversations to go back to where they were stored; otherwise each one only
    /// grows.
    pub fn allows_restarts(&self) {
        self.lock().rules.restarts_allowed = true;
    }

    /// Gives a conversation that was answered before the same answer again: for clients that may
    /// end before they have heard or kept it.
    pub fn repeats_answers(&self) {
        self.lock().scripts.repeat();
    }

    /// Allows later conversations that were begun elsewhere.
    pub fn goes_on_for_another(&self) {
        self.lock().sessions.know_of_another();
    }

    /// Lets one held answer go, now or when it comes.
    pub fn release(&self) {
        self.shared.released.send_modify(|count| *count += 1);
    }

    /// Returns all requests for replies so far.
    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    /// Returns when each request for a reply was heard and answered, in the order of the answers.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.lock().exchanges.clone()
    }

    /// Returns how many requests for a reply were with the server at once, at most.
    pub fn most_at_once(&self) -> usize {
        let exchanges = self.exchanges();
        let during = |one: &Exchange| {
            let is_there = |other: &&Exchange| other.arrived <= one.arrived && one.arrived < other.answered;
            exchanges.iter().filter(is_there).count()
        };
        exchanges.iter().map(during).max().unwrap_or_default()
    }

    /// Waits until as many answers as this have been held back.
    pub async fn until_held(&self, count: usize) {
        self.wait(&format!("{count} held answers"), |inner| inner.held >= count)
            .await;
    }

    /// Waits until as many clients as this have gone away in the middle of a stream; returns when the
    /// last of them did.
    pub async fn until_hung_up(&self, count: usize) -> Instant {
        self.wait(&format!("{count} clients that hang up"), |inner| {
            inner.hung_up.len() >= count
        })
        .await;
        self.lock().hung_up[count - 1]
    }

    /// Waits until the requests so far satisfy the condition.
    pub async fn until(&self, condition: impl Fn(&[Request]) -> bool) {
        self.wait("a condition on the requests", |inner| condition(&inner.requests))
            .await;
    }

    async fn wait(&self, what: &str, condition: impl Fn(&Inner) -> bool) {
        let mut bell = self.shared.bell.subscribe();
        let waiting = bell.wait_for(|_| condition(&self.lock()));
        let came = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        assert!(came, "the model waited in vain for {what}\n{}", self.dump());
    }

    /// Returns how many requests for replies came in, and how many of them were answered.
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.requests.len(), inner.exchanges.len())
    }

    /// Returns what was wrong with the requests so far.
    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.iter().cloned().collect()
    }

    /// Ends the test: panics with every violation, and on a script that was not used up.
    pub fn finish(&self) {
        let faults: Vec<String> = {
            let inner = self.lock();
            inner.violations.iter().cloned().chain(inner.scripts.unused()).collect()
        };
        assert!(
            faults.is_empty(),
            "the model noticed:\n- {}\n{}",
            faults.join("\n- "),
            self.dump()
        );
    }

    /// Returns all conversations so far, for the message of a failed test.
    pub fn dump(&self) -> String {
        let inner = self.lock();
        let said = inner
            .requests
            .last()
            .map(|request| request.messages.as_slice())
            .unwrap_or_default();
        let lines: Vec<_> = said.iter().map(|said| format!("  {said:?}")).collect();
        format!("{} requests; the last one:\n{}", inner.requests.len(), lines.join("\n"))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.lock()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits until the answers that were held before, and then this one, were let go.
    async fn hold(&self) {
        let turn = {
            let mut inner = self.lock();
            inner.held += 1;
            inner.held
        };
        self.ring();
        let mut released = self.released.subscribe();
        let _ = released.wait_for(|count| *count >= turn).await;
    }

    fn ring(&self) {
        self.bell.send_modify(|count| *count += 1);
    }
}

fn bound() -> std::net::TcpListener {
    std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback interface has a free port")
}

/// Returns the number of tokens that the fake counts for a text.
fn tokens(text: &str) -> u64 {
    text.len() as u64 / 4 + 1
}
