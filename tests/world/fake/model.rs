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

mod check;
mod conversation;
mod script;
mod streaming;
mod thinking;
mod trouble;
mod wire;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::time::Duration;
use std::time::Instant;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::body::to_bytes;
use axum::extract::State;
use axum::http::Request as HttpRequest;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::Response;
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

use script::Fault;
use script::Step;

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
    /// Whether replies come as a whole even where a stream is asked for.
    streams_nothing: bool,
    /// What the chunks of a chat completion have as the reason of its end, before the last one.
    no_reason: Value,
    thinking: thinking::Thinking,
    memory: Memory,
    /// LM Studio's entry for the scripted model, by the version of its interface.
    of_lm_studio: Vec<(String, Value)>,
}

/// The models that a server has in memory, and whether it is there at all.
#[derive(Default)]
struct Memory {
    /// The models that Ollama has loaded, each with its window.
    loaded: BTreeMap<String, u64>,
    /// The window that Ollama loads models with, whatever it is asked for.
    loads_with: Option<u64>,
    /// Whether every question about the server fails, and every request for a reply.
    is_down: bool,
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
        let router = Router::new().fallback(serve).with_state(Arc::clone(&shared));
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

    /// Refuses every request that offers tools, as a model does that was not trained for them.
    pub fn takes_no_tools(&self) {
        self.lock().takes_no_tools = true;
    }

    /// Drops the beginning of each later prompt with more tokens without a word, and counts only
    /// the rest.
    pub fn cuts_prompts_at(&self, tokens: usize) {
        self.lock().cuts_at = Some(tokens);
    }

    /// Leaves the number of the prompt's tokens out of all later answers.
    pub fn counts_nothing(&self) {
        self.lock().counts_nothing = true;
    }

    /// Counts of each later prompt only what the one before does not begin with, as servers do that
    /// count what they had to compute: Ollama before 0.4.
    pub fn counts_only_what_is_new(&self) {
        self.lock().cached = Some(String::new());
    }

    /// Makes the list of models llama.cpp's: one, under the name of its file, with the window it
    /// was loaded with.
    pub fn is_alone_with_window(&self, tokens: u64) {
        self.lock().alone_with = Some(tokens);
    }

    /// Refuses every request without this key.
    pub fn wants_key(&self, key: &str) {
        self.lock().key = Some(key.to_owned());
    }

    /// Refuses requests that hold a field, in these words.
    pub fn refuses_field(&self, field: &str, words: &str) {
        let mut inner = self.lock();
        inner.refused_fields.push((field.to_owned(), words.to_owned()));
    }

    /// Sends all later replies as a whole, as if nobody had asked for a stream.
    pub fn streams_nothing(&self) {
        self.lock().streams_nothing = true;
    }

    /// Writes an empty text as the reason of the end into each chunk of a chat completion that is
    /// not the last one, as `SGLang` and Ollama did; others write null.
    pub fn writes_empty_reasons(&self) {
        self.lock().no_reason = Value::from("");
    }

    /// Answers `/api/VERSION/models` with this entry of LM Studio's list.
    pub fn is_lm_studios(&self, version: &str, entry: Value) {
        self.lock().of_lm_studio.push((version.to_owned(), entry));
    }

    /// Makes the server answer nothing but 503, as a proxy does before one that is down; or ends
    /// that.
    pub fn is_down(&self, is_down: bool) {
        self.lock().memory.is_down = is_down;
    }

    /// Makes Ollama load models with this window, whatever it is asked for; `None` ends it.
    pub fn loads_with(&self, window: Option<u64>) {
        self.lock().memory.loads_with = window;
    }

    /// Returns the models that Ollama has loaded, with their windows.
    pub fn loaded(&self) -> BTreeMap<String, u64> {
        self.lock().memory.loaded.clone()
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

impl Memory {
    /// Answers what concerns the models that Ollama has in memory: `/api/generate` without a prompt
    /// loads one.
    fn of_ollama(&mut self, path: &str, asked: &Value) -> Option<Value> {
        let name = asked["model"].as_str().unwrap_or_default();
        match path {
            "/api/ps" => {
                let entry = |(name, window): (&String, &u64)| serde_json::json!({ "name": name, "model": name, "context_length": window });
                let models: Vec<Value> = self.loaded.iter().map(entry).collect();
                Some(serde_json::json!({ "models": models }))
            }
            "/api/generate" if asked.get("prompt").is_none() && !name.starts_with("missing") => {
                let window = asked["options"]["num_ctx"].as_u64().unwrap_or(4_096);
                let window = self.loads_with.unwrap_or(window);
                self.loaded.insert(name.to_owned(), window);
                Some(serde_json::json!({ "model": name, "response": "", "done": true, "done_reason": "load" }))
            }
            _ => None,
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

async fn serve(State(shared): State<Arc<Shared>>, request: HttpRequest<Body>) -> Response {
    let arrived = Instant::now();
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if let Some(key) = &shared.lock().key {
        let sent = ["authorization", "x-api-key"]
            .iter()
            .find_map(|name| head.headers.get(*name)?.to_str().ok())
            .unwrap_or_default();
        if sent.trim_start_matches("Bearer ") != key {
            let error = format!("Incorrect API key provided: {sent}");
            return wire::error(&path, StatusCode::UNAUTHORIZED, "invalid_api_key", &error);
        }
    }
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    if shared.lock().memory.is_down {
        return wire::error(
            &path,
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            "nobody answers here",
        );
    }
    if let Some(answer) = shared.lock().memory.of_ollama(&path, &json) {
        return Json(answer).into_response();
    }
    let Some(protocol) = Protocol::of(&path) else {
        let (takes_tools, alone_with, of_lm_studio) = {
            let inner = shared.lock();
            (!inner.takes_no_tools, inner.alone_with, inner.of_lm_studio.clone())
        };
        for (version, entry) in of_lm_studio {
            if path == format!("/api/{version}/models") {
                let list = if version == "v0" { "data" } else { "models" };
                return Json(serde_json::json!({ list: [entry] })).into_response();
            }
        }
        if let Some(window) = alone_with.filter(|_| path == "/v1/models") {
            return wire::only_model(window);
        }
        return wire::about_the_server(&path, &json, takes_tools);
    };
    let mut request = Request::read(protocol, &head.headers, json);
    if let Some(tokens) = shared.lock().cuts_at {
        let start = request.seen.len().saturating_sub(tokens * 4 - 4);
        request.seen = request.seen.split_off(request.seen.ceil_char_boundary(start));
    }
    let answer = reply(&shared, &path, request).await;
    let answered = Instant::now();
    shared.lock().exchanges.push(Exchange { arrived, answered });
    answer
}

/// Returns the server's words if it does not take a request of this form.
fn refusal(inner: &Inner, request: &Request) -> Option<String> {
    if inner.takes_no_tools && !request.offered.is_empty() {
        return Some(format!("{} does not support tools", request.model));
    }
    if inner.thinking == thinking::Thinking::Demanded
        && let Some(words) = thinking::refusal(request)
    {
        return Some(words);
    }
    let mut fields = inner.refused_fields.iter();
    let refused = fields.find(|(field, _)| request.body.get(field).is_some());
    refused.map(|(_, words)| words.clone())
}

/// Returns how many tokens of a prompt are new, where only these are counted, and keeps it in the
/// cache.
fn uncached(inner: &mut Inner, prompt: &str) -> Option<u64> {
    let cached = inner.cached.as_mut()?;
    let pairs = prompt.bytes().zip(cached.bytes());
    let common = pairs.take_while(|(new, old)| new == old).count();
    prompt.clone_into(cached);
    Some((prompt.len() - common) as u64 / 4 + 1)
}

async fn reply(shared: &Arc<Shared>, path: &str, request: Request) -> Response {
    if request.model.starts_with("missing") {
        let error = format!("model '{}' not found", request.model);
        return wire::error(path, StatusCode::NOT_FOUND, "model_not_found", &error);
    }
    let step = {
        let mut inner = shared.lock();
        let Inner {
            violations,
            sessions,
            rules,
            ..
        } = &mut *inner;
        violations.extend(check::violations(&request, rules, sessions));
        inner.requests.push(request.clone());
        if let Some(words) = refusal(&inner, &request) {
            drop(inner);
            shared.ring();
            return wire::error(path, StatusCode::BAD_REQUEST, "invalid_request_error", &words);
        }
        let trouble = inner.troubles.pop_front();
        match &shared.responder {
            _ if trouble.is_some() => trouble.map(Trouble::step),
            Some(responder) => {
                drop(inner);
                Some(Step::answer(responder(&request)))
            }
            None => inner.scripts.next(&request),
        }
    };
    shared.ring();
    let Some(mut step) = step else {
        let error = format!(
            "the script has no step left for the conversation that begins with {:?}",
            request.first_user_message().chars().take(120).collect::<String>()
        );
        shared.lock().violations.insert(error.clone());
        return wire::error(path, StatusCode::INTERNAL_SERVER_ERROR, "server_error", &error);
    };
    if let Some(new) = uncached(&mut shared.lock(), &request.seen) {
        step.answer.prompt_tokens.get_or_insert(new);
    }
    if step.is_held {
        shared.hold().await;
    }
    if let Some(duration) = step.delay {
        tokio::time::sleep(duration).await;
    }
    let is_streamed = streaming::is_wanted(&request) && !shared.lock().streams_nothing;
    match step.fault {
        None => {
            if let Some(unknown) = step.answer.calls.iter().find(|call| !request.can_call(&call.0)) {
                let error = format!("the script calls {}, which the request does not offer", unknown.0);
                shared.lock().violations.insert(error);
            }
            let mut body = wire::reply_body(&request, &step.answer);
            if shared.lock().thinking == thinking::Thinking::Demanded {
                thinking::add(&request, &mut body);
            }
            if shared.lock().counts_nothing {
                wire::take_counts_out(&mut body);
            }
            if is_streamed {
                return streaming::respond(shared, &request, &body, step.middle);
            }
            Json(body).into_response()
        }
        Some(Fault::BreaksOff) if is_streamed => {
            let whole = wire::reply_body(&request, &step.answer);
            streaming::respond(shared, &request, &whole, Some(streaming::Middle::BreaksOff))
        }
        Some(Fault::Status(status)) => wire::error(path, status, "server_error", "The script fails here"),
        Some(Fault::RateLimited(seconds)) => {
            let code = StatusCode::TOO_MANY_REQUESTS;
            let mut response = wire::error(path, code, "rate_limit_exceeded", "Too many requests");
            if let Some(seconds) = seconds {
                response.headers_mut().insert("retry-after", seconds.into());
            }
            response
        }
        Some(Fault::LimitedBy(header, wait)) => {
            let code = StatusCode::TOO_MANY_REQUESTS;
            let response = wire::error(path, code, "rate_limit_exceeded", "Too many requests");
            ([(header, wait)], response).into_response()
        }
        Some(Fault::Refused(words)) => wire::error(path, StatusCode::BAD_REQUEST, "invalid_request_error", &words),
        Some(Fault::TooLong) => wire::too_long(&request),
        Some(Fault::BreaksOff) => wire::half_of(&wire::reply_body(&request, &step.answer)),
        Some(Fault::Raw(status, body)) => (status, body).into_response(),
    }
}

/// Returns the number of tokens that the fake counts for a text.
fn tokens(text: &str) -> u64 {
    text.len() as u64 / 4 + 1
}
